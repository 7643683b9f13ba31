"""A world without processes: samplers and a learner that only take time, and trouble at given moments.

It drives the real supervisor, law and recorder. Blocks of one worker run side by side, as those of environments that wait
on something do. Messages to a worker arrive after `latency_s`, what it says is heard after as long again, so words cross.
Nothing is learned here and no tensor exists; the learner checks that each slot holds what it was told, as the real one does.
"""

from __future__ import annotations

import heapq
import itertools
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from penstock.core.protocols import Ended, Happening, Interrupted, Said
from penstock.core.seeds import Purpose, stream
from penstock.testing.clock import JumpingClock
from penstock.transport import messages
from penstock.yardstick.pace import Pace, Underway

FAULT = "EnvironmentFault"


@dataclass(frozen=True)
class Trouble:
    """At this moment something happens to a worker: "learner", "sampler-0", "inference server"; or a signal comes ("run")."""

    at_s: float
    who: str
    what: Literal["die", "fault", "hang", "signal"]
    number: int = signal.SIGINT
    """The signal: the one that is sent, or the one that the worker dies of."""


@dataclass(frozen=True, kw_only=True)
class Script:
    """What the world does by itself."""

    pace: Pace = field(default_factory=Pace)
    train_s: Callable[[np.random.Generator], float] = lambda generator: float(generator.exponential(0.1))
    save_s: float = 0.05
    start_s: float = 0.2
    latency_s: float = 0.0005
    troubles: tuple[Trouble, ...] = ()
    seed: int = 0
    limit_s: float = 3600.0
    """A run that is still going on then would go on for ever; the simulation fails."""


@dataclass
class _Worker:
    title: str
    silent: bool = False  # hung or dead: it does nothing any more
    blocks: tuple[int, ...] = ()
    running: dict[int, tuple[messages.Start, Underway]] = field(default_factory=dict)
    busy_until_s: float = 0.0  # the learner does one thing after another


@dataclass(frozen=True)
class _Content:
    """What a slot holds."""

    segment: int
    version: int
    steps: int


