"""What connects a block with a lane in a thread: the same calls as a connection between processes, at a third of the cost.

A question wakes the thread by a lock, with no system call of ours; an answer rings once, so that a selector hears it. Each side
closes its own descriptor and no other: a thread that hangs may outlive its block, and must not ring at somebody else's door.
"""

from __future__ import annotations

import os
from collections import deque
from queue import SimpleQueue
from typing import Protocol


class Line(Protocol):
    """One end, as `multiprocessing.connection.Connection` has it."""

    def send_bytes(self, message: bytes, /) -> None:
        """OSError if nobody listens any more."""

    def recv_bytes(self) -> bytes:
        """EOFError if the other end is closed."""

    def fileno(self) -> int: ...

    def close(self) -> None: ...


class BlockEnd:
    """Asks, and hears answers."""

    def __init__(self, questions: SimpleQueue[bytes | None], answers: deque[bytes], bell: int) -> None:
        self._questions, self._answers, self._bell = questions, answers, bell

    def send_bytes(self, message: bytes) -> None:
        """A thread that has ended is noticed by its silence: its end of the bell is closed."""
        self._questions.put(message)

    def recv_bytes(self) -> bytes:
        if not os.read(self._bell, 1):
            raise EOFError
        return self._answers.popleft()

    def fileno(self) -> int:
        return self._bell

    def close(self) -> None:
        if self._bell >= 0:
            bell, self._bell = self._bell, -1
            os.close(bell)
            self._questions.put(None)


class ThreadEnd:
    """Hears questions, and answers."""

    def __init__(self, questions: SimpleQueue[bytes | None], answers: deque[bytes], bell: int) -> None:
        self._questions, self._answers, self._bell = questions, answers, bell

    def send_bytes(self, message: bytes) -> None:
        self._answers.append(message)
        os.write(self._bell, b".")

    def recv_bytes(self) -> bytes:
        question = self._questions.get()
        if question is None:
            raise EOFError
        return question

    def fileno(self) -> int:
        return self._bell

    def close(self) -> None:
        if self._bell >= 0:
            bell, self._bell = self._bell, -1
            os.close(bell)


def open_line() -> tuple[BlockEnd, ThreadEnd]:
    """Both ends."""
    questions: SimpleQueue[bytes | None] = SimpleQueue()
    answers: deque[bytes] = deque()
    reading, writing = os.pipe()
    return BlockEnd(questions, answers, reading), ThreadEnd(questions, answers, writing)
