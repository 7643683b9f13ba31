"""How an environment's failure is told: once, in one line, with where it was. Knows no environment and no process."""

from __future__ import annotations

import json

from penstock.core.errors import EnvironmentFault
from penstock.core.specs import LanePosition
from penstock.envs.refusals import one_line, traceback_of

FAILURES = (Exception, SystemExit)
"""What counts as an environment's failure. One that calls sys.exit() has failed: the run is not its to end."""


def environment_fault(
    environment_id: str, doing: str, cause: str | BaseException, at: LanePosition, *, lanes: str = ""
) -> EnvironmentFault:
    """`doing` is what it was asked for (made, reset, step); `lanes` where more than one lane may be to blame."""
    what = cause if isinstance(cause, str) else one_line(cause)
    where = f"{lanes or f'lane {at.lane}'}, seed {at.seed}, episode {at.episode}, step {at.step}"
    message = f"environment '{environment_id}' failed in {doing} ({where}, last action {at.last_action}): {what}"
    return EnvironmentFault(message, details="" if isinstance(cause, str) else traceback_of(cause))


def packed_fault(fault: EnvironmentFault) -> bytes:
    return json.dumps([str(fault), fault.details]).encode()


def unpacked_fault(packed: bytes) -> EnvironmentFault:
    message, details = json.loads(packed)
    return EnvironmentFault(message, details=details)
