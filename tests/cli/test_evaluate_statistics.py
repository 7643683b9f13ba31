"""The interval that `eval` reports."""

from __future__ import annotations

import pytest

from penstock.cli.evaluate import as_text, statistics, t_quantile


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (9, 2.2622), (19, 2.0930), (99, 1.9842), (10**9, 1.95996)],
)
def test_quantiles_of_the_printed_tables(freedom: int, quantile: float):
    assert t_quantile(freedom) == pytest.approx(quantile, rel=2e-3)


def test_one_episode_has_no_spread():
    result = statistics([7.0])
    assert (result["return_mean"], result["return_std"], result["return_low"]) == (7.0, None, None)
    assert as_text(result) == "return 7, 1 episodes"


def test_arithmetic():
    result = statistics([1.0, 3.0])
    assert result["return_std"] == pytest.approx(2**0.5)  # ((1 - 2)^2 + (3 - 2)^2) / (2 - 1) = 2
    assert result["return_high"] == pytest.approx(2 + 12.7062 * 2**0.5 / 2**0.5)
