"""Reads segments of penstock/Counting-v0: every row says which lane, episode and step it is, so misrouting shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.seeds import episode_seed
from penstock.envs.known.counting import NO_ACTION, episode_length, seed_tag


@dataclass
class Cursor:
    """Where a lane stands: its episode, the steps done in it, its return, what it did last."""

    episode: int = 0
    step: int = 0
    last_action: float = NO_ACTION
    ended: bool = False

    @property
    def gathered(self) -> float:
        """Step s pays s."""
        return self.step * (self.step + 1) / 2


class CountingReader:
    """Checks the segments of one block, one after another, row by row against what each row must be."""

    def __init__(self, block: int, lanes: int, *, seed: int, episode_steps: int, truncate: bool = False, ragged: bool = False):
        self._lanes = [block * lanes + lane for lane in range(lanes)]
        self._at = [Cursor() for _ in range(lanes)]
        self._seed, self._episode_steps, self._truncate, self._ragged = seed, episode_steps, truncate, ragged
        self.rows = self.resets = self.ends = 0

    def expects(self, segment: Any) -> bool:
        """Whether this segment begins where the last one stopped."""
        shown = [self._shown(at, lane) for lane, at in enumerate(self._at)]
        return bool(segment.observation[0].tolist() == shown)

    def read(self, segment: Any) -> None:
        """`segment` has the arrays of one segment, totals or not; rows past `steps_done` must be masked."""
        for lane in range(len(self._lanes)):
            self._read_lane(segment, lane)

    def _read_lane(self, segment: Any, lane: int) -> None:
        at = self._at[lane]
        steps = int(segment.steps_done[lane])
        assert getattr(segment, "starts_with_reset", {lane: at.ended})[lane] == at.ended
        self._check_observation(segment, 0, lane, at)
        for t in range(steps):
            ended, action = at.ended, float(segment.action[t, lane])
            self._go_on(at, lane, action)
            where = f"lane {self._lanes[lane]}, row {t}"
            assert segment.valid[t, lane] == (not ended), where
            assert segment.reward[t, lane] == (0 if ended else at.step), where
            assert segment.terminated[t, lane] == (at.ended and not self._truncate), where
            assert segment.truncated[t, lane] == (at.ended and self._truncate), where
            if hasattr(segment, "episode_return"):
                assert segment.episode_return[t, lane] == at.gathered, where
                assert segment.episode_length[t, lane] == at.step, where
            self._check_observation(segment, t + 1, lane, at)
            self.rows += not ended
            self.resets += ended
            self.ends += at.ended
        for field in (segment.valid, segment.terminated, segment.truncated, segment.reward):
            assert not field[steps:, lane].any(), "a row after the cut is not masked"

    def _go_on(self, at: Cursor, lane: int, action: float) -> None:
        if at.ended:
            at.episode, at.step, at.last_action, at.ended = at.episode + 1, 0, NO_ACTION, False
            return
        at.step, at.last_action = at.step + 1, action
        at.ended = at.step == episode_length(self._episode_steps, self._tag(at, lane), ragged=self._ragged)

    def _tag(self, at: Cursor, lane: int) -> int:
        return seed_tag(episode_seed(self._seed, self._lanes[lane], at.episode))

    def _check_observation(self, segment: Any, row: int, lane: int, at: Cursor) -> None:
        assert segment.observation[row, lane].tolist() == self._shown(at, lane), f"lane {self._lanes[lane]}, row {row}"

    def _shown(self, at: Cursor, lane: int) -> list[float]:
        return [self._tag(at, lane), at.episode, at.step, at.last_action]


def naming_value(observation: np.ndarray) -> np.ndarray:
    """A value that says whose it is."""
    return (observation[..., 0] + observation[..., 2] / 128).astype(np.float32)


def same_bytes(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether two rows of segments agree to the bit in all that a learner reads."""
    names = [name for name in vars(one[0]) if name not in ("worker", "memory")]
    return all(
        getattr(a, name).tobytes() == getattr(b, name).tobytes() for a, b in zip(one, other, strict=True) for name in names
    )
