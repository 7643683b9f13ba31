"""Where the lanes of a block stand, in memory that outlives who steps them: what can still be told of a worker that died.

To keep it up costs a number or two for each step of a lane, or of a block whose lanes step together. It is read once there is
nobody left to write it, so nothing is locked. Knows no environment and no process.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.seeds import Purpose, derived_seed, episode_seed
from penstock.core.specs import Array, EnvironmentSpec, LanePosition
from penstock.envs.faults import named_place
from penstock.memory.arena import Arena, require_bytes
from penstock.memory.layout import Field, Layout

RESTING, MAKING, RESETTING, STEPPING = range(4)
_DOING = {MAKING: "making", RESETTING: "reset", STEPPING: "step"}

APART, TOGETHER, TOGETHER_FROM_ONE_SEED = range(3)
"""Each lane has steps and seeds of its own; or the block steps as one, and its first row speaks for all; there the lanes may
draw from one generator that the block seeds."""


def standing_layout(spec: EnvironmentSpec, lanes: int) -> Layout:
    """What is kept of one block."""
    return Layout.of(
        [
            Field("form", (1,), "uint8"),
            Field("clock", (1,), "int64"),  # steps of the block since its reset, where it steps as one; else 0
            Field("doing", (lanes,), "uint8"),
            Field("episode", (lanes,), "int64"),  # the episode each lane is in
            Field("step", (lanes,), "int64"),  # with the clock: steps begun in that episode, the one under way included
            Field("action", (lanes, *spec.action.shape), spec.action.dtype),  # what each lane was sent last
        ]
    )


@dataclass(frozen=True)
class Standing:
    """Views into one block's record."""

    form: Array
    clock: Array
    doing: Array
    episode: Array
    step: Array
    action: Array

    def position(self, row: int, *, lane: int, seed: int) -> LanePosition:
        """Where the lane of this row stands, in a run of this seed."""
        episode, step = int(self.episode[row]), int(self.clock[0] + self.step[row])
        if self.form[0] == TOGETHER_FROM_ONE_SEED:
            own_seed = derived_seed(seed, Purpose.BLOCK_RESET, lane // len(self.episode))
        else:
            own_seed = episode_seed(seed, lane, episode)
        return LanePosition(lane, own_seed, episode, step, told(self.action[row]) if step else None)

    def doing_of(self, row: int) -> str:
        """What the lane of this row is at, or was last asked for."""
        return _DOING.get(int(self.doing[row]), _DOING[STEPPING])

    def under_way(self, environment_id: str, *, first_lane: int, seed: int) -> list[str]:
        """What each lane is at that is not at rest, in words; or all of them, where they step as one."""
        rows = range(1 if self.form[0] != APART else len(self.doing))
        lanes = f"lanes {first_lane} to {first_lane + len(self.doing) - 1}" if self.form[0] != APART else ""
        return [
            f"environment '{environment_id}' was in {self.doing_of(row)} "
            f"({named_place(self.position(row, lane=first_lane + row, seed=seed), lanes)})"
            for row in rows
            if self.doing[row] != RESTING
        ]


def told(action: Any) -> Any:
    """A row of an action as a report tells it: numbers and lists, parts by their names."""
    if action.dtype.names is None:
        return action.tolist()
    return {name: told(action[name]) for name in action.dtype.names}


def own_standing(spec: EnvironmentSpec, lanes: int, *, shared: bool = False) -> Standing:
    """The record of a block that nobody else looks at, but for processes forked afterwards, if it is `shared`."""
    layout = standing_layout(spec, lanes)
    memory: Any = mmap.mmap(-1, layout.num_bytes) if shared else bytearray(layout.num_bytes)
    return _standings(layout, memoryview(memory), 1)[0]


class Standings:
    """The records of all blocks over one arena."""

    def __init__(self, arena: Arena, spec: EnvironmentSpec, *, lanes: int, blocks: int) -> None:
        self.arena = arena
        self._environment_id, self._lanes = spec.id, lanes
        self._records = _standings(standing_layout(spec, lanes), arena.memory, blocks)

    @classmethod
    def create(cls, spec: EnvironmentSpec, *, lanes: int, blocks: int) -> Standings:
        """New records, after checking that there is room for them."""
        needed = standing_layout(spec, lanes).total_bytes(blocks)
        require_bytes(needed, f"where {blocks} blocks of {lanes} lanes stand")
        return cls(Arena.create("standings", needed), spec, lanes=lanes, blocks=blocks)

    @classmethod
    def attach(cls, fd: int, spec: EnvironmentSpec, *, lanes: int, blocks: int) -> Standings:
        """The records behind a descriptor that another process made for the same blocks."""
        arena = Arena(fd, Arena.size_of(standing_layout(spec, lanes).total_bytes(blocks)))
        return cls(arena, spec, lanes=lanes, blocks=blocks)

    def __getitem__(self, block: int) -> Standing:
        return self._records[block]

    def under_way(self, blocks: Sequence[int], seed: int) -> tuple[str, ...]:
        """What the lanes of these blocks are at, or were when their worker died; a line for each that is not at rest."""
        told = (self[block].under_way(self._environment_id, first_lane=block * self._lanes, seed=seed) for block in blocks)
        return tuple(line for lines in told for line in lines)


def _standings(layout: Layout, memory: memoryview, blocks: int) -> list[Standing]:
    fields = layout.views(memory, blocks)
    return [Standing(**{name: field[block] for name, field in fields.items()}) for block in range(blocks)]
