"""Episode totals over segment borders, cuts and lost rows, against a loop over one lane at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.store.slots import Segment, SegmentShape, Slots
from penstock.workers.episodes import EpisodeTotals

SPEC = EnvironmentSpec("Test-v0", BoxSpec((1,), "float32", (0,), (1,)), DiscreteSpec(2))
GAMMA = 0.5


class NaiveLane:
    """One lane, one row at a time."""

    def __init__(self) -> None:
        self.gathered, self.length, self.discounted = 0.0, 0, 0.0

    def row(self, reward: float, done: bool, valid: bool) -> tuple[float, int]:
        if not valid:  # the reset row: another episode begins
            self.gathered, self.length = 0.0, 0
            return 0.0, 0
        self.gathered += reward
        self.length += 1
        self.discounted = 0.0 if done else GAMMA * self.discounted + reward
        return self.gathered, self.length


def fill(segment: Segment, lane: int, steps: int, ended: bool, rng: np.random.Generator) -> bool:
    """A lane's rows: rewards in quarters, so that sums are exact. Returns whether its next row is a reset."""
    for t in range(len(segment.reward)):
        open_row = t < steps
        segment.valid[t, lane] = open_row and not ended
        done = open_row and not ended and rng.random() < 0.3
        segment.reward[t, lane] = rng.integers(-20, 20) / 4 if segment.valid[t, lane] else 0
        truncated = rng.random() < 0.5
        segment.terminated[t, lane], segment.truncated[t, lane] = done and not truncated, done and truncated
        if open_row:
            ended = done
    segment.steps_done[lane] = steps
    return ended


@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(1, 6),
    lanes=st.integers(1, 4),
    segments=st.integers(1, 5),
    cut=st.booleans(),
    lost_before=st.integers(1, 9),
)
def test_agrees_with_a_loop_over_one_lane(seed, steps, lanes, segments, cut, lost_before):
    rng = np.random.default_rng(seed)
    segment = Slots.create(SPEC, SegmentShape(steps, lanes), 1)[0]
    totals, naive = EpisodeTotals(lanes, GAMMA), [NaiveLane() for _ in range(lanes)]
    ended = [False] * lanes
    for number in range(segments):
        if number == lost_before:
            totals.forget()
            for lane in naive:
                lane.gathered, lane.discounted = np.nan, 0.0
        assert totals.discounted.tolist() == [lane.discounted for lane in naive]
        steps_done = rng.integers(0, steps + 1, lanes) if cut else np.full(lanes, steps)
        for lane in range(lanes):
            ended[lane] = fill(segment, lane, int(steps_done[lane]), ended[lane], rng)
        totals.close(segment)
        for lane in range(lanes):
            for t in range(steps_done[lane]):
                done = bool(segment.terminated[t, lane] or segment.truncated[t, lane])
                expected = naive[lane].row(float(segment.reward[t, lane]), done, bool(segment.valid[t, lane]))
                found = segment.episode_return[t, lane], segment.episode_length[t, lane]
                np.testing.assert_array_equal(found, expected)


def test_by_hand():
    """Two lanes; the first ends at row 1, the second goes on into the next segment.

    row        0     1     2          return of lane 0: 1, 1+2, reset 0
    reward    1 5   2 6   - 7         return of lane 1: 5, 5+6, 5+6+7, then 18+1, ...
    """
    segment = Slots.create(SPEC, SegmentShape(3, 2), 1)[0]
    totals = EpisodeTotals(2, None)
    segment.reward[...] = [[1, 5], [2, 6], [0, 7]]
    segment.terminated[1, 0] = True
    segment.valid[...] = [[1, 1], [1, 1], [0, 1]]
    segment.steps_done[...] = 3
    totals.close(segment)
    assert segment.episode_return.tolist() == [[1, 5], [3, 11], [0, 18]]
    assert segment.episode_length.tolist() == [[1, 1], [2, 2], [0, 3]]
    segment.reward[...] = 1
    segment.terminated[...], segment.valid[...] = False, True
    totals.close(segment)
    assert segment.episode_return.tolist() == [[1, 19], [2, 20], [3, 21]]
    assert segment.episode_length.tolist() == [[1, 4], [2, 5], [3, 6]]


@pytest.mark.parametrize("gamma", [None, GAMMA])
def test_discounted_returns_only_where_somebody_wants_them(gamma: Any):
    segment = Slots.create(SPEC, SegmentShape(2, 1), 1)[0]
    segment.reward[...], segment.valid[...], segment.steps_done[...] = 1, True, 2
    totals = EpisodeTotals(1, gamma)
    totals.close(segment)
    assert totals.discounted.tolist() == [0.0 if gamma is None else 1.5]
