"""What a started worker does first, and how it ends. Also the same components without a process, for `--workers 0`."""

from __future__ import annotations

import pickle
import socket
import sys
from collections.abc import Callable
from contextlib import suppress

import torch

from penstock.envs.descriptors import allow_descriptors, descriptors_of
from penstock.store.slots import Slots
from penstock.transport.channel import ChannelClosed, LocalChannel, SocketChannel
from penstock.weights.board import Board
from penstock.workers.faults import fault_of
from penstock.workers.learner import Learner
from penstock.workers.plans import LearnerPlan, SamplerPlan
from penstock.workers.sampler import Sampler, serve, work_inline


def run_worker(descriptors: list[int]) -> int:
    """A worker's whole life; the exit code. Descriptors: payload, channel, slots, and for a sampler the board."""
    payload_fd, channel_fd, *arenas = descriptors
    channel = SocketChannel(socket.socket(fileno=channel_fd))
    try:
        plan = _unpack(payload_fd)
        if isinstance(plan, LearnerPlan):
            _learn(plan, arenas, channel)
        else:
            _sample(plan, arenas, channel)
    except ChannelClosed:
        return 0  # the supervisor is gone: so is the run
    except (Exception, SystemExit) as error:  # whatever it is, the supervisor is told before this process ends
        with suppress(ChannelClosed):
            channel.send(fault_of(error))
        return 1
    return 0


def _unpack(fd: int) -> LearnerPlan | SamplerPlan:
    """The payload, made by our own supervisor a moment ago; what its script defined came along by value."""
    with open(fd, "rb") as file:
        file.seek(0)
        sys.path[:] = pickle.load(file)  # first: the plan's own modules are found along it
        plan = pickle.load(file)
    assert isinstance(plan, LearnerPlan | SamplerPlan)
    return plan


def _learn(plan: LearnerPlan, arenas: list[int], channel: SocketChannel) -> None:
    learner = Learner(plan, _slots(plan, arenas[0]), channel)
    learner.open()
    while not learner.stopped:
        channel.wait()
        for message in channel.receive():
            learner.handle(message)


def _sample(plan: SamplerPlan, arenas: list[int], channel: SocketChannel) -> None:
    torch.set_num_threads(plan.compute.sampler_threads)
    allow_descriptors(descriptors_of(plan.parallel, len(plan.blocks) * plan.environments.lanes_per_block))
    sampler = Sampler(plan, _slots(plan, arenas[0]), _board(plan, arenas[1]), channel)
    sampler.open()
    serve(sampler, channel)
    sampler.close()


def _slots(plan: LearnerPlan | SamplerPlan, fd: int) -> Slots:
    memory = plan.memory
    return Slots(Slots.arena_of(fd, plan.spec, memory.shape, memory.num_slots), plan.spec, memory.shape, memory.num_slots)


def _board(plan: SamplerPlan, fd: int) -> Board:
    memory = plan.memory
    return Board.attach(fd, num_weights=memory.num_weights, num_statistics=memory.num_statistics, places=memory.board_places)


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


class InlineSampler(Sampler):
    """A sampler that works when it is its turn, with the thread count that it would have in a process of its own."""

    def __init__(self, plan: SamplerPlan, slots: Slots, board: Board, channel: LocalChannel) -> None:
        super().__init__(plan, slots, board, channel)
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


def open_inline_sampler(plan: SamplerPlan, slots: Slots, board: Board, channel: LocalChannel) -> InlineSampler:
    sampler = InlineSampler(plan, slots, board, channel)
    sampler.open()
    return sampler
