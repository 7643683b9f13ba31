"""Means, areas and intervals, with the arithmetic written out."""

from __future__ import annotations

from typing import Any

import pytest
from kept_runs import kept

from penstock.study.findings import Curve, Estimate, band, report
from penstock.study.tables import markdown


def test_a_curve_is_a_step_function():
    curve = Curve.of([10, 20, 30], [None, 4.0, 8.0])
    # 0 to 20 is 4 (before the first episode the first value), 20 to 30 is 8, from there on the last
    assert [curve.at(steps) for steps in (1, 10, 20, 21, 30, 99)] == [4.0, 4.0, 4.0, 8.0, 8.0, 8.0]
    assert curve.mean_between(0, 30) == pytest.approx((20 * 4 + 10 * 8) / 30)
    assert curve.mean_between(0, 50) == pytest.approx((20 * 4 + 30 * 8) / 50)
    assert curve.mean_between(15, 25) == pytest.approx((5 * 4 + 5 * 8) / 10)
    assert curve.mean_between(40, 50) == 8.0


def test_final_performance_is_the_last_tenth_of_the_budget():
    curve = Curve.of([50, 95, 103], [1.0, 2.0, 6.0])  # the last batch goes past the budget of 100
    assert curve.final(100) == pytest.approx((5 * 2 + 5 * 6) / 10)  # 90 to 95 is 2, 95 to 100 is 6
    assert curve.whole(100) == pytest.approx((50 * 1 + 45 * 2 + 5 * 6) / 100)


def test_a_run_in_which_no_episode_ended_has_no_return():
    curve = Curve.of([10, 20], [None, None])
    assert (curve.final(20), curve.whole(20), curve.at(5)) == (None, None, None)


def test_the_interval_is_students():
    estimate = Estimate.of([1.0, 2.0, 3.0, 4.0, 5.0])
    # mean 3, variance (4 + 1 + 0 + 1 + 4) / 4 = 2.5, t of four degrees 2.776
    half = 2.776 * (2.5 / 5) ** 0.5
    assert (estimate.mean, estimate.samples) == (3.0, 5)
    assert (estimate.low, estimate.high) == (pytest.approx(3 - half), pytest.approx(3 + half))


def test_few_values_have_no_interval_and_missing_ones_do_not_count():
    assert Estimate.of([7.0]) == Estimate(7.0, None, None, 1)
    assert Estimate.of([]) == Estimate.of([None]) == Estimate(None, None, None, 0)
    assert Estimate.of([None, 7.0, 9.0]).mean == 8.0


def test_a_band_is_the_mean_curve():
    drawn = band([Curve.of([10, 20], [1.0, 3.0]), Curve.of([20], [5.0])], budget=20, points=2)
    assert drawn.steps == (10, 20)
    assert [estimate.mean for estimate in drawn.estimates] == [(1 + 5) / 2, (3 + 5) / 2]


def described(**other: Any) -> dict[str, Any]:
    task = {"env_id": "Task-v0", "steps": 20, "settings": {}}
    axes = {"staleness": [0, 8], "corrections": ["clip", "none"], "seeds": [1, 2]}
    return {"study": "staleness", "algo": "ppo", "tasks": {"task": task}, **axes, "sets": [], **other}


def two_by_two() -> list[dict[str, Any]]:
    diverged = kept("task", 8, "none", 2, [3.0], stop_reason="nonfinite")
    return [
        kept("task", 0, "clip", 1, [10.0, 20.0]),
        kept("task", 0, "clip", 2, [10.0, 24.0]),
        kept("task", 0, "none", 1, [10.0, 30.0]),
        kept("task", 8, "none", 1, [1.0, 5.0]),
        diverged,
    ]


def test_a_report_has_a_row_for_every_combination():
    found = report(described(), two_by_two())
    rows = {(row["staleness"], row["correction"]): row for row in found["rows"]}
    assert list(rows) == [(0, "clip"), (0, "none"), (8, "clip"), (8, "none")]
    clip = rows[0, "clip"]
    assert (clip["final_return"]["mean"], clip["final_return"]["samples"]) == (22.0, 2)
    assert clip["mean_return"]["mean"] == pytest.approx(((10 + 20) / 2 + (10 + 24) / 2) / 2)
    assert rows[8, "clip"]["final_return"]["mean"] is None  # nothing was run
    assert [row["nonfinite"] for row in rows.values()] == [0, 0, 0, 1]
    # the run that diverged after ten steps keeps its last return, 3, to the end of the budget
    assert rows[8, "none"]["final_return"]["mean"] == (5 + 3) / 2
    assert rows[8, "none"]["mean_return"]["mean"] == ((1 + 5) / 2 + 3) / 2


def test_the_table_is_markdown():
    text = markdown(report(described(), two_by_two()))
    assert "**Task-v0**, 20 steps: mean return of the last 10%" in text
    assert "| correction | K = 0 | K = 8 |" in text
    # 12.706 * sqrt(((20 - 22)^2 + (24 - 22)^2) / 1 / 2) = 12.706 * 2
    assert "| `clip` | 22.0 ± 25.4 | - |" in text
    assert "| `none` | 30.0 | 4.0 ± 12.7 (1 not finite) |" in text
    assert "Seeds 1, 2" in text
    nothing = [kept("task", 8, "clip", 1, [], stop_reason="nonfinite")]
    assert "| `clip` | - | - (1 not finite) |" in markdown(report(described(), nothing))
    assert text.endswith("5 runs; package 0, torch 2, commit abc.")
