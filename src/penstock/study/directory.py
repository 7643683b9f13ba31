"""A study's directory: what it is a study of, a file for every run that counts, and where runs are while they are under way.

study.json      what decides the numbers; another study is refused
cells/NAME.json one run: summary, learning curve, the ages of its samples
running/        run directories of runs under way; emptied whenever a study starts or ends
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from penstock.core.errors import Refused
from penstock.study.ages import inexact
from penstock.study.cells import Cell, difference

FORMAT = 1


class StudyDirectory:
    """Open for one study at a time."""

    def __init__(self, path: Path, described: Mapping[str, Any]) -> None:
        self.path, self._described = path, described
        self._lock: IO[str] | None = None

    def __enter__(self) -> StudyDirectory:
        """Make it, or take it up again; refuses what is there but is not this study."""
        document = self.path / "study.json"
        before = _read(document) if document.exists() else None
        if before is None and self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise Refused(f"--out {self.path} is there and is no study; name a new directory")
        if before is not None:
            self._refuse_another(before)
        (self.path / "cells").mkdir(parents=True, exist_ok=True)
        if before is None:
            _write(document, {"format": FORMAT, **self._described})
        self._take()
        self._clear()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is None or not issubclass(kind, Exception):
            self._clear()  # after an error a run's directory may say what went wrong
        if self._lock is not None:
            self._lock.close()

    def kept(self, cell: Cell, config_digest: str) -> dict[str, Any] | None:
        """What was kept of this run; None if it is still to be done. Refuses what does not belong here."""
        path = self._path_of(cell)
        if not path.exists():
            return None
        found = _read(path)
        if found.get("config_digest") != config_digest:
            raise Refused(
                f"{path} was run with other defaults (config_digest {str(found.get('config_digest'))[:12]} there, "
                f"{config_digest[:12]} here, commit {found.get('version_info', {}).get('commit')}); name a new --out"
            )
        wrong = inexact(records_of(found), cell.staleness)
        if wrong is not None:
            raise Refused(f"{path}: {wrong}; remove the file and it is run again")
        return found

    def keep(self, cell: Cell, found: Mapping[str, Any]) -> None:
        """Write down a run, whole or not at all, and drop its directory."""
        _write(self._path_of(cell), {"format": FORMAT, **found})
        shutil.rmtree(self.run_dir(cell), ignore_errors=True)

    def run_dir(self, cell: Cell) -> Path:
        return self.path / "running" / cell.name

    def write(self, name: str, text: str) -> Path:
        """Another file of the study."""
        path = self.path / name
        _replace(path, text)
        return path

    def _path_of(self, cell: Cell) -> Path:
        return self.path / "cells" / f"{cell.name}.json"

    def _refuse_another(self, before: Mapping[str, Any]) -> None:
        here = json.loads(json.dumps({"format": FORMAT, **self._described}))
        found = difference(before, here)
        if found is not None:
            raise Refused(f"{self.path} holds another study: {found}; name a new --out")

    def _take(self) -> None:
        self._lock = (self.path / "study.json").open(encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(f"another process is at work on the study in {self.path}; wait for it or name a new --out") from error

    def _clear(self) -> None:
        shutil.rmtree(self.path / "running", ignore_errors=True)


def records_of(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The records that a kept run was made of, as far as they are kept."""
    columns = found["curve"]
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(f"cannot read {path}: {error}; remove it or name a new --out") from error
    if not isinstance(document, dict):
        raise Refused(f"cannot read {path}: it is no table; remove it or name a new --out")
    return document


def _write(path: Path, document: Mapping[str, Any]) -> None:
    _replace(path, json.dumps(document, allow_nan=False) + "\n")


def _replace(path: Path, text: str) -> None:
    aside = path.with_name(path.name + ".aside")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)
