"""TensorBoard's event files, written by hand. Knows their format, not what a metric means.

The format is forty lines. Importing tensorboard for them would stop the supervisor for 0.2 s, start a thread in it, and
draw in tensorflow where that is installed. A test reads what is written here with tensorboard's own reader.
"""

from __future__ import annotations

import os
import platform
import struct
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from penstock.core.clock import Clock, SystemClock
from penstock.metrics.names import METRICS


class EventFile:
    """A sink that draws curves over `env_steps`: a point at most every `every_s` seconds, and the last record."""

    def __init__(self, directory: Path, *, every_s: float = 1.0, clock: Clock | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        name = f"events.out.tfevents.{time.time_ns() // 1_000_000_000}.{platform.node()}.{os.getpid()}"
        self._file = (directory / name).open("ab", buffering=0)
        self._file.write(_framed(_event(0, _text(3, "brain.Event:2"))))
        self._clock = clock or SystemClock()
        self._every_s = every_s
        self._due_s = self._clock.now()
        self._unwritten: Mapping[str, Any] | None = None

    def write(self, record: Mapping[str, Any]) -> None:
        if self._clock.now() < self._due_s:
            self._unwritten = record
            return
        self._due_s = self._clock.now() + self._every_s
        self._point(record)

    def close(self) -> None:
        if self._unwritten is not None:
            self._point(self._unwritten)
        self._file.close()

    def _point(self, record: Mapping[str, Any]) -> None:
        self._unwritten = None
        self._file.write(_framed(_event(int(record["env_steps"]), _message(5, _summary(_curves(record))))))


def _curves(record: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    """Tag and number of everything in the record that makes a curve; names of a user's own go under `custom/`."""
    for name, value in record.items():
        metric = METRICS.get(name)
        number = _number(value)
        if number is None or (metric and not metric.curve):
            continue
        for tag in metric.tags if metric else (f"custom/{name}",):
            yield tag, number


def _number(value: Any) -> float | None:
    """The number that stands for a value: a list's is its mean; text and nothing have none."""
    if isinstance(value, list | tuple):
        return sum(value) / len(value) if value else None
    return None if value is None or isinstance(value, bool | str) else float(value)


# Protocol buffers: a field is its number and wire type (0 varint, 1 eight bytes, 2 length and bytes, 5 four bytes), then
# its value. An Event has wall_time 1, step 2, file_version 3, summary 5; a Summary's value 1 has tag 1, simple_value 2.


def _event(step: int, content: bytes) -> bytes:
    return b"\x09" + struct.pack("<d", time.time()) + b"\x10" + _varint(step) + content


def _summary(curves: Iterable[tuple[str, float]]) -> bytes:
    return b"".join(_message(1, _text(1, tag) + b"\x15" + _single(value)) for tag, value in curves)


def _single(number: float) -> bytes:
    """Four bytes; what is too large for them is infinite there, as everywhere else in single precision."""
    with np.errstate(over="ignore"):
        return struct.pack("<f", np.float32(number))


def _text(number: int, text: str) -> bytes:
    return _message(number, text.encode())


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Seven bits a byte, lowest first, the eighth bit saying that more follow."""
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _framed(record: bytes) -> bytes:
    """A record as the file holds it: length, its checksum, the bytes, their checksum."""
    length = struct.pack("<Q", len(record))
    return length + _masked_checksum(length) + record + _masked_checksum(record)


def _checksum_of_byte(byte: int) -> int:
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


_CHECKSUMS = tuple(_checksum_of_byte(byte) for byte in range(256))


def _masked_checksum(content: bytes) -> bytes:
    """CRC-32C, rotated and offset as the format asks, so that a checksum of checksums stays a good one."""
    checksum = 0xFFFFFFFF
    for byte in content:
        checksum = checksum >> 8 ^ _CHECKSUMS[(checksum ^ byte) & 0xFF]
    checksum ^= 0xFFFFFFFF
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF)
