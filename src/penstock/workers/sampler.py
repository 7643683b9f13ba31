"""A sampler hosts several blocks, interleaves them, and never waits for one while another is ready.

It is told (segment, block, slot, version), and has each block act with exactly that version: with actors of its own, or over
its line to the inference server. Blocks may be at different versions at the same time.
"""

from __future__ import annotations

import selectors
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

from penstock.core.protocols import BlockEnvironment, Channel
from penstock.envs.opening import open_block
from penstock.envs.standing import Standings
from penstock.store.slots import Slots
from penstock.transport.channel import ChannelClosed
from penstock.transport.messages import Answer, Anything, Done, HandIn, LetGo, Start, Stop, Up, WriteOff
from penstock.weights.board import Board, TornRead
from penstock.workers.acting import Inference, Line, LocalInference, ServerInference
from penstock.workers.chaos import Delays, SlowBlock, SlowEnvironment
from penstock.workers.hours import Hours
from penstock.workers.plans import SamplerPlan
from penstock.workers.sampling import BlockRun, Finished

LISTEN_EVERY_S = 0.0005
"""How long blocks that are always ready may keep a sampler from looking at its channel."""


class Sampler:
    """Takes messages, gives messages. Knows no law: what to run, where and with what is said in each Start.

    Its actions come from the weights on the board, or over a line to the inference server.
    """

    def __init__(
        self,
        plan: SamplerPlan,
        slots: Slots,
        source: Board | Line,
        channel: Channel,
        standings: Standings | None = None,
    ) -> None:
        self._plan, self._slots, self._channel, self._standings = plan, slots, channel, standings
        self._hours = Hours()
        self.line: Channel | None = None
        self._inference: Inference
        if isinstance(source, Line):
            self._inference, self.line = ServerInference(plan, source, self._hours), source.channel
        else:
            self._inference = LocalInference(plan, source, self._hours)
        self._runs: dict[int, BlockRun] = {}
        self._delays = Delays(plan.chaos.delay_ms)
        self.stopped = False

    def open(self) -> None:
        """Open and reset all blocks, and say so."""
        for block in self._plan.blocks:
            environment = self._open_block(block)
            environment.reset()
            self._runs[block] = self._run_of(block, environment)
        self._channel.send(Up(self._plan.blocks))

    def close(self) -> None:
        for run in self._runs.values():
            run.environment.close()

    def obey(self, messages: Sequence[Anything]) -> None:
        """Obey messages in order. What was written off before it was begun is let go of without being begun: the
        weights that it should act with may have left the board meanwhile."""
        waiting = deque(messages)
        while waiting:
            message = waiting.popleft()
            if isinstance(message, Start) and WriteOff(message.segment) in waiting:
                waiting.remove(WriteOff(message.segment))
                self._channel.send(LetGo(message.segment))
                continue
            try:
                self.handle(message)
            except TornRead:  # if its version has left the board, the write-off was said before that, and is there by now
                waiting.extend(self._channel.receive())
                if not (isinstance(message, Start) and WriteOff(message.segment) in waiting):
                    raise
                waiting.appendleft(message)

    def handle(self, message: Anything) -> None:
        """Obey one message."""
        match message:
            case Start():
                self._start(message)
            case HandIn(segment):
                for run in self._running(segment):
                    run.cut()
            case WriteOff(segment):
                for run in self._running(segment):
                    self._abandon(run)
            case Stop():
                self.stopped = True
            case _:
                raise TypeError(f"a sampler has no use for {message!r}")

    def ready_runs(self) -> list[BlockRun]:
        """Running blocks that can go on now, oldest segment first."""
        ready = [run for run in self._runs.values() if run.is_ready]
        return sorted(ready, key=lambda run: run.number or 0)

    def awaited_runs(self) -> list[BlockRun]:
        """Blocks whose environments are at work on their own."""
        return [run for run in self._runs.values() if run.awaiting]

    def advance(self, run: BlockRun) -> bool:
        """One step of one block; true if that was the last of its segment."""
        if run.abandoned:
            return self._abandon(run)
        finished = run.advance()
        if finished is not None:
            self._report(finished)
        return finished is not None

    def take(self, answers: Sequence[Answer]) -> None:
        """Go on with the blocks that the server has answered."""
        for answer in answers:
            self.deliver(answer)
            self.advance(self._runs[answer.block])

    def deliver(self, answer: Answer) -> None:
        """Hand an answer to the block that asked."""
        assert isinstance(self._inference, ServerInference)
        self._delays.events += answer.chaos_events
        if not answer.served:
            self._look_for_the_write_off(answer.block)
        self._inference.arrive(answer)

    def _look_for_the_write_off(self, block: int) -> None:
        """If the block's version has left the board, the write-off was said before that, and is there by now."""
        self.obey(self._channel.receive())
        if not self._runs[block].abandoned:
            raise TornRead(f"the inference server does not find the version that block {block} is to act with on the board")

    def _open_block(self, block: int) -> BlockEnvironment:
        plan = self._plan
        factor = plan.chaos.slow.get(plan.index, 1.0)
        maker = plan.maker
        if factor > 1 and plan.parallel != "vector":
            maker = replace(maker, wrappers=(*maker.wrappers, SlowEnvironment(factor)))
        standing = None if self._standings is None else self._standings[block]
        environment = open_block(maker, plan.spec, plan.environments, plan.seed, block, plan.parallel, standing)
        return SlowBlock(environment, factor) if factor > 1 and plan.parallel == "vector" else environment

    def _run_of(self, block: int, environment: BlockEnvironment) -> BlockRun:
        plan = self._plan
        return BlockRun(block, environment, drift=plan.drift, return_gamma=plan.return_gamma, hours=self._hours)

    def _abandon(self, run: BlockRun) -> bool:
        segment = run.number
        assert segment is not None
        if not run.abandon():
            return False  # its environments, or the server, are still at work; the other blocks go on meanwhile
        self._inference.end(run.block)
        self._channel.send(LetGo(segment))
        return True

    def _running(self, segment: int) -> list[BlockRun]:
        return [run for run in self._runs.values() if run.number == segment]

    def _start(self, message: Start) -> None:
        self._delays.maybe()
        acting = self._inference.begin(message)
        slot = self._slots[message.slot]
        slot.stamp(segment=message.segment, version=message.version, block=message.block, worker=self._plan.incarnation)
        self._runs[message.block].begin(message.segment, slot, acting)

    def _report(self, finished: Finished) -> None:
        self._delays.maybe()
        self._inference.end(finished.block)
        spent = self._hours.account()
        lanes_compute_elsewhere = self._plan.parallel == "processes"
        self._channel.send(
            Done(
                segment=finished.segment,
                steps=finished.steps,
                rows=finished.rows,
                short=finished.short,
                environment_s=spent.environment_s,
                inference_s=spent.inference_s,
                idle_s=spent.idle_s,
                elapsed_s=spent.elapsed_s,
                cpu_s=None if lanes_compute_elsewhere else spent.cpu_s,
                chaos_events=self._delays.take_events(),
            )
        )


