"""An arena: memory that several processes see, that has no name, and that the kernel frees with its last holder.

`memfd_create` where there is one, so nothing lands in /dev/shm (64 MB in many containers) and nothing survives a SIGKILL;
elsewhere an unlinked temporary file, which has the same properties but may touch the disk.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from pathlib import Path

import psutil

from penstock.core.errors import Refused


class Arena:
    """`num_bytes` of shared memory behind the descriptor `fd`, which whoever receives it can open again."""

    def __init__(self, fd: int, num_bytes: int) -> None:
        self.fd = fd
        self.num_bytes = num_bytes
        self._map = mmap.mmap(fd, num_bytes)

    @classmethod
    def create(cls, purpose: str, num_bytes: int) -> Arena:
        """New zeroed memory. `purpose` shows in /proc/PID/maps, nowhere else."""
        num_bytes = cls.size_of(num_bytes)
        if hasattr(os, "memfd_create"):
            fd = os.memfd_create(f"penstock-{purpose}", os.MFD_CLOEXEC)
        else:
            with tempfile.TemporaryFile() as file:
                fd = os.dup(file.fileno())
        os.ftruncate(fd, num_bytes)
        return cls(fd, num_bytes)

    @staticmethod
    def size_of(num_bytes: int) -> int:
        """What an arena for so many bytes takes: whole pages, at least one."""
        return max(1, -(-num_bytes // mmap.PAGESIZE)) * mmap.PAGESIZE

    @property
    def memory(self) -> memoryview:
        return memoryview(self._map)

    def close(self) -> None:
        """Give up the descriptor. The mapping lives on while arrays refer to it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def available_bytes() -> int:
    """What may still be allocated here: the machine's free memory or what the cgroup leaves, whichever is less."""
    return min([psutil.virtual_memory().available, *_cgroup_room()])


def _cgroup_room() -> list[int]:
    for limit, usage in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        if Path(limit).exists() and Path(usage).exists():
            text = Path(limit).read_text().strip()
            return [] if text == "max" else [int(text) - int(Path(usage).read_text())]
    return []


def require_bytes(needed: int, what: str) -> None:
    """Refuse, with both numbers, what would not fit."""
    available = available_bytes()
    if needed > available:
        raise Refused(
            f"{what} needs {needed / 2**20:,.0f} MiB of shared memory but {available / 2**20:,.0f} MiB are available; "
            "lower n_envs, n_steps or the staleness"
        )
