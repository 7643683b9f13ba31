"""An algorithm of a person's own, named as module:Class: writes every batch that it is fed to a file, then does as PPO."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from penstock.algorithms.batch import Batch
from penstock.algorithms.ppo import PPO


class Recording(PPO):
    """Subclasses say where to write."""

    directory = ""

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        arrays = {name: array for name, array in vars(batch).items() if array is not None}
        np.savez(Path(self.directory) / f"batch{batch.version:05}.npz", **arrays)
        return super().update(batch, progress)
