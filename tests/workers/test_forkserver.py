"""The fork server: workers start from it, are reaped by it, and end with it. Real processes."""

from __future__ import annotations

import errno
import multiprocessing
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import RunFailed
from penstock.transport.channel import SocketChannel
from penstock.transport.messages import Fault
from penstock.workers.forkserver import Exited, ForkServer, Launched, Preloaded, _end_of

pytestmark = pytest.mark.processes

PATIENCE_S = 20.0


class Unpacked:
    """A payload whose unpacking, the first thing that a worker does, calls a function."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


def kill_oneself(number: int) -> None:
    os.kill(os.getpid(), number)


def hear(server: ForkServer, kind: type, number: int | None = None) -> Any:
    """The next reply of this kind, about this worker."""
    until = time.monotonic() + PATIENCE_S
    with selectors.DefaultSelector() as selector:
        selector.register(server, selectors.EVENT_READ)
        while selector.select(until - time.monotonic()):
            for reply in server.receive():
                if isinstance(reply, kind) and number in (None, getattr(reply, "number", None)):
                    return reply
    raise AssertionError(f"no {kind.__name__} in {PATIENCE_S} s")


def runs(pid: int) -> bool:
    """Whether there is such a process; one that has ended and waits to be reaped does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def ended_within(pid: int, seconds: float) -> bool:
    until = time.monotonic() + seconds
    while runs(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not runs(pid)


def gone_within(pid: int, seconds: float) -> bool:
    """Not even a zombie is left."""
    until = time.monotonic() + seconds
    while Path(f"/proc/{pid}").exists() and time.monotonic() < until:
        time.sleep(0.01)
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def own_server() -> Iterator[ForkServer]:
    """A server that a test may end."""
    server = ForkServer()
    yield server
    server.close()


def launch(server: ForkServer, payload: object) -> tuple[int, SocketChannel]:
    """A worker with a channel, as the world starts them: its number and our end."""
    ours, theirs = SocketChannel.pair()
    number = server.launch("penstock-test", payload, [theirs.fileno()])
    theirs.close()
    return number, ours


def test_a_worker_that_cannot_read_its_plan_says_so_and_ends(fork_server):
    number, channel = launch(fork_server, "no plan at all")
    assert hear(fork_server, Exited, number).code == 1
    (fault,) = channel.receive()
    assert isinstance(fault, Fault)
    assert "AssertionError" in fault.message + fault.details


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (Unpacked(os._exit, 5), 5),
        (Unpacked(kill_oneself, signal.SIGSEGV), -signal.SIGSEGV),
        (Unpacked(kill_oneself, signal.SIGKILL), -signal.SIGKILL),
    ],
)
def test_how_a_worker_ended_is_told(fork_server, payload, code):
    number, channel = launch(fork_server, payload)
    assert hear(fork_server, Exited, number).code == code
    with pytest.raises(EOFError):
        channel.receive()


def test_a_worker_that_a_signal_ends_leaves_its_traceback(fork_server):
    number, _ = launch(fork_server, Unpacked(kill_oneself, signal.SIGSEGV))
    words = hear(fork_server, Exited, number).words
    assert words.startswith("Fatal Python error: Segmentation fault")
    assert "in kill_oneself" in words
    number, _ = launch(fork_server, Unpacked(os._exit, 5))
    assert hear(fork_server, Exited, number).words == "", "what another said is not its own"


def test_a_worker_is_killed_on_request_and_no_other(fork_server):
    numbers = [launch(fork_server, Unpacked(time.sleep, 60))[0] for _ in range(2)]
    pids = [hear(fork_server, Launched, number).pid for number in numbers]
    fork_server.kill(numbers[0])
    assert hear(fork_server, Exited, numbers[0]).code == -signal.SIGKILL
    assert runs(pids[1])
    fork_server.kill(numbers[0])  # long gone: nobody else is hit
    fork_server.kill(numbers[1])
    assert hear(fork_server, Exited, numbers[1]).code == -signal.SIGKILL


def test_workers_are_deaf_to_ctrl_c(fork_server):
    number, _ = launch(fork_server, Unpacked(time.sleep, 60))
    pid = hear(fork_server, Launched, number).pid
    until = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}/comm").read_text() != "penstock-test\n" and time.monotonic() < until:
        time.sleep(0.01)  # it names itself once it listens to no signal
    os.kill(pid, signal.SIGINT)
    time.sleep(0.1)
    assert runs(pid)
    fork_server.kill(number)
    hear(fork_server, Exited, number)


