"""What a person may say about the flow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Schedule = Literal["sync", "overlap", "async"]

DEFAULT_STALENESS: dict[str, int] = {"sync": 0, "overlap": 1, "async": 2}


@dataclass(frozen=True, kw_only=True)
class FlowSettings:
    """How rollouts and learning are interleaved."""

    schedule: Schedule = "overlap"
    """sync: the textbook loop; overlap: at the same time, bit-identical from run to run; async: highest throughput."""
    staleness: int | None = None
    """K: no trained sample is older than K versions. None: 0, 1 and 2 for sync, overlap and async."""
    depth: int | None = None
    """D, async only: batches under way beyond the one in training, at most K. None: 1. Without stragglers samples are D
    versions old, however large K is."""
    segments_per_batch: int | None = None
    """M, async only: segments in a batch. None: one for every block."""

    @property
    def bound(self) -> int:
        """K as it is used."""
        return DEFAULT_STALENESS[self.schedule] if self.staleness is None else self.staleness

    @property
    def pinned(self) -> bool:
        return self.schedule != "async"
