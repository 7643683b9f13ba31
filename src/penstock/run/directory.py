"""What a run leaves on disk, and the promise that nothing else is ever written elsewhere.

config.toml      complete and loadable          journal.jsonl   what started, died, was cut; each version's digest
metrics.jsonl    a record for every version     summary.json    strict JSON, written at the end
events/          TensorBoard                    checkpoints/    see checkpoint/files.py
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from penstock.core.errors import Refused

JOURNAL = "journal.jsonl"
"""The first file of a run: who makes it owns the directory."""
FINISHED = ("return", "steps", "minutes")
"""Reasons to stop after which nothing is left to do."""


def default_directory(env_id: str, algo: str, seed: int) -> Path:
    """`runs/<env>-<algo>-s<seed>-<time>`."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", f"{env_id}-{algo}")
    return Path("runs") / f"{name}-s{seed}-{time.strftime('%Y%m%d-%H%M%S')}"


class RunDirectory:
    """A directory that this run alone writes to."""

    def __init__(self, path: Path, *, shown: str, made: Sequence[Path]) -> None:
        self.path = path
        self.shown = shown  # as a person reads it: relative where it was named so
        self._made = made  # what did not exist before, innermost first

    @classmethod
    def create(cls, out: Path | None, *, env_id: str, algo: str, seed: int, here: Path = Path()) -> RunDirectory:
        """Make it; an existing one must be empty, so that no run ever writes over another. A relative one lies in `here`."""
        chosen = out or default_directory(env_id, algo, seed)
        try:
            path, made = _make_new(here / chosen) if out is None else _make_asked(here / chosen, shown=chosen)
            if not os.access(path, os.W_OK | os.X_OK):
                raise Refused(f"cannot write to {chosen}: permission denied; name another directory with --out")
            (path / JOURNAL).touch(exist_ok=False)
        except FileExistsError as error:
            raise Refused(f"another run is starting in --out {chosen}; name another directory") from error
        except OSError as error:
            raise Refused(f"cannot make {chosen}: {error.strerror}; name another directory with --out") from error
        return cls(path, shown=str(chosen.with_name(path.name) if out is None else chosen), made=made)

    def discard(self) -> None:
        """Leave nothing behind where nothing was trained. All that is in it is ours: it was empty when the run began."""
        if self._holds_training:
            return
        for entry in self.path.iterdir():
            if entry.is_dir():
                shutil.rmtree(entry)
            else:
                entry.unlink()
        for place in self._made:
            try:
                place.rmdir()
            except OSError:
                return  # somebody else has put something there meanwhile, or has already removed it

    @property
    def _holds_training(self) -> bool:
        """Every version that was trained has its line there, whatever happened next."""
        metrics = self.path / "metrics.jsonl"
        return metrics.exists() and metrics.stat().st_size > 0

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def write_text(self, name: str, text: str) -> None:
        """Write a small file whole or not at all."""
        aside = self.path / f".{name}.writing"
        aside.write_text(text, encoding="utf-8")
        aside.rename(self.path / name)


def finished_summary(path: Path) -> dict[str, Any]:
    """The summary of a run that has used up its budget; refuses others, never starts afresh."""
    try:
        summary = msgspec.json.decode((path / "summary.json").read_bytes())
    except (OSError, msgspec.DecodeError):
        summary = {}
    if isinstance(summary, dict) and summary.get("stop_reason") in FINISHED:
        return summary
    raise Refused(
        f"{path} has not finished, and this version cannot go on with a run that was cut short; "
        f"start a new one from its weights: --init-from {path}"
    )


def check_recordable(out: Path | None, here: Path) -> None:
    """The summary names the directory, in UTF-8, in which a name of other bytes cannot be written."""
    path = str(here / (out or "runs"))
    try:
        path.encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode(errors="backslashreplace")
        raise Refused(f"the run's directory {shown} is no text in UTF-8; name another directory with --out") from error


def _make_asked(path: Path, *, shown: Path) -> tuple[Path, list[Path]]:
    """Make the directory that a person named; with what of its path was made for it, innermost first."""
    if path.exists() and not path.is_dir():
        raise Refused(f"--out {shown} is a file; name a directory that is new or empty")
    if path.exists() and any(path.iterdir()):
        raise Refused(f"--out {shown} exists and is not empty; name another directory or use --resume {shown}")
    made = _missing(path)
    path.mkdir(parents=True, exist_ok=True)
    return path, made


def _make_new(path: Path) -> tuple[Path, list[Path]]:
    """Make a directory of this name, or with a number behind it: two runs may start in the same second, and only the kernel
    can say who was first."""
    for count in itertools.count(1):
        candidate = path if count == 1 else path.with_name(f"{path.name}-{count}")
        made = _missing(candidate)
        with suppress(FileExistsError):
            candidate.mkdir(parents=True)
            return candidate, made
    raise AssertionError("numbers do not end")


def _missing(path: Path) -> list[Path]:
    return [place for place in (path, *path.parents) if not place.exists()]


class Journal:
    """Append-only story of a run, a line an event. `story` is what a failure report prints."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("ab", buffering=1 << 16)
        self._encode = msgspec.json.Encoder().encode
        self._start = time.time()

    def write(self, event: str, **facts: Any) -> None:
        """Add an event."""
        record = {"event": event, "time": round(time.time(), 6), **facts}
        self._file.write(self._encode(record) + b"\n")

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()
