"""The fork server: a process with torch loaded that starts workers in milliseconds.

It is started first of all, so that `import torch` (over a second) runs while settings are read and checked. It runs no
torch operation, no BLAS and no thread, so forking it is safe; it never runs a user's code.

Who ends when: the server watches the supervisor itself (a pidfd) and its socket; at the end of either, whatever the
supervisor died of, it kills its children and ends. The socket alone would not do: what the supervisor forks, a callback's
helper or a loader of data, keeps a copy of it open. Each child has asked the kernel for SIGKILL on the server's death.
Neither needs the GIL of a process in which an environment may be stuck. Each child leads a process group, which is killed
with it: so end the programs that its environments have started. Those that have left the group become children of the
server, a subreaper, and are killed once no worker is left. The server leads its own session, so that a terminal's Ctrl-C
reaches the supervisor alone; where SIGTERM is sent to every process there is, server and workers leave it to the supervisor
too.

This file imports no torch: the supervisor uses the first half, the server process the second.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import cloudpickle
import msgspec

from penstock.core.errors import RunFailed
from penstock.core.loading import load_object
from penstock.memory.arena import Arena
from penstock.workers.last_words import LastWords

MAX_DESCRIPTORS = 16
PRELOAD = ("torch", "numpy", "gymnasium", "penstock.workers.process", "penstock.workers.learner", "penstock.workers.sampler")
MALLOC = {"MALLOC_MMAP_THRESHOLD_": str(1 << 30), "MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_TOP_PAD_": str(1 << 24)}
"""glibc: keep what was freed. Handing batches' scratch memory back and faulting it in again costs a fifth of an update."""
THREADS = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


class Launch(msgspec.Struct, frozen=True, tag=True):
    """Start a worker; its payload and everything that it shares come as descriptors."""

    number: int
    title: str


class Kill(msgspec.Struct, frozen=True, tag=True):
    """End this worker at once. The server reaps its children itself, so the pid cannot have become another's."""

    number: int


class Preloaded(msgspec.Struct, frozen=True, tag=True):
    """The server is ready, or `error` says why not."""

    seconds: float
    error: str | None


class Launched(msgspec.Struct, frozen=True, tag=True):
    """The worker runs under this pid."""

    number: int
    pid: int


class Exited(msgspec.Struct, frozen=True, tag=True):
    """The worker is dead: exit code, or minus the signal's number."""

    number: int
    code: int
    words: str = ""  # filled in by the supervisor's half


_requests = msgspec.msgpack.Decoder(Launch | Kill)
_replies = msgspec.msgpack.Decoder(Preloaded | Launched | Exited)
_encode = msgspec.msgpack.Encoder().encode


# ---------------------------------------------------------------- the supervisor's half


