"""Where records are kept: one strict-JSON line each. Knows files, not what a record means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from penstock.core.protocols import Sink


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's; everything else is a mistake of the caller."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"a record holds plain numbers, text and lists, not {type(value).__name__}")


_ENCODER = msgspec.json.Encoder(enc_hook=_plain)


def strict_json(record: Mapping[str, Any]) -> bytes:
    """One line of JSON that every reader accepts: NaN and the infinities, which JSON has no word for, are null."""
    return _ENCODER.encode(record)


class JsonLines:
    """Appends records to a file, one line each.

    Unbuffered, each line one write: whoever follows the file, or reads it after a kill, sees whole lines.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab", buffering=0)

    def write(self, record: Mapping[str, Any]) -> None:
        self._file.write(strict_json(record) + b"\n")

    def close(self) -> None:
        self._file.close()


class Tee:
    """Several sinks as one."""

    def __init__(self, sinks: Iterable[Sink]) -> None:
        self._sinks = tuple(sinks)

    def write(self, record: Mapping[str, Any]) -> None:
        for sink in self._sinks:
            sink.write(record)

    def close(self) -> None:
        for sink in self._sinks:
            sink.close()
