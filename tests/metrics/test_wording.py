"""Numbers as people read them."""

from __future__ import annotations

import pytest

from penstock.metrics.wording import duration, percent, short_count, short_number


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (999, "999"), (1000, "1 k"), (98_765, "98.8 k"), (999_950, "1 M"), (1_234_567, "1.23 M"), (None, "-")],
)
def test_short_count(number: float | None, text: str):
    assert short_count(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (65.4, "1:05"), (3599.6, "1:00:00"), (None, "-"), (float("inf"), "-")],
)
def test_duration(seconds: float | None, text: str):
    assert duration(seconds) == text


def test_numbers_and_shares():
    assert short_number(321.554) == "321.6"
    assert short_number(-12_345.6) == "-12,346"
    assert short_number(float("nan")) == "-"
    assert percent(0.824) == "82 %"
    assert percent(None) == "-"
