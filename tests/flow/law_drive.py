"""A seeded world that tries to break a law: random orders, deaths, new incarnations, lost leases, late words, short segments.

It keeps its own books of slots, blocks and segments and never looks inside the law, so that a law cannot vouch for itself.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from penstock.flow.budget import Budget
from penstock.flow.events import (
    BatchTrained,
    BlockUp,
    Event,
    HandIn,
    KillWorker,
    Law,
    LeaseExpired,
    RunEnding,
    SegmentDone,
    StartSegment,
    TrainBatch,
    WorkerDead,
    WriteOff,
    WriteOffAcknowledged,
)
from penstock.flow.free import FreeLaw
from penstock.flow.pinned import PinnedLaw

FULL = 10
"""Steps of a whole segment, of one lane."""
TROUBLES = 8
"""Deaths and lost leases per drive: then the world is kind, so that a law that is alive must arrive."""


@dataclass(frozen=True)
class Setting:
    """One law. Pinned flow has D = K and M = the number of blocks, and may have a budget of rows."""

    pinned: bool
    blocks: int
    staleness: int
    depth: int
    size: int
    rows: int | None = None

    @property
    def budget(self) -> Budget | None:
        return None if self.rows is None else Budget(self.rows, num_blocks=self.blocks, segment_rows=FULL)

    @cached_property
    def num_rounds(self) -> int:
        """So many rounds the budget needs: the books' own sum over what each of them will turn out to hold."""
        assert self.rows is not None
        gathered, rounds = 0, 0
        while gathered < self.rows:
            gathered += sum(valid_rows(rounds * self.blocks + block) for block in range(self.blocks))
            rounds += 1
        return rounds

    def open(self) -> Law:
        if self.pinned:
            return PinnedLaw(num_blocks=self.blocks, staleness=self.staleness, budget=self.budget)
        return FreeLaw(num_blocks=self.blocks, staleness=self.staleness, depth=self.depth, segments_per_batch=self.size)


