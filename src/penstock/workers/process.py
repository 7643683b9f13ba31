"""What a started worker does first, and how it ends. Also the same components without a process, for `--workers 0`."""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

from penstock.core.errors import SecondSignal
from penstock.envs.descriptors import allow_descriptors, descriptors_of
from penstock.envs.standing import Standings
from penstock.memory.allocator import keep_freed_memory
from penstock.store.asks import Asks
from penstock.store.slots import Slots
from penstock.transport.channel import ChannelClosed, LocalChannel, SocketChannel
from penstock.transport.messages import Answer, Ask, Up
from penstock.weights.board import Board
from penstock.workers.acting import Line
from penstock.workers.faults import fault_of
from penstock.workers.inference import InferenceServer, answer_callers
from penstock.workers.last_words import heard
from penstock.workers.learner import Learner
from penstock.workers.plans import InferencePlan, LearnerPlan, SamplerPlan
from penstock.workers.sampler import Sampler, serve, work_inline

Plan = LearnerPlan | InferencePlan | SamplerPlan


def run_worker(descriptors: list[int]) -> int:
    """A worker's whole life; the exit code. Descriptors: payload, last words, channel, slots, then what its
    kind shares beside."""
    payload_fd, words_fd, channel_fd, *arenas = descriptors
    channel = SocketChannel(socket.socket(fileno=channel_fd))
    keep_freed_memory()
    try:
        plan = _unpack(payload_fd)
        match plan:
            case LearnerPlan():
                _learn(plan, arenas, channel)
            case InferencePlan():
                _infer(plan, arenas, channel)
            case SamplerPlan():
                _sample(plan, arenas, channel)
    except ChannelClosed:
        return 0  # the supervisor is gone: so is the run
    except BaseException as error:  # whatever it is, the supervisor is told before this process ends; no signal raises here
        with suppress(ChannelClosed):
            channel.send(fault_of(error, said=heard(words_fd)))
        return 1
    return 0


def _unpack(fd: int) -> Plan:
    """The payload, made by our own supervisor a moment ago; what its script defined came along by value."""
    with open(fd, "rb") as file:
        file.seek(0)
        sys.path[:] = pickle.load(file)  # first: the plan's own modules are found along it
        plan = pickle.load(file)
    assert isinstance(plan, Plan)
    return plan


def _learn(plan: LearnerPlan, arenas: list[int], channel: SocketChannel) -> None:
    learner = Learner(plan, _slots(plan, arenas[0]), channel)
    learner.open()
    while not learner.stopped:
        channel.wait()
        for message in channel.receive():
            learner.handle(message)


def _infer(plan: InferencePlan, arenas: list[int], channel: SocketChannel) -> None:
    slots_fd, board_fd, asks_fd = arenas
    torch.set_num_threads(plan.compute.sampler_threads)
    server = InferenceServer(plan, _slots(plan, slots_fd), _board(plan, board_fd), _asks(plan, asks_fd))
    server.open()
    channel.send(Up(()))
    answer_callers(server, channel)


def _sample(plan: SamplerPlan, arenas: list[int], channel: SocketChannel) -> None:
    torch.set_num_threads(plan.compute.sampler_threads)
    allow_descriptors(descriptors_of(plan.parallel, len(plan.blocks) * plan.environments.lanes_per_block))
    slots_fd, standings_fd, *source = arenas
    sampler = Sampler(plan, _slots(plan, slots_fd), _source(plan, source), channel, _standings(plan, standings_fd))
    sampler.open()
    serve(sampler, channel)
    sampler.close()


def _source(plan: SamplerPlan, descriptors: list[int]) -> Board | Line:
    """Where its actions come from: the board, or the records of its questions and the socket of its line."""
    if plan.compute.inference == "local":
        return _board(plan, descriptors[0])
    asks_fd, line_fd = descriptors
    return Line(_asks(plan, asks_fd), SocketChannel(socket.socket(fileno=line_fd)))


