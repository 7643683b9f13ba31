"""`sync` (K = 0) and `overlap` (K >= 1): batch k holds round k of every block, acted by exactly version max(0, k - K).

    version v:        0       1       2       3            K = 1
    learner trains        b0      b1      b2
    round of a block  [ 0 ][ 1 ] [ 2 ]   [ 3 ]
    acted by version    0    0     1       2

A block may start round k once v >= k - K. Which data meets which weights is thus written down before anything has run; how
fast blocks, workers or the learner are decides only when it happens. Nothing is ever written off: a segment whose lease
expires costs its worker's life, and the block's next host runs the same segment into the same slot again.

Where the run has a budget of steps, a round is started only once the rounds before it are certain not to suffice (budget.py).
So no round past the last is started, and which rounds are is a function of the data, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.flow.budget import Budget
from penstock.flow.events import (
    BatchTrained,
    BlockUp,
    Command,
    Event,
    KillWorker,
    LeaseExpired,
    Member,
    RunEnding,
    SegmentDone,
    StartSegment,
    TrainBatch,
    WorkerDead,
    WriteOffAcknowledged,
)


@dataclass(slots=True)
class _Block:
    """A block runs its rounds in order, one at a time."""

    host: int | None = None
    next_round: int = 0  # the first round that is not ready yet
    running: bool = False


class PinnedLaw:
    """The pinned flow over `num_blocks` blocks with staleness bound `staleness` = K."""

    pinned = True

    def __init__(self, *, num_blocks: int, staleness: int, budget: Budget | None = None) -> None:
        self.num_blocks = num_blocks
        self.staleness = staleness
        self.num_slots = (staleness + 1) * num_blocks
        self.version = -1  # nothing published yet
        self.dropped_segments = 0  # stays 0: pinned flow gives nothing up
        self._budget = budget  # None: the run ends when it is told to
        self._blocks = [_Block() for _ in range(num_blocks)]
        self._ready: dict[int, Member] = {}
        self._training = False
        self._ending = False

    def handle(self, event: Event) -> list[Command]:
        """Take one event; answer with what is to be done now, in order."""
        commands: list[Command] = []
        match event:
            case BlockUp(block, worker):
                self._blocks[block].host = worker
            case SegmentDone(segment, worker, steps, rows):
                self._done(segment, worker, steps, rows)
            case BatchTrained(version):
                self._trained(version)
            case LeaseExpired(segment):
                commands += self._expired(segment)
            case WorkerDead(worker):
                self._bury(worker)
            case RunEnding():
                self._ending = True
            case WriteOffAcknowledged():
                pass  # nothing is written off in pinned flow, so nobody can truthfully say this
        return commands + self._advance() + self._issue()

    def waiting_for(self) -> list[int]:
        """The blocks whose round the learner lacks; empty while it is busy."""
        if self._training or self._ending or self.version < 0:
            return []
        return [i for i in range(self.num_blocks) if self._number(self.version, i) not in self._ready]

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
        for index, block in enumerate(self._blocks):
            assert block.next_round >= self.version, f"block {index} lost round {block.next_round}"
            assert block.next_round <= self.version + self.staleness + 1, f"block {index} ran past the bound"
            assert not block.running or block.host is not None, f"block {index} runs without a host"
            assert not block.running or self._needs(block.next_round), f"block {index} runs past the budget"
        for member in self._ready.values():
            round_ = member.segment // self.num_blocks
            assert member.version == max(0, round_ - self.staleness), f"segment {member.segment} acted by another version"
            assert round_ >= self.version, f"segment {member.segment} outlived its batch"
        slots = [member.slot for member in self._ready.values()]
        slots += [self._slot(block.next_round, i) for i, block in enumerate(self._blocks) if block.running]
        assert len(slots) == len(set(slots)), "two segments share a slot"

    def _number(self, round_: int, block: int) -> int:
        return round_ * self.num_blocks + block

    def _slot(self, round_: int, block: int) -> int:
        """A round's slots lie side by side, so that a batch is one view."""
        return (round_ % (self.staleness + 1)) * self.num_blocks + block

    def _done(self, segment: int, worker: int, steps: int, rows: int | None) -> None:
        round_, index = divmod(segment, self.num_blocks)
        block = self._blocks[index]
        if not (block.running and block.host == worker and block.next_round == round_):
            return  # late word from a worker that was given up
        version = max(0, round_ - self.staleness)
        self._ready[segment] = Member(segment, index, worker, self._slot(round_, index), version, steps)
        block.running = False
        block.next_round += 1
        if self._budget is not None:
            self._budget.segment_done(rows)

    def _trained(self, version: int) -> None:
        if self._training:
            for index in range(self.num_blocks):
                del self._ready[self._number(self.version, index)]
        self._training = False
        self.version = version

    def _expired(self, segment: int) -> list[Command]:
        round_, index = divmod(segment, self.num_blocks)
        block = self._blocks[index]
        if block.running and block.next_round == round_ and block.host is not None:
            return [KillWorker(block.host)]
        return []

    def _bury(self, worker: int) -> None:
        for block in self._blocks:
            if block.host == worker:
                block.host = None
                block.running = False  # its next host starts this round again

    def _advance(self) -> list[Command]:
        if self._training or self._ending or self.version < 0 or self.waiting_for():
            return []
        self._training = True
        members = tuple(self._ready[self._number(self.version, i)] for i in range(self.num_blocks))
        return [TrainBatch(self.version, members)]

    def _needs(self, round_: int) -> bool:
        return self._budget is None or self._budget.needs(round_)

    def _issue(self) -> list[Command]:
        commands: list[Command] = []
        if self._ending or self.version < 0:
            return commands
        for index, block in enumerate(self._blocks):
            round_ = block.next_round
            if block.host is None or block.running or self.version < round_ - self.staleness or not self._needs(round_):
                continue
            block.running = True
            version = max(0, round_ - self.staleness)
            segment, slot = self._number(round_, index), self._slot(round_, index)
            commands.append(StartSegment(segment, index, block.host, slot, version))
        return commands
