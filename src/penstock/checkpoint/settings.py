"""What a person may say about checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.errors import Refused

MOST_STEPS_BETWEEN = 1_000_000


@dataclass(frozen=True, kw_only=True)
class CheckpointSettings:
    """When checkpoints are written and how many are kept. One before the first batch and one at the end always are written."""

    every: int | None = None
    """Versions between checkpoints; 0: only the first and the last. None: ten over the run's steps, and at least one every
    million steps."""
    keep: int = 3
    """The newest so many are kept."""

    def __post_init__(self) -> None:
        if self.every is not None and self.every < 0:
            raise Refused(f"checkpoint.every must be 0 or more, not {self.every}")
        if self.keep < 1:
            raise Refused(f"checkpoint.keep must be 1 or more, not {self.keep}")

    def versions_between(self, *, steps: int, batch_rows: int) -> int:
        """`every` as it is used in a run of so many steps; 0: never. Known beforehand, whatever the run's speed."""
        if self.every is not None:
            return self.every
        return max(1, min(steps // 10, MOST_STEPS_BETWEEN) // batch_rows)
