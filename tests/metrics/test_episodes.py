"""The window of the last hundred returns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.episodes import WINDOW, ReturnWindow


def filled(returns: list[float]) -> ReturnWindow:
    window = ReturnWindow()
    for length, value in enumerate(returns, start=1):
        window.add(value, length)
    return window


def test_nothing_finished_has_no_mean():
    window = ReturnWindow()
    assert (window.mean, window.std, window.last, window.length_mean, window.episodes) == (None, None, None, None, 0)


def test_arithmetic():
    window = filled([1.0, 2.0, 6.0])
    assert window.mean == 3.0  # (1 + 2 + 6) / 3
    assert window.std == pytest.approx((14 / 3) ** 0.5)  # (4 + 1 + 9) / 3
    assert window.last == 6.0
    assert window.length_mean == 2.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3 * WINDOW))
def test_is_the_tail_of_all_returns(returns: list[float]):
    window = filled(returns)
    assert window.mean == pytest.approx(float(np.mean(returns[-WINDOW:])), abs=1e-6)
    assert window.std == pytest.approx(float(np.std(returns[-WINDOW:])), abs=1e-3)
    assert window.episodes == len(returns)


def test_what_is_older_than_the_window_is_forgotten():
    window = filled([1000.0] + [1.0] * WINDOW)
    assert (window.mean, window.std) == (1.0, 0.0)
    assert window.length_mean == sum(range(2, WINDOW + 2)) / WINDOW
    assert window.episodes == WINDOW + 1


def test_a_target_needs_a_full_window():
    window = filled([500.0] * (WINDOW - 1))
    assert not window.reached(475.0)
    window.add(500.0, 500)
    assert window.reached(475.0)
    assert window.reached(500.0)
    assert not window.reached(500.5)
    assert not window.reached(None)
