"""What a person may say about records."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import Refused


@dataclass(frozen=True, kw_only=True)
class MetricsSettings:
    """What is recorded beside metrics.jsonl, and how often the slow readers hear of it."""

    tensorboard: bool = True
    """Write TensorBoard event files into the run's events/ directory."""
    every_s: float = 1.0
    """Least seconds between two points in TensorBoard; metrics.jsonl has every version."""
    lines_every_s: float = 5.0
    """Least seconds between two plain lines where there is no terminal to draw on."""

    def __post_init__(self) -> None:
        for name in ("every_s", "lines_every_s"):
            if not getattr(self, name) >= 0:
                raise Refused(f"metrics.{name} must be 0 or more, not {getattr(self, name)}")
