"""Laws that are broken in one place each. The drive must catch every one, with the law's own `check` switched off."""

from __future__ import annotations

from collections import deque

import pytest
from law_drive import Drive, Setting, drawn_setting

from penstock.flow.events import Command, Event, Law, RunEnding, StartSegment, TrainBatch
from penstock.flow.free import FreeLaw, _Segment, _State
from penstock.flow.pinned import PinnedLaw

TRIES = 300


class CapacityBackAtTake(FreeLaw):
    """Gives a slot back when the learner picks the segment up, not when it is trained."""

    def handle(self, event: Event) -> list[Command]:
        commands = super().handle(event)
        for segment in self._in_state(_State.TRAINING):
            self._release(segment)
        return commands + self._issue()


class CapacityBackAtTakeInOtherSlots(CapacityBackAtTake):
    """The same with slots to spare, so that no slot is shared: the data is stale at birth."""

    def __init__(self, **settings: int) -> None:
        super().__init__(**settings)
        self.num_slots += self.segments_per_batch
        self._free_slots.extend(range(self.num_slots - self.segments_per_batch, self.num_slots))


class NoDeadlines(FreeLaw):
    def _deadlines_can_be_met(self, segments: list[_Segment], first: int) -> bool:
        return True


class DeadlinesOneTooLate(FreeLaw):
    def _deadlines_can_be_met(self, segments: list[_Segment], first: int) -> bool:
        return super()._deadlines_can_be_met(segments, first - 1)


class NeverAsks(FreeLaw):
    def _ask(self, *, deadline: int, newest: int) -> list[Command]:
        return []


class AsksEverybody(FreeLaw):
    def _ask(self, *, deadline: int, newest: int) -> list[Command]:
        return super()._ask(deadline=deadline + self.staleness, newest=newest + 1)


class SlotBackAtWriteOff(FreeLaw):
    """Uses a slot again although the worker may still be writing to it."""

    def _expired(self, number: int) -> list[Command]:
        commands = super()._expired(number)
        if commands:
            self._free_slots.append(self._segments[number].slot)
        return commands


class BelievesTheDead(FreeLaw):
    """Counts what a dead worker ran as lost, and takes its late words for good all the same."""

    def _bury(self, worker: int) -> None:
        running = self._in_state(_State.RUNNING)
        self.dropped_segments += sum(segment.worker == worker for segment in running)
        self._forget_blocks(worker)

    def _done(self, number: int, worker: int, steps: int) -> None:
        super()._done(number, worker, steps)
        self._idle = deque(block for block in self._idle if block in self._hosts)

    def _forget_blocks(self, worker: int) -> None:
        for block in [b for b, host in self._hosts.items() if host == worker]:
            del self._hosts[block]
            if block in self._idle:
                self._idle.remove(block)


class LosesTheBlock(FreeLaw):
    """Takes the slot back when a worker lets go, and forgets that the block can run again."""

    def _acknowledged(self, number: int, worker: int) -> None:
        segment = self._segments.get(number)
        if segment is not None and segment.worker == worker and segment.state is _State.WRITTEN_OFF:
            self._release(segment)


class WaitsForEveryBlock(FreeLaw):
    """Takes a batch only while every block has a host, and so stops with the first worker that stays away."""

    def _advance(self) -> list[Command]:
        return super()._advance() if len(self._hosts) == self.num_blocks else []


class IgnoresTheEnd(FreeLaw):
    def handle(self, event: Event) -> list[Command]:
        return [] if isinstance(event, RunEnding) else super().handle(event)


class OneRoundTooEarly(PinnedLaw):
    def _issue(self) -> list[Command]:
        self.version += 1
        commands = super()._issue()
        self.version -= 1
        return commands


class ActsWithTheNewest(PinnedLaw):
    """Every segment with the newest weights there are: fresher data, but no longer a function of the settings."""

    def _issue(self) -> list[Command]:
        commands = []
        for command in super()._issue():
            assert isinstance(command, StartSegment)
            commands.append(StartSegment(command.segment, command.block, command.worker, command.slot, self.version))
        return commands


class BatchByArrival(PinnedLaw):
    def _advance(self) -> list[Command]:
        commands = super()._advance()
        order = list(self._ready.values())
        return [TrainBatch(c.version, tuple(m for m in order if m in c.members)) for c in commands if isinstance(c, TrainBatch)]


class BelievesAnyWorker(PinnedLaw):
    def _done(self, segment: int, worker: int, steps: int, rows: int | None) -> None:
        host = self._blocks[segment % self.num_blocks].host
        super()._done(segment, worker if host is None else host, steps, rows)


class IgnoresTheBudget(PinnedLaw):
    def _needs(self, round_: int) -> bool:
        return True


class CountsRowsOfTheDead(PinnedLaw):
    """Takes what a dead worker says late for rows that are missing."""

    def _done(self, segment: int, worker: int, steps: int, rows: int | None) -> None:
        if self._budget is not None and self._blocks[segment % self.num_blocks].host != worker:
            self._budget.segment_done(rows)
        super()._done(segment, worker, steps, rows)


class TakesEveryRowForADecision(PinnedLaw):
    def _done(self, segment: int, worker: int, steps: int, rows: int | None) -> None:
        super()._done(segment, worker, steps, None)


class ForgetsAfterDeath(PinnedLaw):
    """Leaves a dead worker's block running: nobody replays it."""

    def _bury(self, worker: int) -> None:
        for block in self._blocks:
            if block.host == worker:
                block.host = None


CAUGHT_BY = {
    CapacityBackAtTake: r"slot \d+ belongs to",
    CapacityBackAtTakeInOtherSlots: "issued beyond capacity",
    NoDeadlines: "cannot all be trained by",
    DeadlinesOneTooLate: "cannot all be trained by",
    NeverAsks: "asked to hand in",
    AsksEverybody: "asked to hand in",
    SlotBackAtWriteOff: r"slot \d+ belongs to",
    BelievesTheDead: "went with its worker",
    LosesTheBlock: "the law has stopped",
    WaitsForEveryBlock: "the law has stopped",
    IgnoresTheEnd: "issued after the end",
    OneRoundTooEarly: r"slot \d+ belongs to",
    ActsWithTheNewest: "was started as .* and is trained as",
    BatchByArrival: "not one segment of each block in block order",
    BelievesAnyWorker: "is not ready",
    IgnoresTheBudget: "is past the last round",
    CountsRowsOfTheDead: "is past the last round",
    TakesEveryRowForADecision: "the law has stopped",
    ForgetsAfterDeath: "the law has stopped",
}
"""Each broken law, and the complaint that shows that it was caught for what is broken in it."""


def opened(broken: type, setting: Setting) -> Law:
    law: Law
    if setting.pinned:
        law = broken(num_blocks=setting.blocks, staleness=setting.staleness, budget=setting.budget)
    else:
        settings = {"staleness": setting.staleness, "depth": setting.depth, "segments_per_batch": setting.size}
        law = broken(num_blocks=setting.blocks, **settings)
    return law


def drive_until_caught(broken: type) -> None:
    for seed in range(TRIES):
        setting = drawn_setting(seed, pinned=issubclass(broken, PinnedLaw))
        Drive(setting, seed, law=opened(broken, setting), trust_check=False).run()


@pytest.mark.parametrize("broken", CAUGHT_BY, ids=lambda law: law.__name__)
def test_a_broken_law_is_caught(broken: type) -> None:
    with pytest.raises(AssertionError, match=CAUGHT_BY[broken]):
        drive_until_caught(broken)