@cache
def valid_rows(segment: int) -> int:
    """Decisions in a segment of pinned flow: known only once it is done, and the same in every order of events."""
    return random.Random(f"rows {segment}").randint(FULL // 2, FULL)


def drawn_setting(seed: int, *, pinned: bool | None = None) -> Setting:
    draw = random.Random(f"setting {seed}")
    blocks = draw.randint(1, 8)
    if draw.random() < 0.5 if pinned is None else pinned:
        staleness = draw.randint(0, 5)
        rows = draw.randint(7 * blocks * FULL + 1, 9 * blocks * FULL) if draw.random() < 0.5 else None  # 8 rounds at least
        return Setting(True, blocks, staleness, staleness, blocks, rows)
    staleness = draw.randint(1, 5)
    return Setting(False, blocks, staleness, draw.randint(0, staleness), draw.randint(1, 10))


class Drive:
    """Drives one law through one order of events to `versions` trained batches."""

    def __init__(
        self,
        setting: Setting,
        seed: int,
        *,
        law: Law | None = None,
        trouble: bool = True,
        versions: int = 8,
        trust_check: bool = True,
    ) -> None:
        self.setting, self.seed = setting, seed
        self.versions = versions if setting.rows is None else setting.num_rounds
        self.issued: set[int] = set()
        self.law = law or setting.open()
        self.batches: list[TrainBatch] = []
        self.overtaken = 0
        self._draw = random.Random(f"order {seed}")
        self._troubles = TROUBLES if trouble else 0
        self._trust_check = trust_check
        self._story: deque[str] = deque(maxlen=24)
        self._published = -1
        self._training: TrainBatch | None = None
        self._started: dict[int, StartSegment] = {}  # all that were started and are not trained or gone
        self._running: dict[int, StartSegment] = {}
        self._done: dict[int, int] = {}  # ready segment: its steps
        self._written_off: dict[int, StartSegment] = {}
        self._asked: set[int] = set()
        self._owner: dict[int, int] = {}  # slot: segment
        self._host: dict[int, int] = {}  # block: live incarnation
        self._homeless: dict[int, list[int]] = {}  # worker index: blocks that wait for its next start
        self._late: list[Event] = []
        self._next_incarnation = 0
        self._dropped = 0
        self._ending = False
        self._always_full = True  # every batch so far was taken with all places taken

    # ---------------------------------------------------------------- the order

    def run(self) -> Drive:
        try:
            self._open()
            while self._published < self.versions:
                self._step()
            self._end()
        except AssertionError as error:
            story = "\n  ".join(self._story)
            raise AssertionError(f"{error}\n{self.setting}, seed {self.seed}; the last events:\n  {story}") from error
        return self

    def _open(self) -> None:
        blocks = list(range(self.setting.blocks))
        self._draw.shuffle(blocks)
        workers = self._draw.randint(1, len(blocks))
        self._homeless = {index: blocks[index::workers] for index in range(workers)}
        self._publish_first = self._draw.random() < 0.5
        if self._publish_first:
            self._trained(0)
        for index in list(self._homeless):
            self._rehost(index)
        if not self._publish_first:
            self._trained(0)

    def _step(self) -> None:
        """One thing that may happen happens; if nothing may, the law has stopped."""
        choices: list[tuple[int, Callable[[], None]]] = []
        choices += [(4, lambda: self._finish(self._pick(self._running)))] * bool(self._running)
        choices += [(3, lambda: self._trained(self._published + 1))] * (self._training is not None)
        choices += [(2, lambda: self._let_go(self._pick(self._written_off)))] * bool(self._written_off)
        choices += [(2, lambda: self._rehost(self._pick(self._homeless)))] * bool(self._homeless)
        assert choices, "the law has stopped: nothing runs, nothing trains, everybody has answered"
        choices += [(2, self._say_something_late)] * bool(self._late)
        if self._troubles and self._draw.random() < 0.2:
            choices += [(2, self._kill_one)] * bool(self._host)
            choices += [(2, lambda: self._overrun(self._pick(self._running)))] * bool(self._running)
        weights, actions = zip(*choices, strict=True)
        self._draw.choices(actions, weights)[0]()

    def _pick(self, among: Any) -> Any:
        return self._draw.choice(list(among))

    def _finish(self, segment: int) -> None:
        start = self._running.pop(segment)
        steps = self._draw.randint(1, FULL) if segment in self._asked else FULL
        self._done[segment] = steps
        self._tell(SegmentDone(segment, start.worker, steps, valid_rows(segment) if self.setting.pinned else None))

    def _trained(self, version: int) -> None:
        if self._training is not None:
            for member in self._training.members:
                del self._started[member.segment], self._done[member.segment], self._owner[member.slot]
            self._training = None
        self._published = version
        self._tell(BatchTrained(version))

    def _let_go(self, segment: int) -> None:
        """The worker answers; or its last Done was on its way when it was written off."""
        start = self._written_off.pop(segment)
        self._forget(start)
        crossed = self._draw.random() < 0.3
        worker = start.worker
        self._tell(SegmentDone(segment, worker, FULL) if crossed else WriteOffAcknowledged(segment, worker))

    def _forget(self, start: StartSegment) -> None:
        del self._started[start.segment], self._owner[start.slot]

    def _overrun(self, segment: int) -> None:
        self._troubles -= 1
        self._tell(LeaseExpired(segment))
        self._late.append(LeaseExpired(segment))

    def _kill_one(self) -> None:
        self._kill(self._pick(sorted(set(self._host.values()))))

    def _kill(self, worker: int) -> None:
        """Everything it ran is gone; what it might still have said is kept and said later."""
        if worker not in self._host.values():
            return
        self._troubles = max(0, self._troubles - 1)
        blocks = [block for block, host in self._host.items() if host == worker]
        for block in blocks:
            del self._host[block]
        stays_away = not self.setting.pinned and bool(self._host) and self._draw.random() < 0.3
        if not stays_away:  # free flow must go on with whoever is left; pinned flow needs every block
            self._homeless[max(self._homeless, default=-1) + 1] = blocks
        for held in (self._running, self._written_off):
            for start in [s for s in held.values() if s.worker == worker]:
                del held[start.segment]
                self._forget(start)
                self._dropped += held is self._running and not self.setting.pinned
                self._late += [SegmentDone(start.segment, worker, FULL, 0), WriteOffAcknowledged(start.segment, worker)]
        self._tell(WorkerDead(worker))

    def _rehost(self, index: int) -> None:
        blocks = self._homeless.pop(index)
        worker, self._next_incarnation = self._next_incarnation, self._next_incarnation + 1
        for block in blocks:
            self._host[block] = worker
            self._tell(BlockUp(block, worker))

    def _say_something_late(self) -> None:
        word = self._late.pop(self._draw.randrange(len(self._late)))
        stale = not (isinstance(word, LeaseExpired) and word.segment in self._running)
        before = len(self.batches), dict(self._started)
        self._tell(word)
        assert not stale or before == (len(self.batches), self._started), f"{word} of long ago was believed"

    def _end(self) -> None:
        """After the end nothing is issued or trained, whatever still comes in."""
        assert self.setting.rows is None or not self._running, "something runs that nobody needs"
        self._ending = True
        self._troubles = 0
        self._tell(RunEnding())
        while self._running or self._training is not None or self._written_off:
            self._step()

    # ---------------------------------------------------------------- the books

    def _tell(self, event: Event) -> None:
        kills = []
        commands = self.law.handle(event)
        self._story.append(f"{event} -> {commands}")
        hand_ins: set[int] = set()
        due: set[int] | None = None
        for command in commands:
            match command:
                case StartSegment():
                    self._on_start(command)
                case TrainBatch():
                    self._on_train(command)
                    due = self._due_at_take()
                case HandIn(segment, worker):
                    assert self._running[segment].worker == worker, "the wrong worker is asked to hand in"
                    hand_ins.add(segment)
                case WriteOff(segment, worker):
                    assert isinstance(event, LeaseExpired), "written off without a lost lease"
                    assert self._running[segment].worker == worker, "the wrong worker is written off"
                    self._written_off[segment] = self._running.pop(segment)
                    self._dropped += 1
                case KillWorker(worker):
                    kills.append(worker)
        due = self._due_while_idle() if due is None else due
        assert hand_ins == due, f"asked to hand in: {hand_ins}, due: {due}"
        self._asked |= hand_ins
        assert self.law.dropped_segments == self._dropped, "something was discarded without a death or a lost lease"
        if self._trust_check:
            self.law.check()
        for worker in kills:
            self._kill(worker)

    def _on_start(self, start: StartSegment) -> None:
        setting = self.setting
        assert not self._ending, "issued after the end"
        assert self._host.get(start.block) == start.worker, "started on a worker that does not host the block"
        busy = [s.block for s in (*self._running.values(), *self._written_off.values())]
        assert start.block not in busy, f"block {start.block} runs twice"
        assert start.slot not in self._owner, f"slot {start.slot} belongs to segment {self._owner.get(start.slot)}"
        assert 0 <= start.slot < self.law.num_slots
        assert self._published - setting.staleness <= start.version <= self._published, "weights that are not on the board"
        if setting.rows is not None:
            assert start.segment < setting.num_rounds * setting.blocks, f"segment {start.segment} is past the last round"
        assert len(self._started) < (setting.depth + 1) * setting.size, "issued beyond capacity"
        self.issued.add(start.segment)
        self._owner[start.slot] = start.segment
        self._started[start.segment] = self._running[start.segment] = start

    def _on_train(self, batch: TrainBatch) -> None:
        setting = self.setting
        assert not self._ending, "trained after the end"
        assert self._training is None, "two batches are trained at once"
        assert batch.version == self._published == len(self.batches)
        assert len({m.segment for m in batch.members}) == len(batch.members) == setting.size
        for member in batch.members:
            assert member.segment in self._started, f"segment {member.segment} went with its worker and is trained all the same"
            start = self._started[member.segment]
            assert member.steps == self._done.get(member.segment), f"segment {member.segment} is not ready"
            told = (start.block, start.worker, start.slot, start.version)
            named = (member.block, member.worker, member.slot, member.version)
            assert told == named, f"segment {member.segment} was started as {told} and is trained as {named}"
            assert 0 <= batch.version - member.version <= setting.staleness, f"segment {member.segment} is too stale"
        if setting.pinned:
            self._check_pinned(batch)
        else:
            self._check_overtaking(batch)
        self._training = batch
        self.batches.append(batch)

    def _check_pinned(self, batch: TrainBatch) -> None:
        round_, blocks = batch.version, self.setting.blocks
        assert [m.block for m in batch.members] == list(range(blocks)), "not one segment of each block in block order"
        assert [m.segment for m in batch.members] == list(range(round_ * blocks, (round_ + 1) * blocks))
        assert {m.version for m in batch.members} == {max(0, round_ - self.setting.staleness)}, "acted by another version"

    def _check_overtaking(self, batch: TrainBatch) -> None:
        setting = self.setting
        taken = {m.segment for m in batch.members}
        left = [s for s in self._started.values() if s.segment not in taken and s.segment not in self._written_off]
        for due in range(batch.version, batch.version + setting.staleness + 1):
            waiting = sum(s.version + setting.staleness <= due for s in left)
            assert waiting <= setting.size * (due - batch.version), f"{waiting} segments cannot all be trained by {due}"
        newest = max(m.version for m in batch.members)
        overtaken = sum(s.version < newest for s in left)
        places = (setting.depth + 1) * setting.size
        self._always_full &= len(taken) + len(left) == places and not self._dropped
        if setting.depth == setting.staleness and self._always_full:
            assert not overtaken, "overtaken although D = K and all places were taken"
        self.overtaken += overtaken

    def _due_at_take(self) -> set[int]:
        """Running segments of older versions that have to be trained with the next batch and have not been asked yet."""
        bound = min(self._published + 1 - self.setting.staleness, self._published - 1)
        return self._unasked_up_to(bound)

    def _due_while_idle(self) -> set[int]:
        """Running segments without which the learner cannot go on, once half a batch is ready."""
        if self._training is not None or self._ending or 2 * self._num_ready() < self.setting.size:
            return set()
        return self._unasked_up_to(self._published - self.setting.staleness)

    def _num_ready(self) -> int:
        return sum(number in self._done and number not in self._written_off for number in self._started)

    def _unasked_up_to(self, version: int) -> set[int]:
        if self.setting.pinned or self._published < 0:
            return set()
        return {number for number, s in self._running.items() if s.version <= version and number not in self._asked}
