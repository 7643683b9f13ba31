"""Episode returns and lengths, counted over segment borders: raw rewards, whole games, reset rows excluded."""

from __future__ import annotations

import numpy as np

from penstock.models.normaliser import discounted_returns
from penstock.store.slots import Segment


class EpisodeTotals:
    """What each lane has gathered so far in its current episode. `gamma` None: nobody wants discounted returns."""

    def __init__(self, lanes: int, gamma: float | None) -> None:
        self._gamma = gamma
        self._return = np.zeros(lanes, np.float64)
        self._length = np.zeros(lanes, np.int32)
        self.discounted = np.zeros(lanes, np.float64)

    def forget(self) -> None:
        """Rows were lost: the episodes under way are no longer whole and must not be reported as if they were."""
        self._return[:] = np.nan
        self.discounted[:] = 0.0  # better too little than another episode's sum

    def close(self, segment: Segment) -> None:
        """Fill the segment's running totals and carry on from its last rows."""
        rows = np.arange(segment.reward.shape[0])[:, None]
        done = rows < segment.steps_done
        reset = done & ~segment.valid
        # The last reset row at or before each row, or -1: what was gathered up to there belongs to another episode.
        since = np.maximum.accumulate(np.where(reset, rows, -1), axis=0)
        gathered = np.cumsum(segment.reward, axis=0, dtype=np.float64)
        lanes = np.arange(gathered.shape[1])
        before = np.where(since >= 0, gathered[np.maximum(since, 0), lanes], -self._return)
        segment.episode_return[...] = gathered - before
        segment.episode_length[...] = np.where(since >= 0, rows - since, rows + 1 + self._length)
        last, some = np.maximum(segment.steps_done - 1, 0), segment.steps_done > 0
        self._return = np.where(some, segment.episode_return[last, lanes], self._return)
        self._length = np.where(some, segment.episode_length[last, lanes], self._length).astype(np.int32)
        if self._gamma is not None:
            ended = segment.terminated | segment.truncated
            _, self.discounted = discounted_returns(segment.reward, ended, segment.valid, self.discounted, self._gamma)
