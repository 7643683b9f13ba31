"""What a person may say about records."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """What is recorded beside metrics.jsonl, and how often the slow readers hear of it."""

    tensorboard: bool = True
    """Write TensorBoard event files into the run's events/ directory."""
    every_s: float = 1.0
    """Least seconds between two points in TensorBoard; metrics.jsonl has every version."""
    lines_every_s: float = 5.0
    """Least seconds between two plain lines where there is no terminal to draw on."""
