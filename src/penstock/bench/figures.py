"""Statistics of repeated measurements. Pure arithmetic: knows nothing of what was measured."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.intervals import student_t


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
