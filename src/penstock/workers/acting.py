"""Where a block's actions come from: an actor at hand, which answers at once, or the inference server, which takes a while.

    local     the sampler loads the segment's version itself
    server    the question lies in the block's record (store/asks.py), the server is told with a message of a few numbers

A block has one question under way at most; it asks, and goes on when there is an answer. Knows no environment and no law.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from penstock.core.protocols import Acted, Actor, Channel
from penstock.core.specs import Array
from penstock.models.actor import build_actor
from penstock.models.sampling import sampler_for
from penstock.store.asks import AskRecord, Asks
from penstock.transport.channel import ChannelClosed
from penstock.transport.messages import Answer, Ask, Start
from penstock.weights.board import Board
from penstock.workers.actors import Actors, SegmentActor, Step
from penstock.workers.hours import Hours
from penstock.workers.plans import InferencePlan, SamplerPlan

NOTHING = np.zeros(0)
"""Where only values were asked for, there is no action."""


class Acting(Protocol):
    """What acts for one segment."""

    def ask(self, observation: Array, step: Step, *, closing: bool = False) -> Acted | None:
        """How to act on these rows, which are rows `step` of the block's slot; when closing, values alone. None: the answer
        will be there later."""

    def answer(self) -> Acted | None:
        """What was asked for, once it is there; its arrays hold until the next question."""

    def to_environment(self, action: Array) -> Array:
        """What the environment is given for a recorded action."""


class Inference(Protocol):
    """What acts for a sampler's segments."""

    def begin(self, start: Start) -> Acting: ...

    def end(self, block: int) -> None:
        """The block's segment is over."""


def actor_of(plan: SamplerPlan | InferencePlan, device: str = "cpu") -> Actor:
    """An actor for the run's policy, without weights yet."""
    return build_actor(plan.spec, plan.model, plan.compute.backend, plan.custom_model, plan.seed, device)


# ---------------------------------------------------------------- local


class AtHand:
    """An actor of the sampler's own."""

    def __init__(self, segment: SegmentActor, to_environment: Callable[[Array], Array], hours: Hours) -> None:
        self._segment, self._hours = segment, hours
        self.to_environment = to_environment

    def ask(self, observation: Array, step: Step, *, closing: bool = False) -> Acted:
        self._hours.begin_acting()
        if closing:
            acted = Acted(NOTHING, NOTHING, self._segment.value(observation))
        else:
            acted = self._segment.act(observation, step)
        self._hours.end_acting()
        return acted

    def answer(self) -> Acted | None:
        """Never asked for: there is no question that it owes an answer."""
        return None


class LocalInference:
    """Blocks may be at different versions at the same time: there is an actor for each that a block is acting with."""

    def __init__(self, plan: SamplerPlan, board: Board, hours: Hours) -> None:
        self._plan, self._hours = plan, hours
        memory = plan.memory
        sizes = {"num_weights": memory.num_weights, "num_statistics": memory.num_statistics}
        self._actors = Actors(board, lambda: actor_of(plan), **sizes)
        self._versions: dict[int, int] = {}  # the version that each running block acts with

    def begin(self, start: Start) -> Acting:
        actor = self._actors.of_version(start.version, set(self._versions.values()))
        self._versions[start.block] = start.version
        shape = self._plan.memory.shape
        segment = SegmentActor(
            actor, seed=self._plan.seed, block=start.block, segment=start.segment, steps=shape.steps, lanes=shape.lanes
        )
        return AtHand(segment, actor.to_environment, self._hours)

    def end(self, block: int) -> None:
        del self._versions[block]


# ---------------------------------------------------------------- server


@dataclass(frozen=True)
class Line:
    """What connects a sampler with the inference server."""

    asks: Asks
    channel: Channel


class AtServer:
    """One block's end of the line."""

    def __init__(self, record: AskRecord, channel: Channel, to_environment: Callable[[Array], Array], hours: Hours) -> None:
        self._record, self._channel, self._hours = record, channel, hours
        self.to_environment = to_environment
        self._there = False

    def begin(self, start: Start) -> None:
        self._start = start

    def ask(self, observation: Array, step: Step, *, closing: bool = False) -> Acted | None:
        del observation  # the server reads it where it lies
        start = self._start
        self._record.steps[...] = step
        self._there = False
        self._hours.begin_asking()
        with suppress(ChannelClosed):  # a server that is gone is the supervisor's to notice: this sampler is told what follows
            self._channel.send(Ask(start.block, start.segment, start.version, start.slot, closing))
        return self.answer()  # there already where the server is called directly

    def arrive(self) -> None:
        """The answer is there."""
        self._there = True
        self._hours.end_asking()

    def answer(self) -> Acted | None:
        record = self._record
        return Acted(record.action, record.log_prob, record.value) if self._there else None


class ServerInference:
    """Loads no weights: the server acts with the version that is named in each question."""

    def __init__(self, plan: SamplerPlan, line: Line, hours: Hours) -> None:
        to_environment = sampler_for(plan.spec).to_environment
        self._blocks = {block: AtServer(line.asks[block], line.channel, to_environment, hours) for block in plan.blocks}

    def begin(self, start: Start) -> Acting:
        block = self._blocks[start.block]
        block.begin(start)
        return block

    def end(self, block: int) -> None:
        """The server has heard it: the last question of a segment says so."""

    def arrive(self, answer: Answer) -> None:
        self._blocks[answer.block].arrive()
