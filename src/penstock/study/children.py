"""Runs side by side, as child processes. Knows how they are started, heard and ended; not what they say."""

from __future__ import annotations

import contextlib
import ctypes
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO, Any

from penstock.run.signals import StopSignals

GRACE_S = 10.0
"""How long a run may take to end once it is asked to."""

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True)
class Ended:
    """A child that has ended by itself."""

    name: str
    exit_code: int
    output: str
    errors: str
    wall_s: float


@dataclass
class _Child:
    name: str
    process: subprocess.Popen[bytes]
    started_s: float
    streams: int = 2
    said: dict[str, bytearray] = field(default_factory=lambda: {"output": bytearray(), "errors": bytearray()})

    def ended(self) -> Ended:
        code = self.process.wait()
        output, errors = (self.said[stream].decode(errors="replace") for stream in ("output", "errors"))
        return Ended(self.name, code, output, errors, time.monotonic() - self.started_s)


class Children:
    """Those that are under way. Whoever leaves the context leaves none behind."""

    def __init__(self, signals: StopSignals) -> None:
        self._signals = signals
        self._running: list[_Child] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals, selectors.EVENT_READ)

    def __enter__(self) -> Children:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self._selector.close()

    def __len__(self) -> int:
        return len(self._running)

    def start(self, name: str, arguments: Sequence[str]) -> None:
        """`penstock` with these arguments, in a session of its own: Ctrl-C is for the study, which passes it on."""
        process = subprocess.Popen(
            [sys.executable, "-m", "penstock", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_end_with_the_study,
        )
        child = _Child(name, process, time.monotonic())
        self._running.append(child)
        for stream, pipe in (("output", process.stdout), ("errors", process.stderr)):
            assert pipe is not None
            self._selector.register(pipe, selectors.EVENT_READ, (child, stream))

    def wait(self) -> list[Ended]:
        """Wait until a child has ended or a signal has come; those that have ended."""
        ended: list[Ended] = []
        while self._running and not ended and not self._signals.pending:
            for key, _ in self._selector.select():
                if key.data is not None:
                    ended += self._hear(key.fileobj, *key.data)
        return ended

    def _hear(self, pipe: IO[bytes] | Any, child: _Child, stream: str) -> list[Ended]:
        """Take what is there; a child has ended once both of its streams have."""
        heard = os.read(pipe.fileno(), 65536)
        child.said[stream] += heard
        if heard:
            return []
        self._selector.unregister(pipe)
        pipe.close()
        child.streams -= 1
        if child.streams:
            return []
        self._running.remove(child)
        return [child.ended()]

    def _end(self) -> None:
        """Ask all to end as a person would; then no longer ask."""
        for child in self._running:
            child.process.send_signal(signal.SIGINT)
        deadline = time.monotonic() + GRACE_S
        for child in self._running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.process.wait(max(0.0, deadline - time.monotonic()))
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait()
            for pipe in (child.process.stdout, child.process.stderr):
                assert pipe is not None
                pipe.close()
        self._running.clear()


def _end_with_the_study() -> None:
    """In the child: a study that is killed leaves no run behind."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
