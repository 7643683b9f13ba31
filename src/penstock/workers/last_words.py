"""What a process says as it dies of a signal: where in its Python code it was. Python's fault handler writes it without running
any Python, into memory that the supervisor reads once the process is gone.
"""

from __future__ import annotations

import os

from penstock.memory.arena import Arena

MAX_BYTES = 1 << 14


class LastWords:
    """The supervisor's end."""

    def __init__(self) -> None:
        self._arena = Arena.create("last-words", MAX_BYTES)

    @property
    def fd(self) -> int:
        """A descriptor to write to, for the process and all that it forks."""
        return self._arena.fd

    def take(self) -> str:
        """What was said, if anything was; after that the memory is given back."""
        said = heard(self.fd)
        self._arena.close()
        return said


def heard(fd: int) -> str:
    """What has been said so far by a process, or one that it has forked."""
    return os.pread(fd, MAX_BYTES, 0).rstrip(b"\0").decode(errors="replace")