def _slots(plan: Plan, fd: int) -> Slots:
    memory = plan.memory
    return Slots(Slots.arena_of(fd, plan.spec, memory.shape, memory.num_slots), plan.spec, memory.shape, memory.num_slots)


def _standings(plan: SamplerPlan, fd: int) -> Standings:
    return Standings.attach(fd, plan.spec, lanes=plan.memory.shape.lanes, blocks=plan.memory.num_blocks)


def _board(plan: SamplerPlan | InferencePlan, fd: int) -> Board:
    memory = plan.memory
    return Board.attach(fd, num_weights=memory.num_weights, num_statistics=memory.num_statistics, places=memory.board_places)


def _asks(plan: SamplerPlan | InferencePlan, fd: int) -> Asks:
    return Asks.attach(fd, plan.spec, lanes=plan.memory.shape.lanes, blocks=plan.memory.num_blocks)


# ---------------------------------------------------------------- in one process


class InlineLearner(Learner):
    """A learner that works when it is its turn."""

    def __init__(self, plan: LearnerPlan, slots: Slots, channel: LocalChannel) -> None:
        super().__init__(plan, slots, channel)
        self._inbox = channel

    def take_turn(self) -> None:
        """Everything that it was told since its last turn."""
        for message in self._inbox.receive():
            self.handle(message)


class InlineServer(InferenceServer):
    """An inference server that works when it is asked, in the turn of the sampler that asks."""

    def __init__(self, plan: InferencePlan, slots: Slots, board: Board, asks: Asks, channel: LocalChannel) -> None:
        super().__init__(plan, slots, board, asks)
        self.asks, self._outbox = asks, channel

    def answer_or_fault(self, ask: Ask) -> Answer | None:
        """None if it broke: in whoever's turn that was, it is this worker's fault, and the supervisor has been told."""
        try:
            return self.answer(ask)
        except SecondSignal:
            raise
        except BaseException as error:
            self._outbox.send(fault_of(error))
            return None


class DirectLine:
    """A line within one process: what is asked is answered before `send` returns."""

    def __init__(self, server: InlineServer) -> None:
        self._server = server
        self.deliver: Callable[[Answer], None]  # the sampler's, once there is one

    def send(self, message: Any, descriptors: Sequence[int] = ()) -> None:
        del descriptors
        answer = self._server.answer_or_fault(message)
        if answer is not None:
            self.deliver(answer)

    def receive(self) -> list[Any]:
        return []

    def fileno(self) -> int:
        return -1


class InlineSampler(Sampler):
    """A sampler that works when it is its turn, with the thread count that it would have in a process of its own."""

    def __init__(self, plan: SamplerPlan, slots: Slots, source: Board | Line, channel: LocalChannel) -> None:
        super().__init__(plan, slots, source, channel)
        self._inbox, self._threads = channel, plan.compute.sampler_threads

    def take_turn(self, until: Callable[[], bool]) -> None:
        """Obey what it was told since its last turn, then sample until a segment is complete, or until that is so."""
        self.obey(self._inbox.receive())
        torch.set_num_threads(self._threads)
        work_inline(self, until)


def open_inline_learner(plan: LearnerPlan, slots: Slots, channel: LocalChannel) -> InlineLearner:
    learner = InlineLearner(plan, slots, channel)
    learner.open()
    return learner


def open_inline_server(plan: InferencePlan, slots: Slots, board: Board, asks: Asks, channel: LocalChannel) -> InlineServer:
    server = InlineServer(plan, slots, board, asks, channel)
    server.open()
    channel.send(Up(()))
    return server


def open_inline_sampler(plan: SamplerPlan, slots: Slots, source: Board | InlineServer, channel: LocalChannel) -> InlineSampler:
    if isinstance(source, InlineServer):
        line = DirectLine(source)
        sampler = InlineSampler(plan, slots, Line(source.asks, line), channel)
        line.deliver = sampler.deliver
    else:
        sampler = InlineSampler(plan, slots, source, channel)
    sampler.open()
    return sampler
