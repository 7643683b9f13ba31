"""Slots: each holds one segment, T steps of one block, in NEXT_STEP form.

Who owns a slot follows from the law: the worker from StartSegment to SegmentDone, the learner from TrainBatch to BatchTrained,
nobody in between. Nothing is locked, because nothing is ever shared.

    row            0     1     2     3     4  = T
    observation   o0    o1    o2*   o3    o4        * the final observation of an episode is an ordinary row
    action        a0    a1    --    a3                what was chosen on it is ignored: the step only resets,
    valid          1     1     0     1                so it is no data
    terminated     0     1     0     0
    value         v0    v1    v2    v3    v4        v2 bootstraps a truncation, v4 the segment's cut

Rows are lanes. When several agents share an environment they will be rows too (lane-major), so nothing here changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.specs import Array, EnvironmentSpec
from penstock.memory.arena import Arena, require_bytes
from penstock.memory.layout import Field, Layout


@dataclass(frozen=True)
class SegmentShape:
    """How large one segment is."""

    steps: int  # T
    lanes: int  # B
    memory_size: int = 0  # the recurrent memory of one lane, in floats; 0: the policy has none

    @property
    def rows(self) -> int:
        return self.steps * self.lanes


def segment_layout(spec: EnvironmentSpec, shape: SegmentShape) -> Layout:
    """Everything that a segment carries."""
    steps, lanes = shape.steps, shape.lanes
    return Layout.of(
        [
            Field("segment", (), "int64"),
            Field("version", (), "int64"),
            Field("block", (), "int64"),
            Field("worker", (), "int64"),
            Field("observation", (steps + 1, lanes, *spec.observation.shape), spec.observation.dtype),
            Field("action", (steps, lanes, *spec.action.shape), spec.action.dtype),
            Field("reward", (steps, lanes), "float64"),  # as the environment gave it: returns are sums of these
            Field("terminated", (steps, lanes), "bool"),
            Field("truncated", (steps, lanes), "bool"),
            Field("ended", (steps, lanes), "bool"),  # the episode is over: where only a life was lost, terminated alone is set
            Field("valid", (steps, lanes), "bool"),
            Field("log_prob", (steps, lanes), "float32"),
            Field("value", (steps + 1, lanes), "float32"),
            Field("episode_return", (steps, lanes), "float64"),  # so far, this step included; whole where a flag is set
            Field("episode_length", (steps, lanes), "int32"),
            Field("steps_done", (lanes,), "int32"),  # T, or less in a lane of a segment that was cut
            Field("return_accumulator", (lanes,), "float64"),  # discounted return before row 0, for reward normalisation
            Field("starts_with_reset", (lanes,), "bool"),  # row 0 is a reset row: the episode ended in the segment before
            Field("memory", (lanes, shape.memory_size), "float32"),
        ]
    )


@dataclass(frozen=True)
class Segment:
    """Views into one slot."""

    segment: Array
    version: Array
    block: Array
    worker: Array
    observation: Array
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    ended: Array
    valid: Array
    log_prob: Array
    value: Array
    episode_return: Array
    episode_length: Array
    steps_done: Array
    return_accumulator: Array
    starts_with_reset: Array
    memory: Array

    def stamp(self, *, segment: int, version: int, block: int, worker: int) -> None:
        """Write into the slot itself whose data it will hold; the learner compares."""
        self.segment[...], self.version[...] = segment, version
        self.block[...], self.worker[...] = block, worker


class Slots:
    """All slots of a run over one arena."""

    def __init__(self, arena: Arena, spec: EnvironmentSpec, shape: SegmentShape, count: int) -> None:
        self.arena = arena
        self.shape = shape
        self.count = count
        self._fields = segment_layout(spec, shape).views(arena.memory, count)
        self._segments = [Segment(**{name: field[slot, ...] for name, field in self._fields.items()}) for slot in range(count)]

    @classmethod
    def create(cls, spec: EnvironmentSpec, shape: SegmentShape, count: int) -> Slots:
        """New slots, after checking that there is room for them."""
        needed = segment_layout(spec, shape).total_bytes(count)
        require_bytes(needed, f"{count} slots of {shape.steps} steps x {shape.lanes} lanes")
        return cls(Arena.create("slots", needed), spec, shape, count)

    @staticmethod
    def arena_of(fd: int, spec: EnvironmentSpec, shape: SegmentShape, count: int) -> Arena:
        """The arena behind a descriptor that another process made for the same slots."""
        return Arena(fd, Arena.size_of(segment_layout(spec, shape).total_bytes(count)))

    def __getitem__(self, slot: int) -> Segment:
        return self._segments[slot]

    def gather(self, name: str, slots: Sequence[int]) -> Array:
        """One field of several slots, [M, ...]: a view where they lie side by side, a copy where they do not."""
        first = slots[0]
        if list(slots) == list(range(first, first + len(slots))):
            return self._fields[name][first : first + len(slots)]
        scattered: Array = self._fields[name][np.asarray(slots)]
        return scattered
