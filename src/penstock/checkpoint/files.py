"""A checkpoint is a directory, `checkpoints/<version>/`, with

    model.safetensors      the policy's parameters and the normaliser's statistics
    optimizer.safetensors  the optimiser's state
    state.json             everything else, and the SHA-256 of the two files above

It is written aside, synced, and renamed into place: a directory under its final name is whole. Reading runs no pickle and
checks every sum; what does not fit is an error by name, never a fresh start.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import safetensors.numpy

from penstock.core.errors import BadCheckpoint
from penstock.core.specs import Array

FORMAT = 1
TENSOR_FILES = ("model.safetensors", "optimizer.safetensors")


@dataclass(frozen=True)
class Checkpoint:
    """What was read."""

    version: int
    model: Mapping[str, Array]
    optimizer: Mapping[str, Array]
    state: Mapping[str, Any]


def save(
    directory: Path, version: int, model: Mapping[str, Array], optimizer: Mapping[str, Array], state: Mapping[str, Any]
) -> Path:
    """Write `directory/<version>` whole or not at all."""
    final, aside = directory / str(version), directory / f".{version}.writing"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    sums = {}
    for name, arrays in zip(TENSOR_FILES, (model, optimizer), strict=True):
        data = safetensors.numpy.save({key: np.ascontiguousarray(array) for key, array in arrays.items()})
        sums[name] = hashlib.sha256(data).hexdigest()
        _write(aside / name, data)
    record = {"format": FORMAT, "version": version, "sha256": sums, **state}
    _write(aside / "state.json", msgspec.json.format(msgspec.json.encode(record), indent=2))
    _sync_directory(aside)
    if final.exists():  # the same version again, as after a resume
        shutil.rmtree(final)
    aside.rename(final)
    _sync_directory(directory)
    return final


def load(path: Path) -> Checkpoint:
    """Read one checkpoint directory; raises BadCheckpoint on anything that is not exactly one."""
    try:
        state = msgspec.json.decode((path / "state.json").read_bytes())
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise BadCheckpoint(f"{path / 'state.json'} is not of checkpoint format {FORMAT}")
        tensors = []
        for name in TENSOR_FILES:
            data = (path / name).read_bytes()
            if hashlib.sha256(data).hexdigest() != state["sha256"][name]:
                raise BadCheckpoint(f"{path / name} is damaged: its SHA-256 is not the one in state.json")
            tensors.append(safetensors.numpy.load(data))
    except (OSError, KeyError, TypeError, msgspec.DecodeError, safetensors.SafetensorError) as error:
        raise BadCheckpoint(f"{path} is not a whole checkpoint: {error}") from error
    return Checkpoint(int(state["version"]), tensors[0], tensors[1], state)


def versions(directory: Path) -> list[int]:
    """The versions that have a checkpoint here, oldest first."""
    if not directory.is_dir():
        return []
    return sorted(int(entry.name) for entry in directory.iterdir() if entry.is_dir() and entry.name.isdigit())


def prune(directory: Path, keep: int) -> None:
    """Delete all but the newest `keep`."""
    for version in versions(directory)[: -max(1, keep)]:
        shutil.rmtree(directory / str(version))


def newest(run_dir: Path) -> Path:
    """The newest checkpoint of a run; raises BadCheckpoint if there is none."""
    found = versions(run_dir / "checkpoints")
    if not found:
        raise BadCheckpoint(f"{run_dir} has no checkpoint; is it a run directory?")
    return run_dir / "checkpoints" / str(found[-1])


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
