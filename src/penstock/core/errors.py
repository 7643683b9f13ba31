"""Every error that Penstock raises on purpose. The tree is small:

    PenstockError
    ├── Refused              exit 2: nothing was started; the message says what to change
    │   ├── UnknownName      a setting, algorithm, preset or environment that does not exist; names the nearest
    │   └── MissingExtra     an optional dependency; names the extra to install
    └── RunFailed            exit 1: the run ended because something broke; the message names it
        ├── EnvironmentFault an environment raised, hung or returned nonsense; says where it was
        ├── WorkerDied       a process ended without a word of its own
        ├── NonFinite        a loss, gradient or observation that is not a number
        └── BadCheckpoint    a file that is torn, foreign or of another format

A message is one line and says what to do next. Details that do not fit a line (a traceback) travel in `details`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class PenstockError(Exception):
    """Root of the tree. `details` holds what a log wants to keep and a terminal does not."""

    exit_code = 1

    def __init__(self, message: str, *, details: str = "") -> None:
        super().__init__(message)
        self.details = details


class Refused(PenstockError):
    """The request cannot be carried out as asked; nothing was started."""

    exit_code = 2


class UnknownName(Refused):
    """A name that is not known, with the nearest names that are."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str = "") -> None:
        known = sorted(known)
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        advice = f"did you mean {' or '.join(near)}?" if near else (f"known: {', '.join(known)}" if known else "")
        super().__init__(f"unknown {kind} '{name}'" + (f"; {advice}" if advice else "") + (f" {hint}" if hint else ""))
        self.name = name


class MissingExtra(Refused):
    """Something optional is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install 'penstock[{extra}]'")
        self.extra = extra


class SecondSignal(KeyboardInterrupt):
    """A person insists that a run in one process stops now, whatever it is doing. No error, and so not in the tree; a kind of
    its own, to be told from a KeyboardInterrupt that an environment raises."""


class RunFailed(PenstockError):
    """The run was under way and could not go on."""


class EnvironmentFault(RunFailed):
    """An environment raised, hung or returned nonsense."""


class WorkerDied(RunFailed):
    """A process ended without a word of its own."""


class NonFinite(RunFailed):
    """A number went bad before it reached the weights."""


class BadCheckpoint(RunFailed):
    """A checkpoint that is torn, foreign or of another format."""
