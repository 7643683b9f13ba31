"""Standard output for one line of JSON alone: whatever else is printed meanwhile goes to standard error.

Environments print, in this process and in workers, through Python and through C. Knows no summary.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

_OUTPUT, _ERRORS = 1, 2


@contextmanager
def set_apart(wanted: bool) -> Iterator[None]:
    """Inside, all that is printed goes to standard error; workers inherit that. Afterwards standard output is what it was, and
    what somebody still prints while the process ends goes to standard error again: the line that follows is the last."""
    output: TextIO | None = sys.stdout  # None where it was closed
    if not wanted or output is None:
        yield
        return
    _flush(output)
    kept = os.dup(_OUTPUT)
    _to_errors()
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _flush(output)  # while it still goes there
        os.dup2(kept, _OUTPUT)
        os.close(kept)
        atexit.register(_at_exit, output)


def _to_errors() -> None:
    try:
        os.dup2(_ERRORS, _OUTPUT)
    except OSError:  # that is closed: then nobody wants to hear it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, _OUTPUT)
        os.close(nowhere)


def _at_exit(output: TextIO) -> None:
    _flush(output)
    _to_errors()


def _flush(output: TextIO) -> None:
    """Python's buffer and those of C's standard streams, in which a library's words may wait for the end of the process."""
    with suppress(OSError, ValueError):
        output.flush()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).fflush(None)
