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
    """What this process's cgroup leaves, and each one around it that limits anything. Files that were read count as used
    there, but give way when asked."""
    room: list[int] = []
    for root, controller, limit, usage, inactive in (
        ("/sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"),
        ("/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        for group in _own_groups(controller):
            here = Path(root + group)
            if (here / limit).exists() and (here / usage).exists():
                text = (here / limit).read_text().strip()
                if text != "max":
                    room.append(int(text) - int((here / usage).read_text()) + _counted(here, inactive))
    return room


def _own_groups(controller: str) -> list[str]:
    """The paths of this process's group and of all around it; last "", the mounted root, which in a container may be all."""
    listed = Path("/proc/self/cgroup")
    lines = listed.read_text().splitlines() if listed.exists() else []
    groups: list[str] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            parts = [part for part in path.split("/") if part not in ("", "..")]
            groups += ["/" + "/".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return [*groups, ""]


def _counted(folder: Path, name: str) -> int:
    """One number of the cgroup's memory.stat; 0 where it has none."""
    stat = folder / "memory.stat"
    lines = stat.read_text().splitlines() if stat.exists() else []
    return next((int(line.split()[1]) for line in lines if line.split()[0] == name), 0)


def require_bytes(needed: int, what: str) -> None:
    """Refuse, with both numbers, what would not fit."""
    available = available_bytes()
    if needed > available:
        raise Refused(
            f"{what} needs {needed / 2**20:,.0f} MiB of memory but {available / 2**20:,.0f} MiB are available; "
            "lower n_envs, n_steps, the staleness or the size of the network"
        )
