"""Where named arrays lie in a piece of memory. Every array starts on a 64-byte boundary (a cache line, an AVX-512 load)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.core.specs import Array

ALIGNMENT_BYTES = 64


def aligned(num_bytes: int) -> int:
    """The next multiple of the alignment."""
    return -(-num_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


@dataclass(frozen=True)
class Field:
    """One array of a layout."""

    name: str
    shape: tuple[int, ...]
    dtype: npt.DTypeLike

    @property
    def num_bytes(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True)
class Layout:
    """Fields one after another."""

    fields: tuple[Field, ...]

    @classmethod
    def of(cls, fields: Sequence[Field]) -> Layout:
        names = [field.name for field in fields]
        assert len(names) == len(set(names)), f"a layout names a field twice: {names}"
        return cls(tuple(fields))

    @property
    def num_bytes(self) -> int:
        return sum(aligned(field.num_bytes) for field in self.fields)

    def views(self, memory: memoryview, count: int) -> Mapping[str, Array]:
        """The fields of `count` records of this layout, each as one array [count, *shape].

        Equal fields of all records lie side by side, so that neighbouring records are one view. Each record's begins on a
        cache line of its own: processes that write neighbouring records never write the same line.
        """
        views: dict[str, Array] = {}
        offset = 0
        for field in self.fields:
            inner = np.empty(field.shape, field.dtype).strides
            strides = (aligned(field.num_bytes), *inner)
            views[field.name] = np.ndarray((count, *field.shape), field.dtype, memory, offset, strides)
            offset += aligned(field.num_bytes) * count
        return views

    def total_bytes(self, count: int) -> int:
        """What `count` records need."""
        return self.num_bytes * count
