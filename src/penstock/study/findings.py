"""From learning curves to numbers that can be compared. Pure arithmetic: knows no files and no processes.

A learning curve is a step function of environment steps: at each batch the mean return of the last 100 training episodes, as
metrics.jsonl has it. Before the first finished episode it has its first value; after the last batch, also where a run ended
early because its numbers were no longer finite, its last.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.core.intervals import student_t

FINAL_SHARE = 0.1
"""Final performance is the mean over this last share of the budget."""


@dataclass(frozen=True)
class Curve:
    """Where each batch ended, and the return known then; only batches at which one was known."""

    env_steps: tuple[float, ...]
    returns: tuple[float, ...]

    @classmethod
    def of(cls, env_steps: Sequence[float], returns: Sequence[float | None]) -> Curve:
        known = [(steps, value) for steps, value in zip(env_steps, returns, strict=True) if value is not None]
        return cls(tuple(float(steps) for steps, _ in known), tuple(float(value) for _, value in known))

    def at(self, steps: float) -> float | None:
        """The return of the batch that holds this step."""
        if not self.returns:
            return None
        return next((value for end, value in zip(self.env_steps, self.returns, strict=True) if steps <= end), self.returns[-1])

    def mean_between(self, start: float, stop: float) -> float | None:
        """Its mean over these steps: the area under it, over their number."""
        if not self.returns:
            return None
        area, here = 0.0, start
        for end, value in zip(self.env_steps, self.returns, strict=True):
            reached = min(end, stop)
            if reached > here:
                area += (reached - here) * value
                here = reached
        area += (stop - here) * self.returns[-1]
        return area / (stop - start)

    def final(self, budget: float) -> float | None:
        return self.mean_between((1 - FINAL_SHARE) * budget, budget)

    def whole(self, budget: float) -> float | None:
        """The area under the curve, as the mean return over the budget."""
        return self.mean_between(0.0, budget)


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds and its 95 % interval (Student's t); a single seed has none."""

    mean: float | None
    low: float | None
    high: float | None
    samples: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Estimate:
        known = [value for value in values if value is not None]
        if not known:
            return cls(None, None, None, 0)
        mean = statistics.fmean(known)
        if len(known) == 1:
            return cls(mean, None, None, 1)
        half = student_t(len(known) - 1) * statistics.stdev(known) / math.sqrt(len(known))
        return cls(mean, mean - half, mean + half, len(known))


def report(described: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The study's findings as plain data: a row for every task, staleness and correction, and every run."""
    runs = [_run(described, cell) for cell in kept]
    rows = [
        _row(task, bound, correction, runs)
        for task in described["tasks"]
        for bound in described["staleness"]
        for correction in described["corrections"]
    ]
    return {**described, "final_share": FINAL_SHARE, "interval": "95 %, Student's t over seeds", "rows": rows, "runs": runs}


def _run(described: Mapping[str, Any], cell: Mapping[str, Any]) -> dict[str, Any]:
    curve, budget = curve_of(cell), described["tasks"][cell["task"]]["steps"]
    numbers = {"final_return": curve.final(budget), "mean_return": curve.whole(budget)}
    names = ("task", "staleness", "correction", "seed", "stop_reason", "env_steps", "digest", "config_digest", "wall_s")
    return {**{name: cell[name] for name in names}, **numbers, "version_info": cell["version_info"]}


def _row(task: str, bound: int, correction: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    here = [run for run in runs if (run["task"], run["staleness"], run["correction"]) == (task, bound, correction)]
    return {
        "task": task,
        "staleness": bound,
        "correction": correction,
        "final_return": asdict(Estimate.of([run["final_return"] for run in here])),
        "mean_return": asdict(Estimate.of([run["mean_return"] for run in here])),
        "nonfinite": sum(run["stop_reason"] == "nonfinite" for run in here),
    }


def curve_of(cell: Mapping[str, Any]) -> Curve:
    return Curve.of(cell["curve"]["env_steps"], cell["curve"]["return_mean"])


@dataclass(frozen=True)
class Band:
    """The mean of several curves and its interval at each of some steps."""

    steps: tuple[float, ...]
    estimates: tuple[Estimate, ...]


def band(curves: Sequence[Curve], budget: float, points: int = 100) -> Band:
    """Mean and interval of these curves at evenly spaced steps."""
    steps = tuple(budget * (place + 1) / points for place in range(points))
    return Band(steps, tuple(Estimate.of([curve.at(step) for curve in curves]) for step in steps))
