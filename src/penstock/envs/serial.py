"""A block whose lanes are plain environments stepped in turn. Knows no thread and no other process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.core.protocols import ALL, Lanes
from penstock.core.specs import Array, EnvironmentSpec, LanePosition
from penstock.envs.lane import Lane
from penstock.envs.rows import all_finite, allocate_rows
from penstock.envs.standing import Standing

NO_LANES: Array = np.empty(0, np.int64)


class SerialBlock:
    """Steps are done in `receive`, one lane after the other; every lane that was sent is ready at once."""

    def __init__(
        self,
        maker: Callable[[], Any],
        spec: EnvironmentSpec,
        *,
        num_lanes: int,
        block: int,
        seed: int,
        standing: Standing | None = None,
    ) -> None:
        self.spec, self.num_lanes = spec, num_lanes
        self._first_lane, self._seed = block * num_lanes, seed
        self._rows = rows = allocate_rows(spec, num_lanes, standing=standing)
        self.observation, self.reward, self.valid = rows.observation, rows.reward, rows.valid
        self.terminated, self.truncated, self.ended = rows.terminated, rows.truncated, rows.ended
        self._lanes = [Lane(maker, spec, rows, row, lane=self._first_lane + row, seed=seed) for row in range(num_lanes)]
        self._sent: Lanes = NO_LANES

    def reset(self) -> None:
        for lane in self._lanes:
            lane.start()
        self._check()
        self._sent = NO_LANES

    def send(self, lanes: Lanes, actions: Array) -> None:
        self._rows.action[lanes] = actions[lanes]
        self._sent = ALL if isinstance(lanes, slice) and lanes == ALL else self._joined(lanes)

    def receive(self, timeout_s: float | None = None) -> Lanes:  # noqa: ARG002 there is nothing to wait for
        sent, self._sent = self._sent, NO_LANES
        for lane in self._lanes if isinstance(sent, slice) else [self._lanes[row] for row in sent]:
            lane.step()
        self._check()
        return sent

    def fileno(self) -> int:
        return -1

    def position(self, lane: int) -> LanePosition:
        return self._rows.standing.position(lane, lane=self._first_lane + lane, seed=self._seed)

    def close(self) -> None:
        for lane in self._lanes:
            lane.close()

    def _check(self) -> None:
        """One look at the whole block; lane by lane only to find which."""
        if not all_finite(self.observation):
            for lane in self._lanes:
                lane.check()

    def _joined(self, lanes: Lanes) -> Lanes:
        every = np.arange(self.num_lanes)
        sent = np.union1d(every[self._sent], every[lanes])
        return ALL if len(sent) == self.num_lanes else sent
