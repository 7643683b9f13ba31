"""The inference server: one process that acts for every sampler's blocks, with one copy of each version in use.

    Ask(block, segment, version, slot)  ->  one forward at that block's shape, with exactly that version  ->  Answer(block)

Each sampler has a line of its own to it. It waits for whoever speaks first and answers in that order, which no answer shows.
It reads observations in the slots and writes actions, log-probabilities and values into the blocks' records (store/asks.py).
What it gains is the device, and that weights are loaded once. It never joins blocks into one forward, in free flow
neither: a product of another shape may sum in another order, and then the placement would show in what is learned.

It knows no environment, no law and no sampler's state; a version comes with every question.
"""

from __future__ import annotations

import selectors
import socket
from collections import deque
from dataclasses import dataclass

import numpy as np

from penstock.core.specs import Array
from penstock.store.asks import Asks
from penstock.store.slots import Slots
from penstock.transport.channel import ChannelClosed, SocketChannel
from penstock.transport.messages import Answer, Ask, Ping, Pong, Serve, Stop
from penstock.weights.board import Board, TornRead
from penstock.workers.acting import actor_of
from penstock.workers.actors import Actors, SegmentActor, Step
from penstock.workers.chaos import Delays
from penstock.workers.plans import InferencePlan


@dataclass(frozen=True)
class Underway:
    """The segment that a block was last acted for."""

    segment: int
    version: int
    acting: SegmentActor


class InferenceServer:
    """Questions in, answers out. Knows nobody who asks."""

    def __init__(self, plan: InferencePlan, slots: Slots, board: Board, asks: Asks) -> None:
        self._plan, self._slots, self._asks = plan, slots, asks
        sizes = {"num_weights": plan.memory.num_weights, "num_statistics": plan.memory.num_statistics}
        self._actors = Actors(board, lambda: actor_of(plan, plan.compute.device), **sizes)
        self._lanes = np.arange(plan.memory.shape.lanes)
        self._underway: dict[int, Underway] = {}  # by block
        self._delays = Delays(plan.chaos.delay_ms)

    def open(self) -> None:
        """Build the first actor now: what cannot be built is found before anything runs. No batch can be trained without this
        server, so version 0 is on the board."""
        self._actors.of_version(0, set())

    def answer(self, ask: Ask) -> Answer:
        """Act for a block. Where its version is not on the board its segment was written off, which its sampler can tell."""
        try:
            acting = self._acting_of(ask)
        except TornRead:
            return Answer(ask.block, served=False, chaos_events=self._delays.take_events())
        record = self._asks[ask.block]
        step, observation = self._rows(ask.slot, record.steps)
        if ask.closing:
            record.value[...] = acting.value(observation)
            del self._underway[ask.block]
        else:
            acted = acting.act(observation, step)
            record.action[...], record.log_prob[...], record.value[...] = acted.action, acted.log_prob, acted.value
        return Answer(ask.block, served=True, chaos_events=self._delays.take_events())

    def _acting_of(self, ask: Ask) -> SegmentActor:
        held = self._underway.get(ask.block)
        if held is None or held.segment != ask.segment:
            self._underway.pop(ask.block, None)
            held = self._underway[ask.block] = self._begin(ask)
        return held.acting

    def _begin(self, ask: Ask) -> Underway:
        self._delays.maybe()
        actor = self._actors.of_version(ask.version, {held.version for held in self._underway.values()})
        shape, seed = self._plan.memory.shape, self._plan.seed
        sizes = {"steps": shape.steps, "lanes": shape.lanes}
        return Underway(ask.segment, ask.version, SegmentActor(actor, seed=seed, block=ask.block, segment=ask.segment, **sizes))

    def _rows(self, slot: int, steps: Array) -> tuple[Step, Array]:
        """The observations that the lanes are at: a view where all are at the same row."""
        observation, first = self._slots[slot].observation, int(steps[0])
        if (steps == first).all():
            return first, observation[first]
        return steps.copy(), observation[steps, self._lanes]


class Caller:
    """A sampler's line, and the answers for which it had no room yet: the server waits for nobody who does not read."""

    def __init__(self, channel: SocketChannel) -> None:
        self.channel = channel
        self._unsent: deque[Answer] = deque()

    def hear(self, server: InferenceServer) -> None:
        """Answer what was asked; raises ChannelClosed once the sampler is gone."""
        for message in self.channel.receive():
            assert isinstance(message, Ask)
            self._unsent.append(server.answer(message))
            self.send_what_fits()

    def send_what_fits(self) -> None:
        """In order; raises ChannelClosed once the sampler is gone."""
        while self._unsent and self.channel.offer(self._unsent[0]):
            self._unsent.popleft()

    @property
    def events(self) -> int:
        """What to wait for on this line."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._unsent else 0)


def answer_callers(server: InferenceServer, channel: SocketChannel) -> None:
    """The server process's loop, until it is told to stop: wait for whoever says something first."""
    with selectors.DefaultSelector() as selector:
        selector.register(channel, selectors.EVENT_READ)
        stopped = False
        while not stopped:
            for key, events in selector.select():
                if key.data is None:
                    stopped = _obey(channel, selector)
                else:
                    _attend(server, selector, key.data, events)


def _obey(channel: SocketChannel, selector: selectors.BaseSelector) -> bool:
    """What the supervisor says; true if that is to stop."""
    for message in channel.receive():
        match message:
            case Serve():
                line = SocketChannel(socket.socket(fileno=channel.descriptors.pop(0)))
                selector.register(line, selectors.EVENT_READ, Caller(line))
            case Ping():
                channel.send(Pong())
            case Stop():
                return True
            case _:
                raise TypeError(f"an inference server has no use for {message!r}")
    return False


def _attend(server: InferenceServer, selector: selectors.BaseSelector, caller: Caller, events: int) -> None:
    """One sampler's turn. One that is gone, dead or stopped, is forgotten: the supervisor knows why."""
    try:
        if events & selectors.EVENT_WRITE:
            caller.send_what_fits()
        if events & selectors.EVENT_READ:
            caller.hear(server)
    except ChannelClosed:
        selector.unregister(caller.channel)
        caller.channel.close()
        return
    if selector.get_key(caller.channel).events != caller.events:
        selector.modify(caller.channel, caller.events, caller)
