"""What was found, as tables for people. Takes the plain data that --json prints; measures nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.bench.tables import columns, machine_line

CLASSIC_WITHIN, LEAST_FRACTION, LEAST_VARIANCE = 0.05, 0.90, 0.25
"""What has to hold: the classic loop costs what its delays and L say, within this; `overlap` and `async` reach this share of
what the law allows, from this variance up."""


def overlap_table(report: dict[str, Any]) -> str:
    """The baseline and the model of each case; then every schedule and layout; then whether all holds that has to."""
    rows = report["rows"]
    return "\n\n".join([machine_line(report["machine"]), _LEGEND, _classic_table(rows), _runs_table(rows), verdict(rows)])


_LEGEND = """16 environments, step time Gamma distributed with mean 5 ms; 128 steps, then learning. m1, ma, L in mean steps:
m1 a step that waits for the slowest, ma a step where only every 128th does, L learning for each step;
HTS-RL: (m1 + L) / max(ma, L); off: the classic loop's cost against m1 of the very delays it drew, + L;
1x16 one block of 16 drifting lanes, 16x1 sixteen blocks of one; law: a simulation of the law with the same delays"""


def _classic_table(rows: list[dict[str, Any]]) -> str:
    lines = [["variance", "learner", "m1", "ma", "L", "HTS-RL", "classic steps/s", "cost", "m1 + L drawn", "off"]]
    for row in rows:
        classic = row["classic"]
        model = [f"{row[name]:.2f}" for name in ("m1", "ma", "learning")]
        costs = [f"{classic['cost']:.2f}", f"{classic['expected']:.2f}", f"{classic['off']:+.1%}"]
        lines.append(
            [f"{row['variance']:g}", _learner(row), *model, f"{row['hts_speedup']:.2f}x", f"{classic['sps']:,.0f}", *costs]
        )
    return columns(lines)


def _runs_table(rows: list[dict[str, Any]]) -> str:
    lines = [["variance", "learner", "layout", "schedule", "steps/s", "law allows", "reached", "over classic", "HTS-RL"]]
    for row, result in _results(rows):
        rates = [f"{result['sps']:,.0f}", f"{result['simulated_sps']:,.0f}", f"{result['fraction']:.1%}"]
        gains = [f"{result['speedup']:.2f}x", f"{row['hts_speedup']:.2f}x"]
        lines.append([f"{row['variance']:g}", _learner(row), result["layout"], result["schedule"], *rates, *gains])
    return columns(lines)


def verdict(rows: list[dict[str, Any]]) -> str:
    """What was asked for, and where it was missed."""
    off = [f"{_case(row)}: {row['classic']['off']:+.1%}" for row in rows if abs(row["classic"]["off"]) > CLASSIC_WITHIN]
    low = [
        f"{_case(row)}, {result['schedule']} {result['layout']}: {result['fraction']:.1%}"
        for row, result in _results(rows)
        if result["schedule"] != "sync" and row["variance"] >= LEAST_VARIANCE and result["fraction"] < LEAST_FRACTION
    ]
    return "\n".join(
        [
            f"classic within {CLASSIC_WITHIN:.0%} of m1 + L: {_missed(off)}",
            f"overlap and async at {LEAST_FRACTION:.0%} of the law or more, variance {LEAST_VARIANCE:g} up: {_missed(low)}",
        ]
    )


def _missed(where: list[str]) -> str:
    return f"missed by {'; '.join(where)}" if where else "everywhere"


def _results(rows: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for row in rows:
        for result in row["results"]:
            yield row, result


def _case(row: dict[str, Any]) -> str:
    return f"variance {row['variance']:g}, {_learner(row)}"


def _learner(row: dict[str, Any]) -> str:
    return "PPO" if row["share"] is None else f"L = {row['share']:g} ma"
