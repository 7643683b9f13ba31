"""What a study found, as Markdown for people. Takes the same plain data that --json prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def markdown(found: Mapping[str, Any]) -> str:
    """Two tables for each task: final performance and the mean over the whole budget; below, what the numbers are."""
    parts = []
    for task, about in found["tasks"].items():
        parts.append(f"**{about['env_id']}**, {about['steps']:,} steps: mean return of the last {found['final_share']:.0%}")
        parts.append(_table(found, task, "final_return"))
        parts.append(f"**{about['env_id']}**: mean return over all steps (area under the learning curve)")
        parts.append(_table(found, task, "mean_return"))
    return "\n\n".join([*parts, _footer(found)])


def _table(found: Mapping[str, Any], task: str, figure: str) -> str:
    rows = {(row["staleness"], row["correction"]): row for row in found["rows"] if row["task"] == task}
    head = ["correction", *(f"K = {bound}" for bound in found["staleness"])]
    lines = [head, ["---"] * len(head)]
    for correction in found["corrections"]:
        cells = [_cell(rows[bound, correction], figure) for bound in found["staleness"]]
        lines.append([f"`{correction}`", *cells])
    return "\n".join(_line(cells) for cells in lines)


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _cell(row: Mapping[str, Any], figure: str) -> str:
    estimate, diverged = row[figure], row["nonfinite"]
    text = "-" if estimate["mean"] is None else f"{estimate['mean']:.1f}"
    if estimate["low"] is not None:
        text += f" ± {estimate['mean'] - estimate['low']:.1f}"
    return text + (f" ({diverged} not finite)" if diverged else "")


def _footer(found: Mapping[str, Any]) -> str:
    seeds = ", ".join(map(str, found["seeds"]))
    lines = [
        f"PPO, pinned: every trained sample had age min(version, K), checked in every run. Seeds {seeds}; ± is half the"
        " width of the 95 % interval of the mean over seeds (Student's t). A return is the mean of the last 100 training"
        " episodes.",
    ]
    if any(row["nonfinite"] for row in found["rows"]):
        lines.append("Runs whose numbers stopped being finite count with the last return that they had, if they had one.")
    return "\n".join([*lines, _versions(found["runs"])])


def _versions(runs: Sequence[Mapping[str, Any]]) -> str:
    """Which builds the runs were made with; more than one is worth saying."""
    builds = list(
        dict.fromkeys(
            ", ".join(f"{name} {value}" for name, value in run["version_info"].items() if value is not None) for run in runs
        )
    )
    return f"{len(runs)} runs; {'; '.join(builds)}."
