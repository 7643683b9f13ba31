"""Statistics, with the arithmetic written out."""

from __future__ import annotations

import math

import pytest

from penstock.bench.figures import Spread, ratio_of_pairs, steady_rate, student_t


def test_spread_is_median_and_quartiles():
    assert Spread.of([5.0, 1.0, 3.0, 2.0, 4.0]) == Spread(median=3.0, low=2.0, high=4.0, samples=5)
    assert Spread.of([7.0]) == Spread(7.0, 7.0, 7.0, 1)


def test_ratio_is_the_geometric_mean_with_students_interval():
    found = ratio_of_pairs([200.0, 800.0], [100.0, 100.0])  # ratios 2 and 8: logs ln 2 and 3 ln 2
    assert found.mean == pytest.approx(4.0)  # exp of the mean log, 2 ln 2
    # deviation of the logs is sqrt(2) ln 2; over sqrt(2) pairs that is ln 2; times t(1) = 12.706
    assert (found.low, found.high) == pytest.approx((4 * 2**-12.706, 4 * 2**12.706))


def test_equal_pairs_have_no_width_and_one_pair_has_no_interval():
    same = ratio_of_pairs([3.0, 6.0, 9.0], [1.0, 2.0, 3.0])
    assert (same.mean, same.low, same.high) == pytest.approx((3.0, 3.0, 3.0))
    one = ratio_of_pairs([3.0], [1.0])
    assert one.mean == pytest.approx(3.0)
    assert (one.low, one.high, one.pairs) == (None, None, 1)


def test_pairs_must_pair():
    with pytest.raises(ValueError):
        ratio_of_pairs([1.0, 2.0], [1.0])


@pytest.mark.parametrize(("degrees", "t"), [(1, 12.706), (4, 2.776), (19, 2.093), (30, 2.042), (40, 2.021), (120, 1.980)])
def test_student_t(degrees: int, t: float):
    assert student_t(degrees) == pytest.approx(t, abs=2e-3)


def test_steady_rate_skips_the_first_fifth():
    marks = [(10.0, 5.0), (20.0, 6.0), (60.0, 7.0), (100.0, 10.0)]
    assert steady_rate(marks) == pytest.approx((100 - 20) / (10 - 6))
    assert steady_rate(marks, skip=0.5) == pytest.approx((100 - 60) / (10 - 7))


def test_too_short_a_run_has_no_steady_rate():
    assert steady_rate([]) is None
    assert steady_rate([(100.0, 3.0)]) is None
    assert math.isclose(steady_rate([(0.0, 0.0), (50.0, 1.0), (100.0, 2.0)]) or 0.0, 50.0)
