"""Whether every sample that a run trained had exactly the age that was asked for. Reads records; knows no files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def age_due(version: int, staleness: int) -> int:
    """Under a pinned schedule batch v was acted by version max(0, v - K), so its age is min(v, K)."""
    return min(version, staleness)


def inexact(records: Sequence[Mapping[str, Any]], staleness: int) -> str | None:
    """Why these records do not show the exact age for every sample; None where they do.

    A record is written after its batch: record n (from 1) is of the batch trained at version n - 1. Its histogram must have all
    samples at the one age that is due, and must account for every environment step that was trained.
    """
    if not records:
        return "no batch was trained"
    before = 0
    for trained_at, record in enumerate(records):
        if record["version"] != trained_at + 1:
            return f"the record of version {trained_at + 1} is missing"
        wrong = _wrong_ages(record["staleness_histogram"], age_due(trained_at, staleness), record["env_steps"] - before)
        if wrong is not None:
            return f"the batch trained at version {trained_at} {wrong}"
        before = record["env_steps"]
    return None


def _wrong_ages(histogram: Sequence[int], due: int, rows: int) -> str | None:
    others = [f"{count} of age {age}" for age, count in enumerate(histogram) if count and age != due]
    if others:
        return f"has samples {', '.join(others)}, where {due} is due"
    if sum(histogram) != rows:
        return f"has {sum(histogram)} samples of known age, and {rows} were trained"
    return None