class ForkServer:
    """Starts the server process at once; use it when `Preloaded` has come. Several runs may use one, one after another."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own_path = os.environ.get("PYTHONPATH")
        code = f"from penstock.workers.forkserver import serve; serve({theirs.fileno()}, {own_path!r}, {os.getpid()})"
        environment = {**os.environ, **THREADS, **MALLOC, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._socket = ours
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],  # -P: no file of the working directory can stand in for a library
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._num_launched = 0
        self._words: dict[int, LastWords] = {}  # of workers that live
        self.preloaded: Preloaded | None = None  # once it is ready

    def fileno(self) -> int:
        return self._socket.fileno()

    def launch(self, title: str, payload: object, descriptors: Sequence[int]) -> int:
        """Start a worker that unpickles `payload` (see process.py) and owns copies of these descriptors; its number.
        Before them it gets two more: of its payload, and for its last words."""
        data = cloudpickle.dumps(sys.path) + cloudpickle.dumps(payload)
        arena = Arena.create("payload", len(data))
        arena.memory[: len(data)] = data
        self._num_launched += 1
        words = self._words[self._num_launched] = LastWords()
        request = _encode(Launch(self._num_launched, title))
        try:
            socket.send_fds(self._socket, [request], [arena.fd, words.fd, *descriptors])
        except ConnectionError as error:
            raise self._ended() from error
        finally:
            arena.close()
        return self._num_launched

    def kill(self, number: int) -> None:
        with suppress(ConnectionError):  # a server that is gone has taken its workers along
            self._socket.sendall(_encode(Kill(number)))

    def receive(self) -> list[Preloaded | Launched | Exited]:
        """All replies that are there, without waiting."""
        replies: list[Preloaded | Launched | Exited] = []
        while True:
            try:
                data = self._socket.recv(1 << 16, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return replies
            except ConnectionError:
                data = b""  # it died with requests of ours unread
            if not data:
                raise self._ended()
            reply = _replies.decode(data)
            if isinstance(reply, Preloaded):
                self.preloaded = reply
            elif isinstance(reply, Exited):
                reply = msgspec.structs.replace(reply, words=self._words.pop(reply.number).take())
            replies.append(reply)

    def _ended(self) -> RunFailed:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)  # its socket closes a moment before it can be waited for
        return RunFailed(f"the process that starts workers has ended (exit code {self._process.poll()}); see its message above")

    def close(self) -> None:
        """End the server and, with it, every worker that is left."""
        with suppress(OSError):  # it has ended already
            self._socket.shutdown(socket.SHUT_RDWR)  # for every copy of this socket that a child of ours may hold
        self._socket.close()
        for words in self._words.values():
            words.take()
        self._words.clear()
        if self._num_launched == 0:
            self._process.kill()  # it has no worker to end, and need not finish loading torch first
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# ---------------------------------------------------------------- the server's half


@dataclass
class _Children:
    """Workers that have not been reaped."""

    by_pid: dict[int, int]

    def pid_of(self, number: int) -> int | None:
        return next((pid for pid, other in self.by_pid.items() if other == number), None)


def serve(fd: int, own_path: str | None, supervisor_pid: int) -> None:
    """The server process: load, then fork on request, until the supervisor is gone.

    `own_path` is the person's PYTHONPATH: interpreters that environments start get that, not the one that was for us.
    """
    _end_with(supervisor_pid)
    its_end = _end_of(supervisor_pid)
    os.environ.pop("PYTHONPATH")
    if own_path is not None:
        os.environ["PYTHONPATH"] = own_path
    leave_stopping_to_the_supervisor()
    with socket.socket(fileno=fd) as supervisor:
        children = _Children({})
        wakeup, woken = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        try:
            supervisor.sendall(_encode(_preload()))
            _prctl(PR_SET_PDEATHSIG, 0)  # from now on it is watched, and there is time to end the children
            _prctl(PR_SET_CHILD_SUBREAPER, 1)
            _serve_requests(supervisor, its_end, wakeup, children)
        except (EOFError, ConnectionError):
            pass  # the supervisor is gone, which is how a run ends
        finally:
            _end_all(children)
    os._exit(0)


def _end_with(supervisor_pid: int) -> None:
    """While torch loads nobody looks at the socket: until then the kernel ends this process with the supervisor."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != supervisor_pid:
        os._exit(71)


def _end_of(supervisor_pid: int) -> int | None:
    """A descriptor that is readable once that process has ended. The kernel still ends this one with it, so that the number
    cannot be another's by now. None where there is no such thing: then the socket alone says it."""
    try:
        return os.pidfd_open(supervisor_pid) if hasattr(os, "pidfd_open") else None
    except OSError:  # an older kernel, or a sandbox that forbids it
        return None


def _preload() -> Preloaded:
    start = time.perf_counter()
    try:
        for name in PRELOAD:
            __import__(name)
    except Exception as error:  # whatever an import can raise is reported, not hidden
        return Preloaded(time.perf_counter() - start, f"{type(error).__name__}: {error}")
    gc.freeze()  # what is loaded now is never garbage: keep the collector from touching, and so copying, its pages
    return Preloaded(time.perf_counter() - start, None)


