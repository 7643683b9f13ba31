"""One block running its segments: together or drifting, whole, cut or abandoned. Over an environment with drawn latencies."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from counting_rows import CountingReader, naming_value, same_bytes
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.protocols import ALL, Acted, Lanes
from penstock.core.specs import Array, LanePosition
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import open_block
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.store.slots import Segment, SegmentShape, Slots
from penstock.workers.acting import AtHand
from penstock.workers.actors import SegmentActor
from penstock.workers.hours import Hours
from penstock.workers.sampling import BlockRun, Finished

SEED, EPISODE_STEPS = 11, 5
COUNTING = {"episode_steps": EPISODE_STEPS, "ragged": True}
SETTINGS = EnvSettings(id="penstock/Counting-v0", arguments=COUNTING, n_envs=1, n_blocks=1)
MAKER = EnvironmentMaker.of(SETTINGS)
SPEC = probe(MAKER, SETTINGS).spec


class Latent:
    """Each lane is ready some looks after it was sent. Time passes when somebody looks, or waits."""

    def __init__(self, lanes: int, seed: int | None, block: int = 0) -> None:
        self._inner = open_block(MAKER, SPEC, replace(SETTINGS, n_envs=lanes), SEED, block, "serial")
        self._inner.reset()
        self.spec, self.num_lanes = self._inner.spec, lanes
        self.observation, self.reward, self.valid = self._inner.observation, self._inner.reward, self._inner.valid
        self.terminated, self.truncated, self.ended = self._inner.terminated, self._inner.truncated, self._inner.ended
        self._random = None if seed is None else np.random.default_rng(seed)
        self._left = np.zeros(lanes, int)  # looks until ready; 0: not sent
        self._actions: Array = np.zeros(lanes, int)

    def reset(self) -> None:
        raise AssertionError("a running block is never reset from outside")

    def send(self, lanes: Lanes, actions: Array) -> None:
        assert len(actions) == self.num_lanes
        assert not self._left[lanes].any(), "a lane was sent twice"
        self._actions[lanes] = actions[lanes]
        self._left[lanes] = 1 if self._random is None else self._random.integers(1, 6, self.num_lanes)[lanes]

    def receive(self, timeout_s: float | None = None) -> Lanes:
        sent = self._left > 0
        if not sent.any():
            return np.empty(0, np.int64)
        pass_ = 1 if timeout_s == 0 else self._left[sent].min()
        self._left[sent] -= pass_
        ready = np.flatnonzero(sent & (self._left == 0))
        if not len(ready):
            return ready
        lanes: Lanes = ALL if len(ready) == self.num_lanes else ready
        self._inner.send(lanes, self._actions)
        self._inner.receive()
        return lanes

    def fileno(self) -> int:
        return -1 if self._random is None else 0  # nobody selects here

    def position(self, lane: int) -> LanePosition:
        return self._inner.position(lane)

    def close(self) -> None: ...


class NamingActor:
    """Draws and values that name their row: a wrong row shows in the number."""

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        return np.asarray(generator.random((steps, lanes), np.float32))

    def act(self, observation: Array, noise: Array) -> Acted:
        assert len(observation) == len(noise), "a forward has the block's full shape"
        action = ((noise * 4).astype(np.int64) + observation[:, 2].astype(np.int64)) % 4
        return Acted(action, noise + observation[:, 2], naming_value(observation))

    def value(self, observation: Array) -> Array:
        return naming_value(observation)

    def to_environment(self, action: Array) -> Array:
        return action


class Late:
    """Answers after some looks, from what lies in the slot by then, as a server does."""

    def __init__(self, at_hand: AtHand, slot: Segment, lanes: int, random: np.random.Generator) -> None:
        self._at_hand, self._slot, self._lanes, self._random = at_hand, slot, np.arange(lanes), random
        self.to_environment = at_hand.to_environment
        self._left = 0  # looks until it is there

    def ask(self, observation: Array, step: Any, *, closing: bool = False) -> None:
        assert self._left == 0, "a block has one question under way at most"
        self._steps, self._closing = np.zeros(len(self._lanes), int) + step, closing
        self._left = int(self._random.integers(1, 6))

    def answer(self) -> Acted | None:
        self._left -= 1
        if self._left:
            return None
        rows = self._slot.observation[self._steps, self._lanes]
        return self._at_hand.ask(rows, self._steps, closing=self._closing)


class Drive:
    """A block run with slots of its own, and a reader that checks every segment."""

    def __init__(
        self, *, lanes: int, steps: int, drift: bool, latency: int | None, gamma: float | None = None, late: int | None = None
    ) -> None:
        self.environment = Latent(lanes, latency)
        self.slots = Slots.create(self.environment.spec, SegmentShape(steps, lanes), 1)
        self.run = BlockRun(0, self.environment, drift=drift, return_gamma=gamma)
        self._late = None if late is None else np.random.default_rng(late)
        self.reader = CountingReader(0, lanes, seed=SEED, **COUNTING)

    def begin(self, number: int) -> None:
        slot = self.slots[0]
        for name in ("valid", "terminated", "truncated"):
            getattr(slot, name)[...] = True  # what the slot held before must not shine through
        slot.reward[...] = slot.log_prob[...] = slot.value[...] = 77
        lanes, steps = self.environment.num_lanes, len(slot.reward)
        actor: Any = NamingActor()  # all that is used of an Actor
        segment = SegmentActor(actor, seed=SEED, block=0, segment=number, steps=steps, lanes=lanes)
        acting: Any = AtHand(segment, actor.to_environment, Hours())
        self.run.begin(number, slot, acting if self._late is None else Late(acting, slot, lanes, self._late))

    def finish(self) -> tuple[Finished, Segment]:
        for _ in range(10_000):
            finished = self.run.advance()
            if finished is not None:
                return finished, copy.deepcopy(self.slots[0])
        raise AssertionError("the segment does not end")

    def segment(self, number: int) -> Segment:
        self.begin(number)
        _, segment = self.finish()
        self.reader.read(segment)
        return segment


SEEDS = st.none() | st.integers(0, 999)
SIZES = {"lanes": st.integers(1, 4), "steps": st.integers(1, 9)}


@settings(max_examples=40)
@given(**SIZES, latencies=st.tuples(st.integers(0, 999), st.integers(0, 999)), late=st.integers(0, 999))
def test_together_and_drift_at_hand_and_late_write_the_same_segments_to_the_bit(lanes, steps, latencies, late):
    def segments(drift: bool, latency: int | None, late: int | None = None) -> list[Segment]:
        drive = Drive(lanes=lanes, steps=steps, drift=drift, latency=latency, gamma=0.9, late=late)
        return [drive.segment(number) for number in range(4)]

    plain = segments(drift=False, latency=None)
    ways = [segments(False, latencies[0]), segments(True, None), segments(True, latencies[0]), segments(True, latencies[1])]
    ways += [segments(drift, latency, late) for drift in (False, True) for latency in (None, latencies[0])]
    for other in ways:
        assert same_bytes(plain, other)


@pytest.mark.parametrize("drift", [False, True])
def test_rows_are_in_next_step_form_over_segment_borders(drift):
    """The reader compares lane, episode, step, action, reward, flags and totals of every row."""
    drive = Drive(lanes=3, steps=7, drift=drift, latency=3)
    for number in range(20):
        segment = drive.segment(number)
        assert np.array_equal(segment.value, naming_value(segment.observation))
        assert segment.steps_done.tolist() == [7, 7, 7]
    reader = drive.reader
    assert reader.rows + reader.resets == 20 * 7 * 3
    assert reader.ends - reader.resets in range(4)
    assert reader.resets > 60


def test_what_is_finished_is_counted():
    drive = Drive(lanes=3, steps=7, drift=True, latency=3)
    drive.begin(4)
    finished, segment = drive.finish()
    assert (finished.segment, finished.block, finished.steps, finished.short) == (4, 0, 7, False)
    assert finished.rows == np.count_nonzero(segment.valid) < 21
    assert drive.run.number is None


def test_draws_belong_to_block_and_segment():
    one, other = (Drive(lanes=2, steps=4, drift=False, latency=None) for _ in range(2))
    first = one.segment(0)
    assert not np.array_equal(first.log_prob, other.segment(1).log_prob)
    assert same_bytes([first], [Drive(lanes=2, steps=4, drift=False, latency=None).segment(0)])


# ---------------------------------------------------------------- cut and abandoned


@given(**SIZES, drift=st.booleans(), latency=SEEDS, late=SEEDS, moments=st.lists(st.integers(0, 25), min_size=3))
def test_a_cut_hands_in_what_there_is_and_goes_on_mid_episode(lanes, steps, drift, latency, late, moments):
    drive = Drive(lanes=lanes, steps=steps, drift=drift, latency=latency, late=late)
    for number, moment in enumerate(moments[:8]):
        drive.begin(number)
        finished = None
        for _ in range(moment):
            finished = finished or drive.run.advance()
        if finished is None:
            drive.run.cut()
            finished, segment = drive.finish()
        else:
            segment = copy.deepcopy(drive.slots[0])
        drive.reader.read(segment)  # also: masked after the cut, and the next segment starts where this one stopped
        done = segment.steps_done
        assert 1 <= finished.steps == done.max() <= steps
        assert finished.short == bool((done < steps).any())
        assert finished.rows == np.count_nonzero(segment.valid)
        for lane in range(lanes):
            named = naming_value(segment.observation[: done[lane] + 1, lane])
            assert np.array_equal(segment.value[: done[lane] + 1, lane], named), "a value, or the bootstrap, is in a wrong row"
            assert not segment.log_prob[done[lane] :, lane].any()
            assert not segment.action[done[lane] :, lane].any()


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize("latency", [None, 5])
@pytest.mark.parametrize("late", [None, 5])
def test_a_cut_before_the_first_step_still_takes_one(drift, latency, late):
    drive = Drive(lanes=3, steps=7, drift=drift, latency=latency, late=late)
    drive.begin(0)
    drive.run.cut()
    finished, segment = drive.finish()
    assert finished.steps == 1
    assert finished.short
    assert segment.steps_done.tolist() == [1, 1, 1]
    assert np.count_nonzero(segment.valid) == 3


def test_a_cut_does_not_last():
    drive = Drive(lanes=2, steps=4, drift=False, latency=None)
    drive.begin(0)
    drive.run.cut()
    drive.finish()
    drive.begin(1)
    finished, _ = drive.finish()
    assert (finished.steps, finished.short) == (4, False)


@given(drift=st.booleans(), latency=SEEDS, late=SEEDS, moment=st.integers(0, 30))
def test_an_abandoned_segment_is_let_go_and_its_episodes_are_not_reported(drift, latency, late, moment):
    lanes, steps = 3, 40
    drive = Drive(lanes=lanes, steps=steps, drift=drift, latency=latency, late=late)
    drive.begin(0)
    for _ in range(moment):
        drive.run.advance()
    while not drive.run.abandon():  # somebody is still at work for it: the slot is not let go of yet
        assert drive.run.awaiting or drive.run.asked
        assert drive.run.number == 0
    assert drive.run.number is None
    assert not drive.run.awaiting
    assert not drive.run.asked
    ended = drive.environment.terminated | drive.environment.truncated
    standing = drive.environment.observation.copy()
    drive.begin(1)
    finished, segment = drive.finish()
    assert finished.segment == 1
    assert np.array_equal(segment.observation[0], standing)
    assert np.array_equal(segment.starts_with_reset, ended)
    assert np.array_equal(segment.valid[0], ~ended)
    for lane in range(lanes):
        resets = np.flatnonzero(~segment.valid[:, lane])
        assert np.isnan(segment.episode_return[: resets[0], lane]).all(), "a game that lost rows is reported"
        assert np.isfinite(segment.episode_return[resets[0] :, lane]).all()


def test_accumulators_are_those_of_the_segments_start():
    drive = Drive(lanes=2, steps=3, drift=False, latency=None, gamma=0.5)
    expected = np.zeros(2)
    for number in range(6):
        segment = drive.segment(number)
        assert segment.return_accumulator.tolist() == expected.tolist()
        for t in range(3):
            done, valid = segment.terminated[t] | segment.truncated[t], segment.valid[t]
            expected = np.where(valid, np.where(done, 0.0, 0.5 * expected + segment.reward[t]), expected)


def test_helpers_see_what_they_should():
    """The reader itself, on rows that are wrong."""
    segment = Drive(lanes=2, steps=4, drift=False, latency=None).segment(0)
    for name, row in (("observation", 1), ("reward", 0), ("valid", 2), ("episode_return", 1), ("action", 0)):
        fields = {field: getattr(segment, field).copy() for field in vars(segment)}
        fields[name][row] = fields[name][row][::-1] + 1 if name != "valid" else ~fields[name][row]
        with pytest.raises(AssertionError):
            CountingReader(0, 2, seed=SEED, **COUNTING).read(SimpleNamespace(**fields))
