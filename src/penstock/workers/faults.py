"""An error as a message: what it was, in one line, and its story."""

from __future__ import annotations

import traceback

from penstock.core.errors import PenstockError
from penstock.transport.messages import MAX_DETAILS, MAX_LINE, Fault


def fault_of(error: BaseException, where: str = "") -> Fault:
    """Say what happened so that the supervisor can raise the same kind of error."""
    story = traceback.format_exc()
    if isinstance(error, PenstockError):
        return Fault(type(error).__name__, str(error)[:MAX_LINE], (error.details or story)[-MAX_DETAILS:])
    return Fault("RunFailed", f"{where}{type(error).__name__}: {error}"[:MAX_LINE], story[-MAX_DETAILS:])
