"""A learner that only waits: an algorithm of one's own, as docs/algorithms.md has them. It learns nothing."""

from __future__ import annotations

import os
import time
from typing import Any

import torch
from torch import nn

from penstock.algorithms.batch import Batch
from penstock.bench.overlap.cases import WAIT_VARIABLE
from penstock.models.flat import FlatParameters


class TimedWait:
    """Every batch takes the same stated time, whatever is in it."""

    def __init__(self, policy: nn.Module, settings: Any, seed: int) -> None:
        del settings, seed
        self.flat = FlatParameters(policy)
        self._wait_s = float(os.environ[WAIT_VARIABLE])

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        del progress
        time.sleep(self._wait_s)
        return {"updates": 1, "samples": int(batch.valid.sum())}

    def state(self) -> dict[str, torch.Tensor]:
        """It has none."""
        return {}

    def restore(self, weights: torch.Tensor, state: dict[str, torch.Tensor]) -> None:
        del state
        self.flat.published.copy_(weights)
