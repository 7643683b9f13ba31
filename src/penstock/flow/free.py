"""`async`: any ready segment may join a batch, oldest version first, as long as no deadline can be missed.

issue      a segment starts while outstanding < (D + 1) * M; capacity comes back when a segment has been *trained*
deadline   started under version b, it must be trained at a version <= b + K
advance    the batch taken at v may leave a segment behind only while, for every d, at most M * (d - v) of those left
           have a deadline <= d: then the batches v + 1 .. d have room for all of them
hand-in    when a batch is taken at v, every running segment of an older version whose deadline is at most v + 1 is
           asked to hand in. Under K = 1 there is none, as all that runs is of version v: there, what the next batch
           cannot do without is asked once the learner stands idle and half of that batch is ready
lease      a segment past its lease is written off; its slot is free again only once its worker has let go or is dead

life of a segment:

    StartSegment            SegmentDone           TrainBatch            BatchTrained
idle ------------> running ------------> ready ------------> training -------------> trained, slot free
                      | LeaseExpired
                      v          WriteOffAcknowledged or WorkerDead
                  written off ---------------------------------------> slot free
"""

from __future__ import annotations

import enum
from collections import Counter, deque
from dataclasses import dataclass

from penstock.flow.events import (
    BatchTrained,
    BlockUp,
    Command,
    Event,
    HandIn,
    LeaseExpired,
    Member,
    RunEnding,
    SegmentDone,
    StartSegment,
    TrainBatch,
    WorkerDead,
    WriteOff,
    WriteOffAcknowledged,
)


class _State(enum.Enum):
    RUNNING = enum.auto()
    READY = enum.auto()
    TRAINING = enum.auto()
    WRITTEN_OFF = enum.auto()


@dataclass(slots=True)
class _Segment:
    number: int
    block: int
    worker: int
    slot: int
    version: int
    state: _State = _State.RUNNING
    asked: bool = False
    steps: int = 0


