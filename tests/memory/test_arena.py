"""Memory without a name: shared by descriptor, freed with its last holder, refused with both numbers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.core.errors import Refused
from penstock.memory import arena as arena_module
from penstock.memory.arena import Arena, available_bytes, require_bytes

MIB = 2**20

OTHER = """
import sys, numpy as np
from penstock.memory.arena import Arena
numbers = np.frombuffer(Arena(int(sys.argv[1]), int(sys.argv[2])).memory, np.int64)
assert numbers[:3].tolist() == [1, 2, 3]
numbers[3] = numbers[:3].sum()
"""


def test_two_processes_see_the_same_memory():
    ours = Arena.create("test", 100)
    numbers = np.frombuffer(ours.memory, np.int64)
    assert not numbers.any()
    numbers[:3] = 1, 2, 3
    command = [sys.executable, "-c", OTHER, str(ours.fd), str(ours.num_bytes)]
    subprocess.run(command, pass_fds=[ours.fd], check=True, timeout=30)
    assert numbers[3] == 6


def test_the_descriptor_is_not_inherited_by_accident():
    assert not os.get_inheritable(Arena.create("test", 1).fd)


def test_arrays_outlive_the_descriptor():
    ours = Arena.create("test", 100)
    numbers = np.frombuffer(ours.memory, np.uint8)
    ours.close()
    ours.close()
    numbers[-1] = 7
    assert numbers.sum() == 7


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only with memfd")
def test_nothing_has_a_name():
    ours = Arena.create("test-of-names", 100)
    link = str(Path(f"/proc/self/fd/{ours.fd}").readlink())
    assert "memfd:penstock-test-of-names" in link
    assert "/dev/shm" not in link


def test_without_memfd_an_unlinked_file_does(monkeypatch):
    monkeypatch.delattr(os, "memfd_create", raising=False)
    ours = Arena.create("test", 100)
    np.frombuffer(ours.memory, np.uint8)[0] = 1
    again = Arena(os.dup(ours.fd), ours.num_bytes)
    assert again.memory[0] == 1
    assert os.fstat(ours.fd).st_nlink == 0


@pytest.mark.parametrize("num_bytes", [0, 1, 4096, 4097])
def test_an_arena_is_whole_pages_and_at_least_one(num_bytes):
    size = Arena.size_of(num_bytes)
    assert size % 4096 == 0
    assert size >= max(1, num_bytes)
    assert Arena.create("test", num_bytes).num_bytes == size


# ---------------------------------------------------------------- what there is


class Machine:
    """Stands for the memory of the machine and of its cgroup."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, free: int) -> None:
        self.root = root
        monkeypatch.setattr(arena_module, "Path", lambda path: root / str(path).lstrip("/"))
        monkeypatch.setattr(arena_module.psutil, "virtual_memory", lambda: type("Memory", (), {"available": free}))

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Machine:
    return Machine(tmp_path, monkeypatch, free=1000 * MIB)


def test_without_a_cgroup_the_machine_decides(machine):
    assert available_bytes() == 1000 * MIB


@pytest.mark.parametrize(("limit", "room"), [("max", 1000), (str(300 * MIB), 200), (str(5000 * MIB), 1000)])
def test_the_tighter_of_machine_and_cgroup_decides(machine, limit, room):
    machine.write("sys/fs/cgroup/memory.max", limit)
    machine.write("sys/fs/cgroup/memory.current", str(100 * MIB))
    assert available_bytes() == room * MIB


@pytest.mark.parametrize("tight", ["a", "a/b", "a/b/c"])
def test_every_group_around_this_process_counts(machine, tight):
    """As under a batch system: the limit is set on a group above, or on one that is not mounted as the root."""
    machine.write("proc/self/cgroup", "0::/a/b/c")
    for group, limit in (("a", "max"), ("a/b", str(900 * MIB)), ("a/b/c", "max"), (tight, str(300 * MIB)), ("other", "1")):
        machine.write(f"sys/fs/cgroup/{group}/memory.max", limit)
        machine.write(f"sys/fs/cgroup/{group}/memory.current", str(100 * MIB))
    assert available_bytes() == 200 * MIB


def test_files_that_were_only_read_do_not_count_as_used(machine):
    """A container that has read its data once has them in memory.current; the kernel drops them when asked."""
    machine.write("sys/fs/cgroup/memory.max", str(300 * MIB))
    machine.write("sys/fs/cgroup/memory.current", str(290 * MIB))
    machine.write("sys/fs/cgroup/memory.stat", f"anon {90 * MIB}\nfile {200 * MIB}\ninactive_file {150 * MIB}")
    assert available_bytes() == 160 * MIB


def test_an_older_cgroup_is_read_too(machine):
    machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes", str(300 * MIB))
    machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", str(50 * MIB))
    assert available_bytes() == 250 * MIB


def test_what_does_not_fit_is_refused_with_both_numbers(machine):
    require_bytes(1000 * MIB, "8 slots")
    with pytest.raises(Refused, match=r"8 slots needs 1,001 MiB .* but 1,000 MiB are available; lower n_envs"):
        require_bytes(1001 * MIB, "8 slots")
