"""How long segments take: lanes that step together, lanes that drift, and what a cut leaves over."""

from __future__ import annotations

from itertools import count

import pytest

from penstock.flow.settings import FlowSettings
from penstock.yardstick.law_speed import simulate_law
from penstock.yardstick.pace import Pace, Streams, even


def test_a_cut_segment_ends_with_the_step_under_way() -> None:
    """Steps end at 1, 2, 3, 4. Cut at 1.5: the second step is under way, so two are done, at 2."""
    pace = Pace(steps=4, draw=even(1.0))
    for cut_s, steps in ((0.0, 1), (0.5, 1), (1.0, 1), (1.5, 2), (3.9, 4), (9.0, 4)):
        underway = pace.begin(0, 0, 0.0)
        underway.cut(cut_s)
        assert (underway.steps, underway.end_s) == (steps, steps), f"cut at {cut_s}"
    assert pace.begin(0, 0, 0.0).step_end_s(2.5) == 3.0


def test_the_time_of_a_segment_belongs_to_block_and_number() -> None:
    pace = Pace(seed=3)
    assert pace.begin(1, 7, 0.0).moments_s == pace.begin(1, 7, 0.0).moments_s
    assert pace.begin(1, 7, 0.0).moments_s != pace.begin(2, 7, 0.0).moments_s


def test_lanes_that_step_together_count_as_many_rows() -> None:
    underway = Pace(steps=4, lanes=3, draw=even(1.0)).begin(0, 0, 0.0)
    assert underway.rows == 4 * 3
    underway.cut(1.5)
    assert underway.rows == 2 * 3


def drifting() -> Streams:
    """Block 0 has lanes of 1 s and 2 s a step, block 1 of 3 s and 4 s; two steps a segment."""
    return Streams([iter([1.0] * 9), iter([2.0] * 9), iter([3.0] * 9), iter([4.0] * 9)], lanes_per_block=2, steps=2)


def test_a_drifting_block_takes_as_long_as_its_slowest_lane() -> None:
    underway = drifting().begin(1, 0, 10.0)
    assert underway.moments_s == [[13.0, 16.0], [14.0, 18.0]]
    assert (underway.end_s, underway.steps, underway.rows) == (18.0, 2, 4)
    assert underway.step_end_s(13.5) == 16.0, "the first lane is in its second step, the other ends its first one before"


def test_a_cut_ends_each_drifting_lane_with_its_own_step() -> None:
    """Lane 0 ends steps at 1 and 2, lane 1 at 2 and 4. Cut at 1.5: lane 0 does its second one, lane 1 only its first."""
    underway = drifting().begin(0, 0, 0.0)
    underway.cut(1.5)
    assert underway.moments_s == [[1.0, 2.0], [2.0]]
    assert (underway.steps, underway.rows, underway.end_s) == (2, 3, 2.0)


def test_a_stream_goes_on_where_the_segment_before_was_cut() -> None:
    """Delays 1, 2, 3, ...; three steps a segment. The first is cut in its second step; 3 was drawn and comes next."""
    streams = Streams([(float(n) for n in count(1))], lanes_per_block=1, steps=3)
    first = streams.begin(0, 0, 0.0)
    assert first.moments_s == [[1.0, 3.0, 6.0]]
    first.cut(2.0)
    assert streams.begin(0, 1, 0.0).moments_s == [[3.0, 3.0 + 4.0, 3.0 + 4.0 + 5.0]]
    assert streams.begin(0, 2, 0.0).moments_s == [[6.0, 6.0 + 7.0, 6.0 + 7.0 + 8.0]]


def test_blocks_of_one_lane_slide_over_each_other_where_one_block_waits() -> None:
    """Two lanes, slow in turns: 3 s and 1 s, then 1 s and 3 s. As one block a batch takes 3 s. As two blocks under K = 1 the
    lane that is ahead begins the next round at once, so after its first batch each takes the mean of both."""

    def seconds(lanes_per_block: int) -> float:
        slow_in_turns = [iter([3.0, 1.0] * 9), iter([1.0, 3.0] * 9)]
        pace = Streams(slow_in_turns, lanes_per_block=lanes_per_block, steps=1)
        flow = FlowSettings(schedule="overlap")
        return simulate_law(flow, num_blocks=2 // lanes_per_block, pace=pace, train_s=0.0, versions=8).seconds

    assert seconds(2) == 8 * 3.0
    assert seconds(1) == pytest.approx(8 * 2.0)


def test_marks_are_rows_and_seconds_after_each_batch() -> None:
    speed = simulate_law(
        FlowSettings(schedule="sync"), num_blocks=2, pace=Pace(steps=4, lanes=3, draw=even(1.0)), train_s=0.5, rows=30
    )
    assert speed.marks == ((24, 4.5), (48, 9.0)), "2 blocks x 4 steps x 3 lanes; 4 s and the learner's half"
    assert speed.rows_per_s == 48 / 9.0
