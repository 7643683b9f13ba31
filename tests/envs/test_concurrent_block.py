"""Lanes in threads and processes: waiting, hanging, dying, and what is left behind (nothing)."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from counting_blocks import open_one
from test_environment_faults import open_faulty

from penstock.core.errors import EnvironmentFault
from penstock.core.protocols import ALL
from penstock.testing.block_environment import receive_all

CONCURRENT = ("threads", "processes")


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def step_until_hung(block: Any) -> None:
    block.reset()
    for _ in range(2):
        block.send(ALL, np.zeros(3, int))
        receive_all(block)
    block.send(ALL, np.array([2, 1, 0]))


def step_for_ever(block: Any) -> None:
    while True:
        block.send(ALL, np.zeros(block.num_lanes, int))
        receive_all(block)


@pytest.mark.parametrize("kind", CONCURRENT)
def test_a_hung_environment_answers_to_no_timeout_and_does_not_hold_up_closing(kind: Any) -> None:
    block = open_faulty(kind, "hang")
    step_until_hung(block)
    started = time.monotonic()
    assert len(np.arange(3)[block.receive(0.05)]) == 0
    assert 0.04 < time.monotonic() - started < 1.0
    at = block.position(0)
    assert (at.lane, at.step, at.last_action) == (6, 3, 2), "position tells the step that hangs"
    block.close()
    assert time.monotonic() - started < 3.0


def test_a_process_that_dies_is_told_with_its_exit_code() -> None:
    block = open_faulty("processes", "die")
    step_until_hung(block)
    with pytest.raises(EnvironmentFault, match=r"step 3, last action \d\): its process exited with 7 without a word"):
        receive_all(block)
    block.close()


def test_a_killed_process_is_told_with_its_signal() -> None:
    block = open_one("processes", lanes=2)
    block.reset()
    child = block._hosts[1]._pid  # type: ignore[attr-defined]
    os.kill(child, signal.SIGKILL)
    with pytest.raises(EnvironmentFault, match="SIGKILL"):
        step_for_ever(block)
    block.close()


@pytest.mark.parametrize("kind", CONCURRENT)
def test_closing_leaves_no_thread_process_or_descriptor(kind: Any) -> None:
    open_one(kind).close()  # whatever is opened once for good
    before, threads, children = open_descriptors(), threading.active_count(), psutil.Process().children()
    block = open_one(kind)
    block.reset()
    block.close()
    assert open_descriptors() == before
    deadline = time.monotonic() + 2.0
    while threading.active_count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= threads  # one of the first block's may have been on its way out
    assert psutil.Process().children() == children, "a child is left, or was never reaped"


@pytest.mark.parametrize("kind", CONCURRENT)
def test_slow_lanes_sleep_at_the_same_time_and_cost_nothing(kind: Any) -> None:
    block = open_one(kind, "penstock/Latency-v0", lanes=8, mean_s=0.02, variance=0.0)
    block.reset()
    wall, processor = time.perf_counter(), time.process_time()
    for _ in range(5):
        block.send(ALL, np.zeros(8, int))
        receive_all(block)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    assert 0.1 <= wall < 0.7, "eight lanes in turn would take 0.8 s"
    assert processor < 0.1
    block.close()


@pytest.mark.parametrize("kind", CONCURRENT)
def test_fast_lanes_do_not_wait_for_slow_ones(kind: Any) -> None:
    block = open_faulty(kind, "hang")
    block.reset()
    for _ in range(2):
        block.send(np.array([1]), np.zeros(3, int))
        receive_one = block.receive(5.0)
        assert receive_one.tolist() == [1]  # type: ignore[union-attr]
    block.send(np.array([1]), np.zeros(3, int))  # its third step: lane 1 hangs
    for _ in range(2):
        block.send(np.array([0]), np.zeros(3, int))
        assert select.select([block.fileno()], [], [], 5.0)[0]
        assert block.receive(0).tolist() == [0]  # type: ignore[union-attr]
    block.close()


@pytest.mark.parametrize("kind", CONCURRENT)
def test_a_lane_is_not_sent_twice(kind: Any) -> None:
    block = open_faulty(kind, "none")
    block.reset()
    block.send(np.array([1]), np.zeros(3, int))
    with pytest.raises(ValueError, match="lane 1 was sent"):
        block.send(ALL, np.zeros(3, int))
    block.close()


@pytest.mark.processes
def test_children_die_with_their_parent() -> None:
    """The parent is killed with a hung environment in each child, which can do nothing about it themselves."""
    script = textwrap.dedent("""
        import sys, time
        sys.path.insert(0, sys.argv[1])
        from test_concurrent_block import open_faulty, step_until_hung
        block = open_faulty("processes", "hang")
        step_until_hung(block)
        print(*(host._pid for host in block._hosts), flush=True)
        time.sleep(60)
    """)
    command = [sys.executable, "-c", script, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        children = [int(child) for child in parent.stdout.readline().split()]
        assert len(children) == 3
        parent.kill()
    deadline = time.monotonic() + 2.0
    while time.monotonic() < deadline and any(_alive(child) for child in children):
        time.sleep(0.01)
    survivors = [child for child in children if _alive(child)]
    for child in survivors:  # a failing test leaves nothing behind either
        os.kill(child, signal.SIGKILL)
    assert not survivors


def _alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
