"""Records and kept runs, made up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.study.conduct import CURVE

ROWS = 10


def record(version: int, staleness: int, value: float | None = 1.0) -> dict[str, Any]:
    """The record of a batch of ten rows, trained at version - 1, of which all are as old as they should be."""
    histogram = [0] * (staleness + 1)
    histogram[min(version - 1, staleness)] = ROWS
    known = {"version": version, "env_steps": version * ROWS, "episodes": version, "return_mean": value}
    return {**known, "staleness_histogram": histogram}


def records(count: int, staleness: int, values: Sequence[float | None] | None = None) -> list[dict[str, Any]]:
    return [record(n, staleness, values[n - 1] if values else float(n)) for n in range(1, count + 1)]


def kept(
    task: str, staleness: int, correction: str, seed: int, values: Sequence[float | None], *, stop_reason: str = "steps"
) -> dict[str, Any]:
    """What a study keeps of a run."""
    made = records(len(values), staleness, values)
    return {
        "task": task,
        "staleness": staleness,
        "correction": correction,
        "seed": seed,
        "stop_reason": stop_reason,
        "env_steps": ROWS * len(values),
        "return_mean": values[-1] if values else None,
        "digest": "d",
        "config_digest": "c",
        "wall_s": 1.0,
        "version_info": {"package": "0", "torch": "2", "commit": "abc"},
        "curve": {name: [entry[name] for entry in made] for name in CURVE},
    }
