"""A checkpoint is a directory, `checkpoints/<version>/`, with

    model.safetensors      the policy's parameters and the normaliser's statistics
    optimizer.safetensors  the optimiser's state
    state.json             everything else, the SHA-256 of the two files above, and its own

It is written aside, synced, and renamed into place; one that goes is renamed out of sight before it is deleted: a directory
under a version's name is whole. Reading runs no pickle and checks every sum; what does not fit is an error by name, never
a fresh start.
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

from penstock.core.errors import BadCheckpoint, Refused
from penstock.core.specs import Array

FORMAT = 1
TENSOR_FILES = ("model.safetensors", "optimizer.safetensors")
STATE_FILE = "state.json"


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
        data = safetensors.numpy.save({key: np.asarray(array, order="C") for key, array in arrays.items()})
        sums[name] = hashlib.sha256(data).hexdigest()
        _write(aside / name, data)
    record = {"format": FORMAT, "version": version, **state}
    signed = {**record, "sha256": {**sums, STATE_FILE: _sum_of(record)}}
    _write(aside / STATE_FILE, msgspec.json.format(msgspec.json.encode(signed), indent=2))
    _sync_directory(aside)
    replaced = _hidden(final) if final.exists() else None  # the same version again, as after a resume
    aside.rename(final)
    _sync_directory(directory)
    if replaced is not None:
        shutil.rmtree(replaced)
    return final


def load(path: Path) -> Checkpoint:
    """Read one checkpoint directory; raises BadCheckpoint on anything that is not exactly one."""
    try:
        state = _read_state(path / STATE_FILE)
        model, optimizer = (_read_tensors(path / name, state["sha256"][name]) for name in TENSOR_FILES)
        return Checkpoint(int(state["version"]), model, optimizer, state)
    except (OSError, KeyError, TypeError, ValueError, msgspec.DecodeError, safetensors.SafetensorError) as error:
        raise BadCheckpoint(f"{path} is not a whole checkpoint: {error}") from error


def versions(directory: Path) -> list[int]:
    """The versions that have a checkpoint here, oldest first."""
    if not directory.is_dir():
        return []
    return sorted(
        int(entry.name) for entry in directory.iterdir() if entry.is_dir() and entry.name.isascii() and entry.name.isdecimal()
    )


def prune(directory: Path, keep: int) -> None:
    """Delete all but the newest `keep`."""
    for version in versions(directory)[: -max(1, keep)]:
        shutil.rmtree(_hidden(directory / str(version)))


def newest(run_dir: Path) -> Path:
    """The newest checkpoint of a run; refuses a directory that has none."""
    found = versions(run_dir / "checkpoints")
    if not found:
        raise Refused(f"{run_dir} has no checkpoint; name the directory of a run, such as the one that its summary ends with")
    return run_dir / "checkpoints" / str(found[-1])


def _read_state(path: Path) -> dict[str, Any]:
    state = msgspec.json.decode(path.read_bytes())
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise BadCheckpoint(f"{path} is not of checkpoint format {FORMAT}")
    said = {key: value for key, value in state.items() if key != "sha256"}
    if _sum_of(said) != state["sha256"][STATE_FILE]:
        raise BadCheckpoint(f"{path} is damaged: it does not agree with its own SHA-256")
    return state


def _read_tensors(path: Path, expected: str) -> dict[str, Array]:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != expected:
        raise BadCheckpoint(f"{path} is damaged: its SHA-256 is not the one in {STATE_FILE}")
    return safetensors.numpy.load(data)


def _sum_of(record: Mapping[str, Any]) -> str:
    """Of what is said, however it is indented."""
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def _hidden(path: Path) -> Path:
    """Take a checkpoint out of sight, so that deleting it can stop half-way."""
    hidden = path.with_name(f".{path.name}.old")
    shutil.rmtree(hidden, ignore_errors=True)
    return path.rename(hidden)


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
