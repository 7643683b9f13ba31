"""Each rule of the free flow alone, with the arithmetic written out."""

from __future__ import annotations

import pytest

from penstock.flow.events import (
    BatchTrained,
    BlockUp,
    Command,
    HandIn,
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


def opened(*, blocks: int, staleness: int, depth: int, size: int) -> tuple[FreeLaw, list[Command]]:
    """A law at version 0; block i is hosted by worker i."""
    law = FreeLaw(num_blocks=blocks, staleness=staleness, depth=depth, segments_per_batch=size)
    law.handle(BatchTrained(0))
    return law, [command for block in range(blocks) for command in law.handle(BlockUp(block, block))]


def done(law: FreeLaw, segment: int, worker: int) -> list[Command]:
    commands = law.handle(SegmentDone(segment, worker, 5))
    law.check()
    return commands


def trained_at(commands: list[Command]) -> list[int]:
    return [m.segment for c in commands if isinstance(c, TrainBatch) for m in c.members]


def started(commands: list[Command]) -> list[tuple[int, int, int]]:
    return [(c.segment, c.block, c.version) for c in commands if isinstance(c, StartSegment)]


def test_issue_stops_at_capacity_and_goes_on_only_when_a_batch_is_trained() -> None:
    """D = 1, M = 2: (1 + 1) * 2 = 4 places for 5 blocks."""
    law, commands = opened(blocks=5, staleness=1, depth=1, size=2)
    assert started(commands) == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0)]
    assert done(law, 0, 0) == []
    commands = done(law, 1, 1)
    assert trained_at(commands) == [0, 1]
    assert started(commands) == [], "being picked up frees nothing"
    assert started(law.handle(BatchTrained(1))) == [(4, 4, 1), (5, 0, 1)], "2 places came back, for version 1"


def test_a_late_segment_is_left_behind_while_its_deadline_can_be_met() -> None:
    """K = 2, D = 1, M = 1. Segment 0 (version 0, deadline 2) is late. At v = 1: 1 <= M * (2 - 1), so it may be left."""
    law, _ = opened(blocks=2, staleness=2, depth=1, size=1)
    assert trained_at(done(law, 1, 1)) == [1]
    assert started(law.handle(BatchTrained(1))) == [(2, 1, 1)]
    assert trained_at(done(law, 2, 1)) == [2], "a segment of version 1 overtakes one of version 0"


def test_a_batch_is_refused_that_would_make_a_deadline_impossible() -> None:
    """The same at v = 2: left behind, segment 0 would be due by 2 with M * (2 - 2) = 0 places. The batch must wait for it."""
    law, _ = opened(blocks=2, staleness=2, depth=1, size=1)
    for version, segment in ((1, 1), (2, 2)):
        done(law, segment, 1)
        law.handle(BatchTrained(version))
    assert done(law, 3, 1) == [], "segment 3 is ready and alone would make a batch"
    assert law.waiting_for() == [0]
    assert trained_at(done(law, 0, 0)) == [0], "trained at 2 = 0 + K"


@pytest.mark.parametrize(("staleness", "depth", "size"), [(2, 1, 3), (3, 1, 2), (3, 2, 2), (4, 1, 1), (5, 3, 2), (2, 0, 3)])
def test_so_many_late_segments_are_overtaken_and_no_more(staleness: int, depth: int, size: int) -> None:
    """With all places taken min((K - D) * M, D * M) late segments are overtaken; one more (where there is room) is not."""
    places, allowed = (depth + 1) * size, min(staleness - depth, depth) * size
    for late in (allowed, allowed + 1):
        law, commands = opened(blocks=places, staleness=staleness, depth=depth, size=size)
        batches = run_all_but(late, law, commands, versions=depth + 1)
        if late <= allowed:
            newest = max(member.version for member in batches[depth].members)
            assert newest > 0 or not late, "the batch at v = D holds newer ones than those it left behind"
        else:
            room = late <= depth * size  # else there is not even a first batch: fewer than M others are under way
            assert len(batches) == (depth if room else 0), "the batch at v = D waits"


def run_all_but(late: int, law: FreeLaw, commands: list[Command], *, versions: int) -> list[TrainBatch]:
    """Finish every segment at once but the first `late` ones; the batches taken until it stops or has trained `versions`."""
    batches: list[TrainBatch] = []
    todo = list(commands)
    while todo:
        match todo.pop(0):
            case StartSegment(segment, _, worker) if segment >= late:
                todo += done(law, segment, worker)
            case TrainBatch() as batch:
                batches.append(batch)
                if len(batches) < versions:
                    starts = [c for c in todo if isinstance(c, StartSegment)]
                    todo = [*starts, *law.handle(BatchTrained(len(batches)))]
                    law.check()
    return batches


