"""Everything in one process, for debugging and for what is too small to share out: `--workers 0`.

The same supervisor, law, sampler and learner; only who runs next is decided here instead of by the operating system.
Components that need torch are reached by name, so that importing this file loads nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import threadpoolctl

from penstock.core.clock import SystemClock
from penstock.core.errors import SecondSignal
from penstock.core.loading import load_object
from penstock.core.protocols import Happening, Said
from penstock.run.signals import StopSignals
from penstock.run.wiring import Wiring
from penstock.store.asks import Asks
from penstock.store.slots import Slots
from penstock.transport.channel import LocalChannel
from penstock.transport.messages import Ready
from penstock.workers.faults import fault_of

BLAS_THREADS = 1
"""NumPy's products, as in worker processes: how many threads share a product decides its last bits."""


class InlineWorld:
    """Each worker is an object with a queue; `wait` lets them take turns until one has something to say."""

    def __init__(self, wiring: Wiring, signals: StopSignals) -> None:
        self.clock = SystemClock()
        self._wiring, self._signals = wiring, signals
        self._slots: Slots | None = None
        self._asks: Asks | None = None  # where there is an inference server
        self._inference: Any = None  # that server
        self._learner: Any = None
        self._ready: Ready | None = None
        self._channels: dict[int, LocalChannel] = {}  # this side's ends
        self._far_ends: dict[int, LocalChannel] = {}  # the workers' ends
        self._turns: dict[int, Callable[[], None]] = {}
        self._samplers: set[int] = set()
        self._stopping = False  # a signal has come: nothing that is collected from now on would be trained
        self._open = ExitStack()  # what is closed at the end, whatever else goes wrong

    def open(self) -> None:
        self._slots = self._wiring.create_slots()
        self._open.callback(self._slots.arena.close)
        self._asks = self._wiring.create_asks()
        if self._asks is not None:
            self._open.callback(self._asks.arena.close)
        self._open.enter_context(threadpoolctl.threadpool_limits(BLAS_THREADS, "blas"))

    def start_learner(self, worker: int) -> None:
        theirs = self._open_channel(worker)
        open_learner = load_object("penstock.workers.process:open_inline_learner")

        def start() -> None:
            self._learner = open_learner(self._wiring.learner_plan(worker), self._slots, theirs)
            self._open.callback(self._learner.board.arena.close)
            self._turns[worker] = self._learner.take_turn

        self._turns[worker] = start

    def start_inference(self, worker: int) -> None:
        """It has no turn of its own: it answers in that of who asks."""
        theirs = self._open_channel(worker)
        assert self._ready is not None
        plan = self._wiring.inference_plan(worker, self._ready)
        open_server = load_object("penstock.workers.process:open_inline_server")

        def start() -> None:
            self._inference = open_server(plan, self._slots, self._learner.board, self._asks, theirs)
            self._turns[worker] = lambda: None

        self._turns[worker] = start

    def start_sampler(self, worker: int, index: int, blocks: tuple[int, ...]) -> None:
        theirs = self._open_channel(worker)
        assert self._ready is not None
        plan = self._wiring.sampler_plan(worker, index, blocks, self._ready)
        open_sampler = load_object("penstock.workers.process:open_inline_sampler")

        def start() -> None:
            if self._asks is not None and self._inference is None:
                return  # the server could not be opened a moment ago, and has said why
            source = self._learner.board if self._inference is None else self._inference
            sampler = open_sampler(plan, self._slots, source, theirs)
            self._open.callback(sampler.close)
            self._samplers.add(worker)
            self._turns[worker] = lambda: sampler.take_turn(until=lambda: self._signals.pending)

        self._turns[worker] = start

    def send(self, worker: int, message: Any) -> None:
        if worker in self._channels:
            self._channels[worker].send(message)

    def kill(self, worker: int) -> None:
        """There is nobody to kill: whatever runs here runs to its end."""

    def wait(self, timeout_s: float | None) -> list[Happening]:
        """One turn of everybody, and what came of it."""
        del timeout_s  # somebody always has work; who has not returns at once
        happened: list[Happening] = []
        for worker, turn in list(self._turns.items()):
            if self._stopping and worker in self._samplers:
                continue
            try:
                with self._signals.second_one_interrupts(SecondSignal):  # nobody else could end an environment that hangs here
                    turn()
            except SecondSignal:
                break
            except BaseException as error:  # whatever it is, as in run_worker; a person's Ctrl-C is a signal that is pending
                del self._turns[worker]
                self._far_ends[worker].send(fault_of(error))
            said = self._channels[worker].receive()
            self._ready = next((m for m in said if isinstance(m, Ready)), self._ready)
            happened += [Said(worker, message) for message in said]
        self._stopping = self._stopping or self._signals.pending
        return happened + self._signals.take()

    def close(self, grace_s: float) -> None:
        del grace_s
        self._open.close()

    def _open_channel(self, worker: int) -> LocalChannel:
        ours, theirs = LocalChannel.pair()
        self._channels[worker], self._far_ends[worker] = ours, theirs
        return theirs
