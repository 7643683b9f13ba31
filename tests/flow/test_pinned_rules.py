"""Each rule of the pinned flow alone, with the arithmetic written out."""

from __future__ import annotations

import pytest

from penstock.flow.budget import Budget
from penstock.flow.events import (
    BatchTrained,
    BlockUp,
    Command,
    KillWorker,
    LeaseExpired,
    RunEnding,
    SegmentDone,
    StartSegment,
    TrainBatch,
    WorkerDead,
)
from penstock.flow.pinned import PinnedLaw


def opened(*, blocks: int, staleness: int, budget: Budget | None = None) -> tuple[PinnedLaw, list[Command]]:
    """A law at version 0; block i is hosted by worker i."""
    law = PinnedLaw(num_blocks=blocks, staleness=staleness, budget=budget)
    law.handle(BatchTrained(0))
    return law, [command for block in range(blocks) for command in law.handle(BlockUp(block, block))]


def done(law: PinnedLaw, segment: int, worker: int, rows: int | None = None) -> list[Command]:
    commands = law.handle(SegmentDone(segment, worker, 5, rows))
    law.check()
    return commands


def test_the_textbook_loop() -> None:
    """K = 0: all collect with v, then one trains, then all collect with v + 1."""
    law, commands = opened(blocks=2, staleness=0)
    assert commands == [StartSegment(0, 0, 0, 0, 0), StartSegment(1, 1, 1, 1, 0)]
    assert done(law, 1, 1) == []
    assert law.waiting_for() == [0]
    (batch,) = done(law, 0, 0)
    assert isinstance(batch, TrainBatch)
    assert [m.block for m in batch.members] == [0, 1], "block order, not the order of arrival"
    assert law.handle(BatchTrained(1)) == [StartSegment(2, 0, 0, 0, 1), StartSegment(3, 1, 1, 1, 1)]


def test_overlap_runs_one_round_ahead_and_no_further() -> None:
    """K = 1: round 1 starts at v = 0 = 1 - K with weights max(0, 1 - 1) = 0; round 2 waits for v = 1."""
    law, _ = opened(blocks=1, staleness=1)
    batch, ahead = done(law, 0, 0)
    assert isinstance(batch, TrainBatch)
    assert ahead == StartSegment(1, 0, 0, 1, 0), "in the other of K + 1 = 2 slots"
    assert done(law, 1, 0) == []
    batch, ahead = law.handle(BatchTrained(1))
    assert isinstance(batch, TrainBatch)
    assert [(m.segment, m.version) for m in batch.members] == [(1, 0)], "trained at 1, acted by 0: staleness 1"
    assert ahead == StartSegment(2, 0, 0, 0, 1), "slot 0 again: its segment has been trained"


@pytest.mark.parametrize("staleness", range(4))
def test_round_k_acts_with_version_k_minus_staleness(staleness: int) -> None:
    law, commands = opened(blocks=1, staleness=staleness)
    seen: list[tuple[int, int]] = []
    while len(seen) < 8:
        starts = [c for c in commands if isinstance(c, StartSegment)]
        seen += [(c.segment, c.version) for c in starts]
        commands = [c for start in starts for c in done(law, start.segment, 0)]
        if not any(isinstance(c, StartSegment) for c in commands):
            commands = law.handle(BatchTrained(law.version + 1))
    assert seen[:8] == [(round_, max(0, round_ - staleness)) for round_ in range(8)]


def test_an_expired_lease_costs_the_worker_its_life_and_the_round_is_run_again() -> None:
    law, _ = opened(blocks=2, staleness=1)
    assert law.handle(LeaseExpired(0)) == [KillWorker(0)]
    assert law.handle(WorkerDead(0)) == []
    assert law.handle(BlockUp(0, 7)) == [StartSegment(0, 0, 7, 0, 0)], "the same segment, slot and version"
    assert law.dropped_segments == 0


def test_a_lease_of_a_finished_segment_is_nobodys_death() -> None:
    law, _ = opened(blocks=2, staleness=1)
    done(law, 0, 0)
    assert law.handle(LeaseExpired(0)) == []


def test_late_words_of_a_dead_worker_are_ignored() -> None:
    law, _ = opened(blocks=1, staleness=0)
    law.handle(WorkerDead(0))
    law.handle(BlockUp(0, 7))
    assert done(law, 0, 0) == []
    (batch,) = done(law, 0, 7)
    assert isinstance(batch, TrainBatch)


def test_what_was_ready_outlives_its_worker() -> None:
    law, _ = opened(blocks=2, staleness=0)
    done(law, 0, 0)
    assert law.handle(WorkerDead(0)) == []
    assert len(done(law, 1, 1)) == 1, "the batch; block 0's next round waits for a host"


def test_the_end_stops_issue_and_training() -> None:
    law, _ = opened(blocks=1, staleness=1)
    assert law.handle(RunEnding()) == []
    assert done(law, 0, 0) == []


def test_a_round_is_started_once_the_rounds_before_it_are_certain_not_to_suffice() -> None:
    """15 rows in rounds of 2 * 5: round 1 is certain (10 < 15). Round 2 (20 - masked < 15) once more than 5 are masked."""
    law, _ = opened(blocks=2, staleness=3, budget=Budget(15, num_blocks=2, segment_rows=5))
    assert done(law, 0, 0, rows=5) == [StartSegment(2, 0, 0, 2, 0)]
    assert done(law, 2, 0, rows=3) == [], "20 - 2 = 18: block 0 waits for what block 1 brings"
    assert [c.segment for c in done(law, 1, 1, rows=5) if isinstance(c, StartSegment)] == [3]
    assert [c.segment for c in done(law, 3, 1, rows=1) if isinstance(c, StartSegment)] == [4, 5], "20 - 2 - 4 = 14 < 15"
    assert done(law, 4, 0, rows=5) == done(law, 5, 1, rows=5) == [], "30 - 6 = 24"


def test_a_budget_of_whole_rounds_needs_no_waiting() -> None:
    """20 rows in rounds of 10: round 1 at once, round 2 never, whatever is masked but for one row."""
    law, _ = opened(blocks=1, staleness=1, budget=Budget(20, num_blocks=1, segment_rows=10))
    batch, start = done(law, 0, 0)
    assert isinstance(batch, TrainBatch)
    assert isinstance(start, StartSegment)
    assert done(law, 1, 0) == []
    assert [type(command) for command in law.handle(BatchTrained(1))] == [TrainBatch]