class SimulatedWorld:
    """`core.protocols.World` with a clock that jumps to whatever comes next."""

    def __init__(self, script: Script) -> None:
        self.clock = JumpingClock()
        self._moment_s = 0.0  # of what is happening; the clock is ahead of it where the supervisor took its time
        self.sent: list[tuple[float, str, Any]] = []
        self._script = script
        self._workers: dict[int, _Worker] = {}
        self._slots: dict[int, _Content] = {}
        self._server: _Worker | None = None
        self._version = 0
        self._agenda: list[tuple[float, int, Callable[[], list[Happening]]]] = []
        self._order = itertools.count()

    # ---------------------------------------------------------------- the World

    def open(self) -> None:
        for trouble in self._script.troubles:
            self._at(trouble.at_s, lambda trouble=trouble: self._strike(trouble))  # type: ignore[misc]  # bound at once

    def start_learner(self, worker: int) -> None:
        self._workers[worker] = _Worker("learner")
        self._say(worker, self.clock.now() + self._script.start_s, messages.Ready(1, 0, None))

    def start_inference(self, worker: int) -> None:
        self._workers[worker] = self._server = _Worker("inference server")
        self._say(worker, self.clock.now() + self._script.start_s, messages.Up(()))

    def start_sampler(self, worker: int, index: int, blocks: tuple[int, ...]) -> None:
        self._workers[worker] = _Worker(f"sampler-{index}", blocks=blocks)
        self._say(worker, self.clock.now() + self._script.start_s, messages.Up(blocks))

    def send(self, worker: int, message: Any) -> None:
        self.sent.append((self.clock.now(), self._workers[worker].title, message))
        self._at(self.clock.now() + self._script.latency_s, lambda: self._arrive(worker, message))

    def kill(self, worker: int) -> None:
        self._workers[worker].silent = True
        self._at(self.clock.now() + self._script.latency_s, lambda: [Ended(worker, -signal.SIGKILL)])

    def wait(self, timeout_s: float | None) -> list[Happening]:
        assert self.clock.now() < self._script.limit_s, f"the run does not end; simulation seed {self._script.seed}"
        until_s = float("inf") if timeout_s is None else self.clock.now() + timeout_s
        happened: list[Happening] = []
        while self._agenda and self._agenda[0][0] <= until_s:
            self._moment_s, _, happen = heapq.heappop(self._agenda)
            self.clock.jump_to(self._moment_s)
            happened += happen()
            if happened and not (self._agenda and self._agenda[0][0] <= self.clock.now()):
                return happened
        assert timeout_s is not None or happened, f"everybody waits for ever; simulation seed {self._script.seed}"
        if not happened:
            self.clock.jump_to(until_s)
        return happened

    def close(self, grace_s: float) -> None:
        del grace_s
        self._agenda.clear()

    # ---------------------------------------------------------------- time

    def _at(self, moment_s: float, happen: Callable[[], list[Happening]]) -> None:
        heapq.heappush(self._agenda, (moment_s, next(self._order), happen))

    def _say(self, worker: int, moment_s: float, message: messages.Anything) -> None:
        """The worker says this at that moment, unless it is silent by then."""

        def say() -> list[Happening]:
            return [] if self._workers[worker].silent else self._on_its_way(worker, message)

        self._at(moment_s, say)

    def _on_its_way(self, worker: int, message: messages.Anything) -> list[Happening]:
        """What was said is heard even if its speaker dies meanwhile."""
        self._at(self._moment_s + self._script.latency_s, lambda: [Said(worker, message)])
        return []

    # ---------------------------------------------------------------- workers

    def _arrive(self, number: int, message: Any) -> list[Happening]:
        worker = self._workers[number]
        if not worker.silent:
            match message:
                case messages.Start():
                    self._start(number, worker, message)
                case messages.HandIn(segment) if segment in worker.running:
                    worker.running[segment][1].cut(self._moment_s)
                    self._finish_later(number, segment)
                case messages.WriteOff(segment) if segment in worker.running:
                    _, underway = worker.running.pop(segment)
                    self._say(number, underway.step_end_s(self._moment_s), messages.LetGo(segment))
                case messages.Train():
                    self._train(number, worker, message)
                case messages.Ping():
                    self._say(number, self._moment_s, messages.Pong())
                case messages.Save():
                    saved = messages.Saved(self._version, "nowhere")
                    self._say(number, self._take_turn(worker, self._script.save_s), saved)
        return []

    def _start(self, number: int, worker: _Worker, start: messages.Start) -> None:
        assert start.block in worker.blocks, f"block {start.block} is not hosted by {worker.title}"
        assert all(other.block != start.block for other, _ in worker.running.values()), f"block {start.block} is busy"
        worker.running[start.segment] = start, self._script.pace.begin(start.block, start.segment, self._moment_s)
        self._finish_later(number, start.segment)

    def _finish_later(self, number: int, segment: int) -> None:
        """At its end, if it has not been cut or given up by then (a cut one has an earlier entry of its own)."""
        _, underway = self._workers[number].running[segment]
        end_s = underway.end_s

        def finish() -> list[Happening]:
            worker = self._workers[number]
            if worker.silent or segment not in worker.running or (self._server is not None and self._server.silent):
                return []
            start, _ = worker.running.pop(segment)
            return self._on_its_way(number, self._done(start, underway))

        self._at(end_s, finish)

    def _done(self, start: messages.Start, underway: Underway) -> messages.Done:
        pace = self._script.pace
        self._slots[start.slot] = _Content(start.segment, start.version, underway.steps)
        return messages.Done(
            segment=start.segment,
            steps=underway.steps,
            rows=underway.rows,
            short=underway.steps < pace.steps,
            environment_s=0.0,
            inference_s=0.0,
            idle_s=0.0,
            elapsed_s=0.0,
            cpu_s=None,
            chaos_events=0,
        )

    # ---------------------------------------------------------------- the learner

    def _take_turn(self, worker: _Worker, seconds: float) -> float:
        worker.busy_until_s = max(worker.busy_until_s, self._moment_s) + seconds
        return worker.busy_until_s

    def _train(self, number: int, worker: _Worker, message: messages.Train) -> None:
        assert message.version == self._version, f"told to train {message.version} at {self._version}"
        for slot in message.slots:
            found = self._slots[slot.slot]
            assert (found.segment, found.version) == (slot.segment, slot.version), f"slot {slot.slot} holds {found}"
        rows = [self._slots[slot.slot].steps * self._script.pace.lanes for slot in message.slots]
        staleness = [0] * (1 + max(message.version - slot.version for slot in message.slots))
        for slot, count in zip(message.slots, rows, strict=True):
            staleness[message.version - slot.version] += count
        self._version += 1
        train_s = self._script.train_s(stream(self._script.seed, Purpose.DELAY, -1, message.version))
        whole = len(rows) * self._script.pace.steps * self._script.pace.lanes
        trained = messages.Trained(
            version=self._version,
            rows=sum(rows),
            masked_rows=whole - sum(rows),
            samples=sum(rows),
            updates=1,
            staleness=tuple(staleness),
            episode_returns=(),
            episode_lengths=(),
            metrics={},
            busy_s=train_s,
            digest=None,
            chaos_events=0,
        )
        self._say(number, self._take_turn(worker, train_s), trained)

    # ---------------------------------------------------------------- trouble

    def _strike(self, trouble: Trouble) -> list[Happening]:
        if trouble.what == "signal":
            return [Interrupted(trouble.number)]
        for number, worker in self._workers.items():
            if worker.title == trouble.who and not worker.silent:
                worker.silent = True
                return self._last_words(number, worker, trouble)
        return []

    def _last_words(self, number: int, worker: _Worker, trouble: Trouble) -> list[Happening]:
        if trouble.what == "fault":
            self._on_its_way(number, messages.Fault(FAULT, f"{worker.title} broke on purpose", "where it broke"))
            self._at(self._moment_s + 2 * self._script.latency_s, lambda: [Ended(number, 1)])
        elif trouble.what == "die":
            self._at(self._moment_s + 2 * self._script.latency_s, lambda: [Ended(number, -trouble.number)])
        return []
