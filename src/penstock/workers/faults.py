"""An error as a message: what it was, in one line, and its story."""

from __future__ import annotations

import traceback
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.transport.messages import MAX_DETAILS, MAX_LINE, Fault

PACKAGE = Path(__file__).parents[1]


def fault_of(error: BaseException, where: str = "", *, said: str = "") -> Fault:
    """Say what happened so that the supervisor can raise the same kind of error. `said` is what a lane's own process said as it
    died, if one did."""
    story = said + traceback.format_exc()
    if isinstance(error, PenstockError):
        details = said + error.details if said or error.details else story
        return Fault(type(error).__name__, str(error)[:MAX_LINE], details[-MAX_DETAILS:])
    line = f"{where}{type(error).__name__}: {error} ({_place_of(error)})"
    return Fault("RunFailed", line[:MAX_LINE], story[-MAX_DETAILS:])


def _place_of(error: BaseException) -> str:
    """The innermost line that is a person's own, if there is one: neither ours nor a library's."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "site-packages" not in frame.filename and str(PACKAGE) not in frame.filename]
    at = own[-1] if own else frames[-1]
    return f"{at.filename}, line {at.lineno}"