def test_hand_in_is_asked_exactly_when_the_deadline_is_at_most_the_next_version() -> None:
    """K = 2, M = 1, segment 0 of version 0: at v = 0 its deadline is 2 > 0 + 1; at v = 1 it is 2 <= 1 + 1."""
    law, _ = opened(blocks=2, staleness=2, depth=1, size=1)
    assert not any(isinstance(c, HandIn) for c in done(law, 1, 1))
    law.handle(BatchTrained(1))
    assert [c for c in done(law, 2, 1) if isinstance(c, HandIn)] == [HandIn(0, 0)]
    law.handle(BatchTrained(2))
    assert done(law, 3, 1) == [], "it is asked once"


def test_under_k_1_the_last_ones_are_asked_once_the_learner_waits_for_them() -> None:
    """K = 1, M = 2. At the take of v = 0 segment 2 is of version 0 itself: it is left alone. At v = 1 it is due."""
    law, _ = opened(blocks=3, staleness=1, depth=1, size=2)
    taken = [*done(law, 0, 0), *done(law, 1, 1)]
    assert any(isinstance(c, TrainBatch) for c in taken)
    assert not any(isinstance(c, HandIn) for c in taken)
    assert not any(isinstance(c, HandIn) for c in law.handle(BatchTrained(1))), "nothing is ready: all are equally late"
    assert done(law, 3, 0)[0] == HandIn(2, 2), "half of the batch is ready: the learner waits for 2 alone"


def test_a_short_segment_counts_as_one_of_m() -> None:
    law, _ = opened(blocks=2, staleness=1, depth=0, size=2)
    law.handle(SegmentDone(0, 0, 1))
    (batch,) = [c for c in law.handle(SegmentDone(1, 1, 5)) if isinstance(c, TrainBatch)]
    assert [m.steps for m in batch.members] == [1, 5]


def test_a_written_off_slot_is_free_again_only_once_its_worker_has_let_go() -> None:
    """D = 0, M = 2, 3 blocks: 2 places."""
    law, _ = opened(blocks=3, staleness=1, depth=0, size=2)
    assert law.handle(LeaseExpired(0)) == [WriteOff(0, 0)]
    assert law.dropped_segments == 1
    law.check()
    assert law.handle(LeaseExpired(0)) == [], "it is written off once"
    assert law.handle(WriteOffAcknowledged(0, 7)) == [], "another worker cannot let go of it"
    (start,) = law.handle(WriteOffAcknowledged(0, 0))
    assert isinstance(start, StartSegment)
    assert (start.segment, start.block, start.slot) == (2, 2, 0), "slot 0 again, for the block that waited longest"


def test_a_done_that_crosses_the_write_off_is_the_acknowledgement() -> None:
    law, _ = opened(blocks=1, staleness=1, depth=0, size=1)
    law.handle(LeaseExpired(0))
    commands = done(law, 0, 0)
    assert trained_at(commands) == [], "what was written off is not trained"
    assert started(commands) == [(1, 0, 0)]
    assert law.handle(WriteOffAcknowledged(0, 0)) == [], "and letting go twice changes nothing"


def test_a_death_frees_what_was_running_and_keeps_what_was_ready() -> None:
    law, _ = opened(blocks=2, staleness=2, depth=1, size=2)
    assert started(done(law, 0, 0)) == [(2, 0, 0)]
    law.handle(WorkerDead(0))
    assert law.dropped_segments == 1, "segment 2"
    assert trained_at(done(law, 1, 1)) == [0, 1], "segment 0 was finished before its worker died"


def test_late_words_of_a_dead_worker_are_ignored() -> None:
    law, _ = opened(blocks=1, staleness=1, depth=0, size=1)
    law.handle(WorkerDead(0))
    assert started(law.handle(BlockUp(0, 9))) == [(1, 0, 0)]
    assert done(law, 0, 0) == [], "its old segment"
    assert done(law, 1, 0) == [], "the new segment, named by the old worker"
    assert trained_at(done(law, 1, 9)) == [1]


def test_the_end_stops_issue_and_training() -> None:
    law, _ = opened(blocks=2, staleness=1, depth=0, size=2)
    assert law.handle(RunEnding()) == []
    assert done(law, 0, 0) == []
    assert done(law, 1, 1) == []
    assert law.waiting_for() == []


def test_waiting_names_the_urgent_blocks_first_and_nobody_while_the_learner_is_busy() -> None:
    law, _ = opened(blocks=2, staleness=2, depth=1, size=1)
    assert law.waiting_for() == [0, 1], "either would do"
    done(law, 1, 1)
    assert law.waiting_for() == []
    law.handle(BatchTrained(1))
    done(law, 2, 1)
    law.handle(BatchTrained(2))
    assert law.waiting_for() == [0], "block 0 runs segment 0, which is due now"
