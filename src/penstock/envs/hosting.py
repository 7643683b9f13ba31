"""Where a concurrent lane lives: a thread of this process, or a child process of its own.

Either way it is asked one byte at a time over a connection, and answers each with nothing, or with the fault. Knows
nothing of blocks.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any, Protocol

from penstock.core.errors import EnvironmentFault
from penstock.envs.faults import packed_fault
from penstock.envs.lane import Lane
from penstock.envs.lines import Line, open_line

START, STEP, CLOSE = b"r", b"s", b"c"

_PR_SET_PDEATHSIG = 1


class Host(Protocol):
    """A lane that lives elsewhere."""

    @property
    def connection(self) -> Line: ...

    def release(self) -> str:
        """Let go of it after its connection has ended, or make it end; says how it ended, for reports."""


def serve(lane: Lane, connection: Line) -> None:
    """Do what is asked until told to close, or until nobody is left to ask."""
    asked: dict[bytes, Callable[[], None]] = {START: lane.start, STEP: lane.step}
    try:
        with suppress(EOFError, OSError):
            while (command := connection.recv_bytes()) != CLOSE:
                connection.send_bytes(_answer(asked[command], lane.check))
    finally:
        lane.close()


def _answer(do: Callable[[], None], check: Callable[[], None]) -> bytes:
    try:
        do()
        check()
    except EnvironmentFault as fault:
        return packed_fault(fault)
    return b""


class ThreadHost:
    """A thread that dies with the process, so that a hung environment cannot keep the process alive."""

    def __init__(self, lane: Lane, others: list[Line]) -> None:  # noqa: ARG002 a thread has no copies to close
        self.connection, far_end = open_line()
        threading.Thread(target=self._run, args=(lane, far_end), name="penstock-lane", daemon=True).start()

    @staticmethod
    def _run(lane: Lane, connection: Line) -> None:
        with closing(connection):  # its end is what the other side waits for
            serve(lane, connection)

    def release(self) -> str:
        self.connection.close()
        return "its thread ended"


class ProcessHost:
    """A child forked from here, so that nothing has to be pickled; it dies when the thread that forked it dies."""

    def __init__(self, lane: Lane, others: list[Line]) -> None:
        self.connection, far_end = Pipe()
        parent, libc = os.getpid(), _libc()  # loaded before the fork: a child should not import
        sys.stdout.flush()
        with warnings.catch_warnings():  # forking beside threads is meant: the child runs the environment and no lock of ours
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            _run_child(lane, far_end, [self.connection, *others], parent, libc)
        far_end.close()

    def release(self) -> str:
        """Its work is over or past waiting for; SIGKILL cannot be held up."""
        self.connection.close()
        if self._pid == 0:
            return "its process had ended"
        ended, status = os.waitpid(self._pid, os.WNOHANG)
        if not ended:
            os.kill(self._pid, signal.SIGKILL)
            _, status = os.waitpid(self._pid, 0)
        self._pid = 0
        code = os.waitstatus_to_exitcode(status)
        return f"its process was ended by {signal.Signals(-code).name}" if code < 0 else f"its process exited with {code}"


def _libc() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else None


def _run_child(lane: Lane, connection: Connection, others: list[Line], parent: int, libc: Any) -> None:
    """Never returns: whatever the parent would do next is not this process's to do."""
    status = 1
    try:
        _die_with(parent, libc)
        for inherited in others:
            inherited.close()
        serve(lane, connection)
        status = 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def _die_with(parent: int, libc: Any) -> None:
    if libc is not None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before the line above
        os._exit(1)
    signal.set_wakeup_fd(-1)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal or a scheduler sends them to everyone; the parent decides
        signal.signal(number, lambda *_: None)
