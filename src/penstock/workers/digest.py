"""The digest chain: d(v+1) = SHA-256(d(v), batch v, weights v+1). Two runs are the same run exactly as long as it agrees."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from penstock.core.specs import Array, parts_of

BATCH_FIELDS = ("action", "reward", "terminated", "truncated", "valid", "log_prob")


class DigestChain:
    """Starts from the settings that decide the mathematics and the first weights."""

    def __init__(self, settings_digest: str, *, full: bool) -> None:
        self._fields = (*BATCH_FIELDS, "observation") if full else BATCH_FIELDS
        self.value = hashlib.sha256(settings_digest.encode()).hexdigest()

    def extend(self, batch: Mapping[str, Array], weights: Sequence[Array]) -> str:
        """Add a batch (empty for version 0) and the weights and statistics that came of it."""
        digest = hashlib.sha256(self.value.encode())
        for name in self._fields:
            if name in batch:
                for _, part in parts_of(batch[name]):
                    digest.update(np.ascontiguousarray(part).view(np.uint8).data)
        for array in weights:
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        self.value = digest.hexdigest()
        return self.value
