"""What a person may say about checkpoints."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    """When checkpoints are written and how many are kept. The first and the last always are."""

    every: int = 0
    """Versions between checkpoints; 0: only the first and the last."""
    keep: int = 3
    """The newest so many are kept."""
