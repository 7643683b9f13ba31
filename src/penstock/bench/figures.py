"""Statistics of repeated measurements. Pure arithmetic: knows nothing of what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

# fmt: off
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on
"""Student's t at 0.975 for 1 to 30 degrees of freedom."""


def student_t(degrees: int) -> float:
    """Student's t at 0.975; past the table the first term of its expansion, which is right to 1e-3 there."""
    return _T_975[degrees - 1] if degrees <= len(_T_975) else 1.96 + 2.372 / degrees


@dataclass(frozen=True, slots=True)
class Spread:
    """Median and quartiles."""

    median: float
    low: float
    high: float
    samples: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of one value or more; quartiles lie between neighbours where they fall between."""
        if len(values) == 1:
            return cls(values[0], values[0], values[0], 1)
        low, median, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(median, low, high, len(values))


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as fast, with a 95 % confidence interval; a single pair has none."""

    mean: float
    low: float | None
    high: float | None
    pairs: int


def ratio_of_pairs(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Geometric mean of the pairs' ratios. The interval is Student's on their logarithms: twice and half weigh the same."""
    logs = [math.log(our / their) for our, their in zip(ours, theirs, strict=True)]
    mean = statistics.fmean(logs)
    if len(logs) == 1:
        return Ratio(math.exp(mean), None, None, 1)
    half = student_t(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return Ratio(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(logs))


def steady_rate(marks: Sequence[tuple[float, float]], skip: float = 0.2) -> float | None:
    """Steps a second between the first mark at or past `skip` of all steps and the last; a mark is (steps, seconds).

    None where fewer than two marks are left.
    """
    if not marks:
        return None
    last_steps, last_s = marks[-1]
    first_steps, first_s = next(mark for mark in marks if mark[0] >= skip * last_steps)
    return (last_steps - first_steps) / (last_s - first_s) if last_s > first_s else None