class FreeLaw:
    """The free flow: bound `staleness` = K >= 1, `depth` = D <= K, `segments_per_batch` = M."""

    pinned = False

    def __init__(self, *, num_blocks: int, staleness: int, depth: int, segments_per_batch: int) -> None:
        self.num_blocks = num_blocks
        self.staleness = staleness
        self.depth = depth
        self.segments_per_batch = segments_per_batch
        self.num_slots = (depth + 1) * segments_per_batch
        self.version = -1
        self.dropped_segments = 0
        self._segments: dict[int, _Segment] = {}  # in order of start, hence of version
        self._hosts: dict[int, int] = {}
        self._idle: deque[int] = deque()
        self._free_slots: deque[int] = deque(range(self.num_slots))
        self._next_number = 0
        self._training = False
        self._ending = False

    def handle(self, event: Event) -> list[Command]:
        """Take one event; answer with what is to be done now, in order."""
        commands: list[Command] = []
        match event:
            case BlockUp(block, worker):
                self._hosts[block] = worker
                self._idle.append(block)
            case SegmentDone(segment, worker, steps):  # rows do not matter: any segment may be the last one needed
                self._done(segment, worker, steps)
            case BatchTrained(version):
                self._trained(version)
            case LeaseExpired(segment):
                commands += self._expired(segment)
            case WriteOffAcknowledged(segment, worker):
                self._acknowledged(segment, worker)
            case WorkerDead(worker):
                self._bury(worker)
            case RunEnding():
                self._ending = True
        return commands + self._advance() + self._issue()

    def waiting_for(self) -> list[int]:
        """The blocks without which the learner cannot go on; empty while it is busy."""
        if self._training or self._ending or self.version < 0:
            return []
        running = self._in_state(_State.RUNNING)
        urgent = [s for s in running if s.version + self.staleness <= self.version]
        return [s.block for s in urgent or running]

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        live = [s for s in self._segments.values() if s.state is not _State.WRITTEN_OFF]
        assert len(live) <= (self.depth + 1) * self.segments_per_batch, "more outstanding than capacity"
        slots = [s.slot for s in self._segments.values()]
        assert sorted([*slots, *self._free_slots]) == list(range(self.num_slots)), "a slot has two owners or none"
        busy = [s.block for s in self._segments.values() if s.state in (_State.RUNNING, _State.WRITTEN_OFF)]
        assert len(busy) == len(set(busy)), "a block runs two segments"
        assert not set(busy) & set(self._idle), "a block is idle and busy"
        left = [s for s in live if s.state is not _State.TRAINING]
        first = self.version + (1 if self._training else 0)  # the version at which the next batch will be trained
        assert self._deadlines_can_be_met(left, first), "a deadline cannot be met any more"
        for segment in live:
            assert segment.version + self.staleness >= self.version, f"segment {segment.number} is past its deadline"

    def _in_state(self, state: _State) -> list[_Segment]:
        return [s for s in self._segments.values() if s.state is state]

    def _deadlines_can_be_met(self, segments: list[_Segment], first: int) -> bool:
        """With batches trained at versions first, first + 1, ...: is there room for all by their deadlines?"""
        due = Counter(s.version + self.staleness for s in segments)
        so_far = 0
        for deadline in sorted(due):
            so_far += due[deadline]
            if so_far > self.segments_per_batch * (deadline - first + 1):
                return False
        return True

    def _done(self, number: int, worker: int, steps: int) -> None:
        segment = self._segments.get(number)
        if segment is None or segment.worker != worker:
            return  # late word from a worker that was given up
        if segment.state is _State.WRITTEN_OFF:
            self._acknowledged(number, worker)  # finished just before it heard: it has let go all the same
        elif segment.state is _State.RUNNING:
            segment.state, segment.steps = _State.READY, steps
            self._idle.append(segment.block)

    def _trained(self, version: int) -> None:
        for segment in self._in_state(_State.TRAINING):
            self._release(segment)
        self._training = False
        self.version = version

    def _release(self, segment: _Segment) -> None:
        del self._segments[segment.number]
        self._free_slots.append(segment.slot)

    def _expired(self, number: int) -> list[Command]:
        segment = self._segments.get(number)
        if segment is None or segment.state is not _State.RUNNING:
            return []
        segment.state = _State.WRITTEN_OFF
        self.dropped_segments += 1
        return [WriteOff(number, segment.worker)]

    def _acknowledged(self, number: int, worker: int) -> None:
        segment = self._segments.get(number)
        if segment is not None and segment.worker == worker and segment.state is _State.WRITTEN_OFF:
            self._release(segment)
            self._idle.append(segment.block)

    def _bury(self, worker: int) -> None:
        """Its half-written segments are gone; what it had finished stays good."""
        for block in [b for b, host in self._hosts.items() if host == worker]:
            del self._hosts[block]
            if block in self._idle:
                self._idle.remove(block)
        for segment in [s for s in self._segments.values() if s.worker == worker]:
            if segment.state in (_State.RUNNING, _State.WRITTEN_OFF):
                self.dropped_segments += segment.state is _State.RUNNING
                self._release(segment)

    def _advance(self) -> list[Command]:
        """Take the M oldest ready segments, if those left behind can still meet their deadlines."""
        if self._training or self._ending or self.version < 0:
            return []
        batch = sorted(self._in_state(_State.READY), key=lambda s: (s.version, s.number))[: self.segments_per_batch]
        taken = {s.number for s in batch}
        left = [s for s in self._segments.values() if s.number not in taken and s.state is not _State.WRITTEN_OFF]
        if len(batch) < self.segments_per_batch or not self._deadlines_can_be_met(left, self.version + 1):
            half_ready = 2 * len(batch) >= self.segments_per_batch
            return self._ask(deadline=self.version, newest=self.version) if half_ready else []
        self._training = True
        for segment in batch:
            segment.state = _State.TRAINING
        members = tuple(Member(s.number, s.block, s.worker, s.slot, s.version, s.steps) for s in batch)
        return [TrainBatch(self.version, members), *self._ask(deadline=self.version + 1, newest=self.version - 1)]

    def _ask(self, *, deadline: int, newest: int) -> list[Command]:
        """Ask running segments that are due by `deadline` and of version `newest` or older to hand in, once each."""
        commands: list[Command] = []
        for segment in self._in_state(_State.RUNNING):
            due = segment.version + self.staleness <= deadline and segment.version <= newest
            if due and not segment.asked:
                segment.asked = True
                commands.append(HandIn(segment.number, segment.worker))
        return commands

    def _issue(self) -> list[Command]:
        commands: list[Command] = []
        if self._ending or self.version < 0:
            return commands
        while self._idle and self._free_slots:  # slots number (D + 1) * M: a free one is capacity
            block, slot = self._idle.popleft(), self._free_slots.popleft()
            segment = _Segment(self._next_number, block, self._hosts[block], slot, self.version)
            self._next_number += 1
            self._segments[segment.number] = segment
            commands.append(StartSegment(segment.number, block, segment.worker, slot, segment.version))
        return commands