def serve(sampler: Sampler, channel: Channel) -> None:
    """A sampler process's loop: wait for whatever comes first, a message, an answer or an environment; otherwise step on."""
    with selectors.DefaultSelector() as selector:
        selector.register(channel.fileno(), selectors.EVENT_READ)
        line = sampler.line
        if line is not None:
            selector.register(line.fileno(), selectors.EVENT_READ)
        watched: dict[int, int] = {}
        while not sampler.stopped:
            _watch(selector, watched, sampler)
            ready = sampler.ready_runs()
            woken = {key.fd for key, _ in selector.select(0 if ready else None)}
            if channel.fileno() in woken:
                sampler.obey(channel.receive())
                continue
            if line is not None and line.fileno() in woken:
                line = _hear(selector, sampler, line)
                ready = sampler.ready_runs()
            for run in sampler.awaited_runs():
                if run.environment.fileno() in woken:
                    sampler.advance(run)
            if ready:
                _step_until_listening(sampler, ready[0])


def _hear(selector: selectors.BaseSelector, sampler: Sampler, line: Channel) -> Channel | None:
    """Answers; None once the server is gone. The supervisor has noticed that, too, and will say what follows."""
    try:
        answers = line.receive()
    except ChannelClosed:
        selector.unregister(line.fileno())
        return None
    sampler.take(answers)
    return line


def _watch(selector: selectors.BaseSelector, watched: dict[int, int], sampler: Sampler) -> None:
    """Listen to the environments that are at work, and to no other: a descriptor that nobody serves would spin."""
    wanted = {run.environment.fileno() for run in sampler.awaited_runs()}
    for fd in wanted - watched.keys():
        selector.register(fd, selectors.EVENT_READ)
        watched[fd] = 1
    for fd in watched.keys() - wanted:
        selector.unregister(fd)
        del watched[fd]


def _step_until_listening(sampler: Sampler, run: BlockRun) -> None:
    until = time.perf_counter() + LISTEN_EVERY_S
    while not sampler.advance(run) and run.is_ready and time.perf_counter() < until:
        pass


def work_inline(sampler: Sampler, until: Callable[[], bool] = lambda: False) -> None:
    """The same without a process: run what was started until a segment is complete, or until that is so."""
    while runs := sampler.ready_runs() or sampler.awaited_runs():
        for run in runs:
            if until():
                return
            if run.awaiting:
                _wait_for(run)
            if sampler.advance(run):
                return


def _wait_for(run: BlockRun) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(run.environment.fileno(), selectors.EVENT_READ)
        selector.select()
