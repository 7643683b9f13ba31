"""A sampler obeys: the block, the slot and exactly the version that it was told."""

from __future__ import annotations

import numpy as np
import pytest
from counting_rows import CountingReader
from worker_plans import COUNTING, LANES, SEED, STEPS, board_of, new_slots, sampler_plan, weights_of

from penstock.models.actor import build_actor
from penstock.transport.channel import LocalChannel
from penstock.transport.messages import Done, HandIn, LetGo, Save, Start, Stop, Up, WriteOff
from penstock.weights.board import TornRead
from penstock.workers.actors import Actors
from penstock.workers.sampler import Sampler, work_inline


class Desk:
    """A sampler, what it works with, and the other end of its channel."""

    def __init__(self, versions: int = 3, **changes) -> None:
        self.plan = sampler_plan(**changes)
        self.slots, self.board = new_slots(), board_of(versions)
        self.ours, theirs = LocalChannel.pair()
        self.sampler = Sampler(self.plan, self.slots, self.board, theirs)
        self.sampler.open()
        self.opening = self.ours.receive()

    def work(self, *messages) -> list:
        for message in messages:
            self.sampler.handle(message)
        work_inline(self.sampler)
        return self.ours.receive()

    def acted_with(self, slot: int) -> int:
        """The version whose values are in the slot, found by doing its forwards again."""
        segment, actor = self.slots[slot], build_actor(self.plan.spec, self.plan.model)
        for version in range(10):
            actor.load(weights_of(version), np.zeros(0))
            if np.array_equal(actor.value(segment.observation[0]), segment.value[0]):
                values = [actor.value(rows) for rows in segment.observation]
                assert np.array_equal(values, segment.value)
                return version
        raise AssertionError("no version gives these values")


def test_it_says_when_its_blocks_are_up():
    assert Desk().opening == [Up((0, 1))]


def test_a_segment_is_stamped_filled_and_reported():
    desk = Desk()
    (done,) = desk.work(Start(segment=4, block=1, slot=2, version=1))
    segment = desk.slots[2]
    assert [int(segment.segment), int(segment.version), int(segment.block), int(segment.worker)] == [4, 1, 1, 7]
    assert isinstance(done, Done)
    assert (done.segment, done.steps, done.short, done.chaos_events) == (4, STEPS, False, 0)
    assert done.rows == np.count_nonzero(segment.valid)
    assert done.environment_s > 0
    assert done.inference_s > 0
    assert done.idle_s >= 0


def test_blocks_act_with_the_versions_they_were_told_side_by_side():
    desk = Desk()
    said = desk.work(Start(0, 0, 0, version=0), Start(0, 1, 1, version=2)) + desk.work()
    assert len(said) == 2
    assert [desk.acted_with(slot) for slot in (0, 1)] == [0, 2]


def test_versions_that_come_and_go_leave_no_trace_in_recycled_actors():
    desk = Desk()
    order = [0, 1, 2, 1, 2, 2, 0]
    for segment, version in enumerate(order):
        desk.work(Start(segment, segment % 2, segment % 4, version=version))
        assert desk.acted_with(segment % 4) == version


def test_a_version_that_is_not_on_the_board_is_an_error_not_another_version():
    desk = Desk(versions=2)
    with pytest.raises(TornRead, match="version 2"):
        desk.work(Start(0, 0, 0, version=2))


def test_blocks_keep_their_own_lanes_over_segments():
    desk = Desk()
    readers = [CountingReader(block, LANES, seed=SEED, **COUNTING) for block in (0, 1)]
    for segment in range(6):
        desk.work(Start(segment, 0, 0, 0), Start(segment, 1, 3, 1))
        desk.work()
        readers[0].read(desk.slots[0])
        readers[1].read(desk.slots[3])
    assert all(reader.resets > 0 for reader in readers)


def test_hand_in_makes_a_short_segment():
    desk = Desk()
    desk.sampler.handle(Start(3, 0, 0, 0))
    for run in desk.sampler.ready_runs():
        desk.sampler.advance(run)
    (done,) = desk.work(HandIn(3))
    assert (done.segment, done.steps, done.short) == (3, 1, True)


def test_a_late_hand_in_and_a_late_write_off_change_nothing():
    desk = Desk()
    assert len(desk.work(Start(3, 0, 0, 0))) == 1
    assert desk.work(HandIn(3), WriteOff(3), HandIn(99)) == []
    (done,) = desk.work(Start(4, 0, 0, 0))
    assert not done.short


def test_a_segment_that_is_written_off_is_let_go_and_the_block_goes_on():
    desk = Desk()
    desk.sampler.handle(Start(3, 0, 0, 0))
    for run in desk.sampler.ready_runs():
        desk.sampler.advance(run)
    assert desk.work(WriteOff(3)) == [LetGo(3)]
    (done,) = desk.work(Start(4, 0, 1, 2))
    assert done.segment == 4
    assert desk.acted_with(1) == 2
    assert desk.slots[1].observation[0, :, 2].tolist() == [1] * LANES  # after the one step of the lost segment


def test_what_was_written_off_before_it_was_begun_is_never_begun():
    """A worker that was long away finds both messages at once, and its version gone from the board."""
    desk = Desk(versions=2)
    desk.sampler.obey([Start(3, 0, 0, version=9), Start(4, 1, 1, version=1), WriteOff(3)])
    assert desk.ours.receive() == [LetGo(3)]
    assert [run.number for run in desk.sampler.ready_runs()] == [4]
    (done,) = desk.work()
    assert done.segment == 4


def test_a_write_off_that_is_read_too_late_is_looked_for_before_a_missing_version_is_an_error():
    """Start is read alone, and its version leaves the board; the write-off was said before that, so it is there."""
    desk = Desk(versions=2)
    desk.ours.send(WriteOff(3))
    desk.ours.send(HandIn(4))
    desk.sampler.obey([Start(3, 0, 0, version=9), Start(4, 1, 1, version=1)])
    assert desk.ours.receive() == [LetGo(3)]
    (done,) = desk.work()
    assert (done.segment, done.short) == (4, True)
    with pytest.raises(TornRead, match="version 9"):
        desk.sampler.obey([Start(5, 0, 0, version=9)])


def test_the_oldest_segment_goes_first():
    desk = Desk()
    desk.sampler.handle(Start(9, 0, 0, 0))
    desk.sampler.handle(Start(8, 1, 1, 0))
    assert [run.number for run in desk.sampler.ready_runs()] == [8, 9]


def test_stop_and_what_it_has_no_use_for():
    desk = Desk()
    desk.sampler.handle(Stop())
    assert desk.sampler.stopped
    with pytest.raises(TypeError, match="no use for Save"):
        desk.sampler.handle(Save({}))
    desk.sampler.close()


def test_actors_are_as_few_as_versions_in_use():
    built = []

    class Loaded:
        def load(self, weights, statistics) -> None:
            self.version = weights[0]

    def build() -> Loaded:
        built.append(Loaded())
        return built[-1]

    board = board_of(3)
    actors = Actors(board, build, num_weights=len(weights_of(0)), num_statistics=0)
    first = actors.of_version(0, set())
    assert actors.of_version(0, {0}) is first
    second = actors.of_version(1, {0})
    assert second is not first
    assert actors.of_version(2, {1}) is first  # nobody acts with 0 any more
    assert [first.version, second.version] == [weights_of(2)[0], weights_of(1)[0]]
    assert len(built) == 2
