"""All that can wake a law, and all that a law can ask for. One screen; the type checker demands that each is handled.

A worker is known here by its incarnation: a number that no two starts of a worker share. A message that names a segment
also names the incarnation that it was given to, so what a dead or written-off worker still says is recognised and dropped.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

# ---------------------------------------------------------------- events


@dataclass(frozen=True, slots=True)
class BlockUp:
    """A live worker hosts this block, which stands ready to run its next segment."""

    block: int
    worker: int


@dataclass(frozen=True, slots=True)
class SegmentDone:
    """The segment is complete in its slot: full, or cut after `steps` steps. `rows` of it are decisions that count towards
    the budget, over all lanes (a reset is none); None: as many as there could be."""

    segment: int
    worker: int
    steps: int
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class BatchTrained:
    """The learner has published `version`; the batch that made it is trained. Version 0 opens the run."""

    version: int


@dataclass(frozen=True, slots=True)
class LeaseExpired:
    """The segment has been running for longer than it may."""

    segment: int


@dataclass(frozen=True, slots=True)
class WriteOffAcknowledged:
    """The worker has let go of a segment that was written off; its block is idle again."""

    segment: int
    worker: int


@dataclass(frozen=True, slots=True)
class WorkerDead:
    """The worker is confirmed dead: it will write to no slot any more."""

    worker: int


@dataclass(frozen=True, slots=True)
class RunEnding:
    """Issue nothing and train nothing from now on."""


Event = BlockUp | SegmentDone | BatchTrained | LeaseExpired | WriteOffAcknowledged | WorkerDead | RunEnding

# ---------------------------------------------------------------- commands


@dataclass(frozen=True, slots=True)
class StartSegment:
    """Run the block's next segment into `slot`, acting with exactly the weights of `version`."""

    segment: int
    block: int
    worker: int
    slot: int
    version: int


@dataclass(frozen=True, slots=True)
class HandIn:
    """Finish the segment after the step that is under way and hand in what there is: at least one step."""

    segment: int
    worker: int


@dataclass(frozen=True, slots=True)
class Member:
    """One segment of a batch: where it lies, who made it, which weights acted in it."""

    segment: int
    block: int
    worker: int
    slot: int
    version: int
    steps: int


@dataclass(frozen=True, slots=True)
class TrainBatch:
    """Train these segments at `version` (the number of batches trained before), in this order."""

    version: int
    members: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class WriteOff:
    """The segment is given up; the worker must let go of its slot and say so."""

    segment: int
    worker: int


@dataclass(frozen=True, slots=True)
class KillWorker:
    """The worker holds up a run that waits for all: it must die, so that its blocks can be replayed elsewhere."""

    worker: int


Command = StartSegment | HandIn | TrainBatch | WriteOff | KillWorker


class Law(Protocol):
    """What the supervisor and the simulated world drive."""

    pinned: bool
    """Every batch needs every block; else the flow goes on with the blocks that are left."""
    staleness: int
    num_slots: int
    version: int
    dropped_segments: int

    def handle(self, event: Event) -> list[Command]:
        """Take one event; answer with what is to be done now, in order."""

    def waiting_for(self) -> list[int]:
        """The blocks without which the learner cannot go on; empty while it is busy."""

    def check(self) -> None:
        """Raise AssertionError if an invariant does not hold."""
