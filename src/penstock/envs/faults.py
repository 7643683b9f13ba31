"""How an environment's failure is told: once, in one line, with where it was. Knows no environment and no process."""

from __future__ import annotations

import json
import signal
import sys
import threading

from penstock.core.errors import EnvironmentFault, SecondSignal
from penstock.core.specs import LanePosition
from penstock.envs.refusals import one_line, traceback_of


def failures() -> tuple[type[BaseException], ...]:
    """What counts as an environment's failure, asked when something was raised: all that it can raise. One that calls
    sys.exit() has failed, the run is not its to end; some raise what is no Exception at all, as a panic in Rust does. Only
    what a person's Ctrl-C raises passes."""
    return () if _of_a_person(sys.exception()) else (BaseException,)


def _of_a_person(raised: BaseException | None) -> bool:
    """In a worker no signal raises anything, and in a run in one process only SecondSignal is raised by one: a plain
    KeyboardInterrupt is the environment's own. Elsewhere, as in `penstock eval`, Python raises it in the main thread
    at Ctrl-C."""
    if isinstance(raised, KeyboardInterrupt) and not isinstance(raised, SecondSignal):
        at_ctrl_c = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        return at_ctrl_c and threading.current_thread() is threading.main_thread()
    return isinstance(raised, SecondSignal)


def environment_fault(
    environment_id: str, doing: str, cause: str | BaseException, at: LanePosition, *, lanes: str = ""
) -> EnvironmentFault:
    """`doing` is what it was asked for (made, reset, step); `lanes` where more than one lane may be to blame."""
    what = cause if isinstance(cause, str) else one_line(cause)
    message = f"environment '{environment_id}' failed in {doing} ({named_place(at, lanes)}): {what}"
    return EnvironmentFault(message, details="" if isinstance(cause, str) else traceback_of(cause))


def named_place(at: LanePosition, lanes: str = "") -> str:
    """Enough to find the step again."""
    return f"{lanes or f'lane {at.lane}'}, seed {at.seed}, episode {at.episode}, step {at.step}, last action {at.last_action}"


def packed_fault(fault: EnvironmentFault) -> bytes:
    return json.dumps([str(fault), fault.details]).encode()


def unpacked_fault(packed: bytes) -> EnvironmentFault:
    message, details = json.loads(packed)
    return EnvironmentFault(message, details=details)
