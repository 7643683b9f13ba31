"""SIGINT and SIGTERM, as something that a selector can wait for. Knows no run."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from penstock.core.protocols import Interrupted

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopSignals:
    """Takes both signals until it is closed; off the main thread, where Python gives none, it hears nothing."""

    def __init__(self) -> None:
        self._heard: list[int] = []
        self._num_heard = 0
        self._interrupts: type[KeyboardInterrupt] | None = None
        self._woken, self._wakeup = os.pipe()
        os.set_blocking(self._woken, False)
        self._before: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in STOP_SIGNALS}

    def fileno(self) -> int:
        """Readable once a signal has come."""
        return self._woken

    @property
    def pending(self) -> bool:
        """Whether one has come since last asked."""
        return bool(self._heard)

    def take(self) -> list[Interrupted]:
        """Those that came since last asked, in order."""
        if not self._heard:
            return []
        os.read(self._woken, 4096)
        heard, self._heard = self._heard, []
        return [Interrupted(number) for number in heard]

    @contextmanager
    def second_one_interrupts(self, kind: type[KeyboardInterrupt] = KeyboardInterrupt) -> Iterator[None]:
        """In here a signal that is not the first also raises KeyboardInterrupt, of this kind, whatever is being done."""
        self._interrupts = kind
        try:
            yield
        finally:
            self._interrupts = None

    def close(self) -> None:
        """Whoever had them before has them again."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._woken)
        os.close(self._wakeup)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self._heard.append(number)
        self._num_heard += 1
        os.write(self._wakeup, b"!")
        if self._interrupts is not None and self._num_heard > 1:
            raise self._interrupts
