"""The world of real processes: a fork server, a channel to each worker, signals. The supervisor's only place to wait."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import time
from collections import deque
from contextlib import ExitStack, suppress
from typing import Any

from penstock.core.clock import SystemClock
from penstock.core.errors import RunFailed
from penstock.core.protocols import Ended, Happening, Interrupted, Said
from penstock.envs.standing import Standings
from penstock.run.signals import StopSignals
from penstock.run.wiring import Wiring
from penstock.store.asks import Asks
from penstock.store.slots import Slots
from penstock.transport.channel import ChannelClosed, SocketChannel
from penstock.transport.messages import Ready, Serve, Stop
from penstock.workers.forkserver import Exited, ForkServer


class ProcessWorld:
    """Processes by incarnation. A worker that is gone is reported once all that it said has been heard."""

    def __init__(self, wiring: Wiring, server: ForkServer, signals: StopSignals) -> None:
        self.clock = SystemClock()
        self._wiring, self._server, self._signals = wiring, server, signals
        self._channels: dict[int, SocketChannel] = {}
        self._unsent: dict[int, deque[Any]] = {}  # for workers that have not been reading for a while
        self._numbers: dict[int, int] = {}  # worker to the server's number of it
        self._hosts: dict[int, tuple[int, ...]] = {}  # samplers' blocks
        self._exited: dict[int, Exited] = {}
        self._broken: RunFailed | None = None  # the server is gone, and the workers with it
        self._slots: Slots | None = None
        self._standings: Standings | None = None
        self._asks: Asks | None = None  # where there is an inference server
        self._inference: int | None = None  # that server
        self._board: Ready | None = None
        self._board_fd = -1
        self._open = ExitStack()  # what is closed at the end, whatever else goes wrong
        self._selector = self._open.enter_context(selectors.DefaultSelector())

    def open(self) -> None:
        """Make what is shared, wait until torch is loaded."""
        self._slots = self._wiring.create_slots()
        self._open.callback(self._slots.arena.close)
        self._standings = self._wiring.create_standings()
        self._open.callback(self._standings.arena.close)
        self._asks = self._wiring.create_asks()
        if self._asks is not None:
            self._open.callback(self._asks.arena.close)
        self._selector.register(self._signals, selectors.EVENT_READ, "signal")
        self._selector.register(self._server, selectors.EVENT_READ, "server")
        while self._server.preloaded is None:
            for happening in self.wait(None):
                if isinstance(happening, Interrupted):
                    raise KeyboardInterrupt if happening.signal == signal.SIGINT else SystemExit(128 + happening.signal)
        if self._server.preloaded.error is not None:
            raise RunFailed(f"workers cannot be started: {self._server.preloaded.error}; run `penstock doctor`")

    def start_learner(self, worker: int) -> None:
        assert self._slots is not None
        self._launch(worker, "penstock-learner", self._wiring.learner_plan(worker), [self._slots.arena.fd])

    def start_inference(self, worker: int) -> None:
        assert self._slots is not None
        assert self._asks is not None
        assert self._board is not None
        plan = self._wiring.inference_plan(worker, self._board)
        self._launch(worker, "penstock-infer", plan, [self._slots.arena.fd, self._board_fd, self._asks.arena.fd])
        self._inference = worker

    def start_sampler(self, worker: int, index: int, blocks: tuple[int, ...]) -> None:
        assert self._slots is not None
        assert self._standings is not None
        assert self._board is not None
        self._hosts[worker] = blocks
        plan = self._wiring.sampler_plan(worker, index, blocks, self._board)
        title, own = f"penstock-smp-{index}", [self._slots.arena.fd, self._standings.arena.fd]
        if self._asks is None:
            self._launch(worker, title, plan, [*own, self._board_fd])
            return
        line, far_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with line, far_end:
            self._launch(worker, title, plan, [*own, self._asks.arena.fd, line.fileno()])
            self._serve(far_end)

    def send(self, worker: int, message: Any) -> None:
        """Never waits: a supervisor that waits for one worker is deaf to all others, and to signals."""
        if worker in self._channels:
            self._unsent[worker].append(message)
            self._send_what_fits(worker)

    def kill(self, worker: int) -> None:
        self._server.kill(self._numbers[worker])

    def wait(self, timeout_s: float | None) -> list[Happening]:
        """What happened, each worker's words before its end."""
        if self._broken is not None:
            raise self._broken
        happened: list[Happening] = []
        for key, events in self._selector.select(timeout_s):
            if key.data == "server":
                self._hear_server()
            elif key.data != "signal":
                if events & selectors.EVENT_WRITE:
                    self._send_what_fits(key.data)
                if events & selectors.EVENT_READ:
                    happened += self._hear(key.data)
        return [*happened, *self._signals.take(), *self._ended()]

    def close(self, grace_s: float) -> None:
        """Tell everybody to stop, give them until the grace is over or a signal comes, then end what is left."""
        with self._open:  # closes the rest whatever goes wrong here
            for worker in list(self._channels):
                self.send(worker, Stop())
            deadline = time.monotonic() + grace_s
            with suppress(RunFailed):  # then the server is gone, and nobody is left to wait for
                while self._channels.keys() - self._exited.keys() and (left_s := deadline - time.monotonic()) > 0:
                    if any(isinstance(happening, Interrupted) for happening in self.wait(left_s)):
                        break
            self._kill_the_rest()

    # ---------------------------------------------------------------- workers

    def _kill_the_rest(self) -> None:
        """End who did not stop; their channels close, and the server reaps them."""
        for worker in list(self._channels):
            if worker not in self._exited:
                self.kill(worker)
            self._hang_up(worker)

    def _serve(self, far_end: socket.socket) -> None:
        """Hand a sampler's line to the inference server. That has room for it: little else is ever said to it."""
        assert self._inference is not None
        if self._inference in self._channels:
            with suppress(ChannelClosed):  # it has died, and its end will be heard of
                self._channels[self._inference].send(Serve(), [far_end.fileno()])

    def _launch(self, worker: int, title: str, plan: object, descriptors: list[int]) -> None:
        channel, theirs = SocketChannel.pair()
        self._numbers[worker] = self._server.launch(title, plan, [theirs.fileno(), *descriptors])
        theirs.close()
        self._channels[worker], self._unsent[worker] = channel, deque()
        self._selector.register(channel, selectors.EVENT_READ, worker)

    def _send_what_fits(self, worker: int) -> None:
        """In order; the selector says when there is room for the rest."""
        channel, unsent = self._channels[worker], self._unsent[worker]
        try:
            while unsent and channel.offer(unsent[0]):
                unsent.popleft()
        except ChannelClosed:
            unsent.clear()  # it has died: what it said last is still to be heard, and the server will say how it ended
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if unsent else 0)
        if self._selector.get_key(channel).events != wanted:
            self._selector.modify(channel, wanted, worker)

    def _hear(self, worker: int) -> list[Happening]:
        channel = self._channels[worker]
        try:
            heard = channel.receive()
        except ChannelClosed:
            self._hang_up(worker)
            return []
        for message in heard:
            if isinstance(message, Ready):
                self._board, self._board_fd = message, channel.descriptors.pop()
                self._open.callback(os.close, self._board_fd)
        return [Said(worker, message) for message in heard]

    def _hang_up(self, worker: int) -> None:
        channel = self._channels.pop(worker)
        del self._unsent[worker]
        self._selector.unregister(channel)
        channel.close()

    def _ended(self) -> list[Happening]:
        """Workers that are dead, after their last words. All of these are in the channel by then; its end of file may
        never come, if a process that an environment started holds a copy of the far end."""
        happened: list[Happening] = []
        for worker in list(self._exited):
            if worker in self._channels:
                happened += self._hear(worker)
            if worker in self._channels:
                self._hang_up(worker)
            exited = self._exited.pop(worker)
            happened.append(Ended(worker, exited.code, exited.words, self._under_way(worker)))
        return happened

    def _under_way(self, worker: int) -> tuple[str, ...] | None:
        """What a dead sampler's environments were at."""
        blocks = self._hosts.get(worker)
        if blocks is None or self._standings is None:
            return None
        return self._standings.under_way(blocks, self._wiring.job.run.seed)

    # ---------------------------------------------------------------- the server

    def _hear_server(self) -> None:
        workers = {number: worker for worker, number in self._numbers.items()}
        try:
            replies = self._server.receive()
        except RunFailed as error:
            self._selector.unregister(self._server)  # nothing more will come; its workers have died with it
            self._broken = error  # to be said once what has been heard is dealt with
            return
        for reply in replies:
            if isinstance(reply, Exited) and reply.number in workers:  # else it is of a run before this one
                self._exited[workers[reply.number]] = reply