def _serve_requests(supervisor: socket.socket, its_end: int | None, wakeup: int, children: _Children) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(supervisor, selectors.EVENT_READ)
        selector.register(wakeup, selectors.EVENT_READ)
        if its_end is not None:
            selector.register(its_end, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj == its_end:
                    raise EOFError
                if key.fileobj is supervisor:
                    _serve_one(supervisor, children)
                else:
                    os.read(wakeup, 4096)
                    _reap(supervisor, children)


def _serve_one(supervisor: socket.socket, children: _Children) -> None:
    data, descriptors, _, _ = socket.recv_fds(supervisor, 1 << 16, MAX_DESCRIPTORS)
    if not data:
        raise EOFError
    for fd in descriptors:
        os.set_inheritable(fd, False)  # a program that an environment starts must not keep our channels open
    match _requests.decode(data):
        case Launch(number, title):
            pid = os.fork()
            if pid == 0:
                supervisor.close()
                _become_worker(title, descriptors)
            for fd in descriptors:
                os.close(fd)
            children.by_pid[pid] = number
            supervisor.sendall(_encode(Launched(number, pid)))
        case Kill(number):
            if (victim := children.pid_of(number)) is not None:
                _kill_group(victim)


def _reap(supervisor: socket.socket, children: _Children) -> None:
    """What a dead worker leaves of its group goes first: until it is reaped, its number cannot be another group's."""
    while True:
        try:
            dead = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return  # neither a worker nor what one left behind
        if dead is None:
            return
        if dead.si_pid not in children.by_pid:
            os.waitpid(dead.si_pid, 0)  # a program that a worker had started, and that has outlived it
            continue
        _kill_group(dead.si_pid)
        _, status = os.waitpid(dead.si_pid, 0)
        number = children.by_pid.pop(dead.si_pid)
        if not children.by_pid:  # before that, who knows whose they are
            _kill_adopted(children)
        supervisor.sendall(_encode(Exited(number, os.waitstatus_to_exitcode(status))))


def _kill_adopted(children: _Children) -> None:
    """Programs of dead workers that had left their worker's group: a subreaper inherits them, and theirs in turn."""
    for pid in _children_of_mine() - children.by_pid.keys():
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _children_of_mine() -> set[int]:
    try:
        return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))
    except OSError:  # a kernel without that list: what has left its group is not found
        return set()


def _end_all(children: _Children) -> None:
    """Every worker and all that they have started, level by level: what a killed one leaves behind becomes ours."""
    for pid in children.by_pid:
        _kill_group(pid)
    children.by_pid.clear()
    with suppress(ChildProcessError):  # when none is left
        while True:
            _kill_adopted(children)
            os.waitpid(-1, 0)


def _kill_group(pid: int) -> None:
    """A worker, which is a child that has not been reaped, and all that it has started."""
    with suppress(ProcessLookupError):  # forked a moment ago, and does not lead its group yet
        os.killpg(pid, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)


def _become_worker(title: str, descriptors: list[int]) -> None:
    """In the child: never returns."""
    code = 70
    try:
        os.setpgid(0, 0)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.register_at_fork(after_in_child=_stop_as_usual)
        _die_with_parent(title)
        faulthandler.enable(descriptors[1])
        code = load_object("penstock.workers.process:run_worker")(descriptors)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:  # nothing may escape into the server's own loop, not even that nobody reads what is printed
        import traceback

        with suppress(Exception):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(code)


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


def leave_stopping_to_the_supervisor() -> None:
    """Let both signals pass. Not SIG_IGN: programs that an environment starts would inherit that."""
    for number in STOP_SIGNALS:
        signal.signal(number, lambda *_: None)


def _stop_as_usual() -> None:
    """In what an environment forks: it may mean to end it with SIGTERM."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


PR_SET_PDEATHSIG, PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 1, 15, 36


def _prctl(option: int, argument: object) -> None:
    """Linux only; elsewhere the socket alone says when to end."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0)


def _die_with_parent(title: str) -> None:
    """Ask the kernel for SIGKILL when the server dies; this works while an environment holds the GIL."""
    parent = os.getppid()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    _prctl(PR_SET_NAME, title.encode()[:15])
    if parent == 1 or os.getppid() != parent:
        os._exit(71)  # the server died in between