def test_closing_the_server_ends_its_workers(own_server):
    pids = []
    for _ in range(3):
        number, _ = launch(own_server, Unpacked(time.sleep, 60))
        pids.append(hear(own_server, Launched, number).pid)
    own_server.close()
    assert all(ended_within(pid, 2) for pid in pids)


@pytest.fixture
def helper() -> Iterator[Callable[[], None]]:
    """Starts a process forked from this one, as a callback may: it holds copies of all that is open here."""
    started: list[Any] = []

    def start() -> None:
        started.append(multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,)))
        started[0].start()

    yield start
    for process in started:
        process.kill()
        process.join()


def test_closing_the_server_ends_it_at_once_although_a_helper_holds_its_socket(own_server, helper):
    hear(own_server, Preloaded)
    number, _ = launch(own_server, Unpacked(time.sleep, 60))
    pid = hear(own_server, Launched, number).pid
    helper()
    start = time.monotonic()
    own_server.close()
    assert time.monotonic() - start < 2, "it waited for a server that did not hear of it"
    assert gone_within(pid, 1)


def test_where_no_process_can_be_watched_the_socket_says_it(monkeypatch):
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    assert _end_of(os.getpid()) is None

    def refuse(pid: int) -> int:
        raise OSError(errno.ENOSYS, "not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse, raising=False)
    assert _end_of(os.getpid()) is None


def test_the_servers_death_ends_its_workers_and_is_said(own_server):
    assert hear(own_server, Preloaded).error is None
    number, _ = launch(own_server, Unpacked(time.sleep, 60))
    pid = hear(own_server, Launched, number).pid
    own_server._process.kill()
    assert ended_within(pid, 2)
    with pytest.raises(RunFailed, match="the process that starts workers has ended"):
        hear(own_server, Exited)


def test_a_preload_that_fails_is_said_with_its_cause(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('libfoo.so is missing')\n")
    monkeypatch.syspath_prepend(tmp_path)
    server = ForkServer()
    try:
        assert hear(server, Preloaded).error == "ImportError: libfoo.so is missing"
        assert server.preloaded is not None
        assert server.preloaded.seconds > 0
    finally:
        server.close()


def start_a_program_that_leaves(where: str) -> None:
    """In a session of its own, started by a process that is gone at once: nothing ties it to this worker any more."""
    if os.fork() == 0:
        os.setsid()
        program = os.fork()
        if program:
            Path(where).write_text(str(program))
            os._exit(0)
        time.sleep(600)
        os._exit(0)
    os.wait()
    while not Path(where).exists():
        time.sleep(0.01)
    os._exit(0)


def test_what_has_left_its_workers_group_ends_with_the_last_worker(own_server, tmp_path):
    where = tmp_path / "pid"
    number, _ = launch(own_server, Unpacked(start_a_program_that_leaves, str(where)))
    assert hear(own_server, Exited, number).code == 0
    assert ended_within(int(where.read_text()), 2.0)
    assert gone_within(int(where.read_text()), 2.0), "it was killed, and nobody took note"


def sleep_after_starting_one(where: str) -> None:
    if os.fork() == 0:
        start_a_program_that_leaves(where)
    time.sleep(600)


def test_what_has_left_its_workers_group_ends_with_the_supervisor(own_server, tmp_path):
    where = tmp_path / "pid"
    launch(own_server, Unpacked(sleep_after_starting_one, str(where)))
    until = time.monotonic() + PATIENCE_S
    while not (where.exists() and where.read_text()) and time.monotonic() < until:
        time.sleep(0.01)
    program = int(where.read_text())
    assert runs(program)
    own_server.close()
    assert ended_within(program, 2.0)


def test_a_server_that_died_with_requests_unread_is_named_and_can_be_told_no_more(own_server):
    hear(own_server, Preloaded)
    os.kill(own_server._process.pid, signal.SIGSTOP)
    own_server.kill(7)
    own_server.kill(8)
    os.kill(own_server._process.pid, signal.SIGKILL)
    with pytest.raises(RunFailed, match="exit code -9"):
        hear(own_server, Exited)
    own_server.kill(7)
    with pytest.raises(RunFailed, match="the process that starts workers has ended"):
        own_server.launch("penstock-test", "plan", [])


def test_no_file_of_the_working_directory_stands_in_for_a_library(tmp_path, monkeypatch):
    (tmp_path / "queue.py").write_text("raise RuntimeError('not the library')")
    monkeypatch.chdir(tmp_path)
    server = ForkServer()
    try:
        assert hear(server, Preloaded).error is None
    finally:
        server.close()
