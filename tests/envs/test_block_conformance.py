"""Every kind of block passes the exam, and the exam fails blocks that are broken in the ways that matter."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from counting_blocks import COUNTING, PLAIN_KINDS, RAGGED, open_one, open_sync
from gymnasium.vector import AutoresetMode

from penstock.core.protocols import ALL, BlockEnvironment, Lanes
from penstock.core.specs import LanePosition
from penstock.testing.block_environment import actions_for, check_block_environment, receive_all, record


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_plain_blocks_conform(kind: Any) -> None:
    check_block_environment(partial(open_one, kind, block=2, **RAGGED))


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_every_autoreset_mode_conforms(mode: AutoresetMode, truncate: bool) -> None:
    ragged = mode is not AutoresetMode.NEXT_STEP  # there an instance keeps the seed, and so the length, it started with
    check_block_environment(partial(open_sync, mode, episode_steps=7, ragged=ragged, truncate=truncate))


@pytest.mark.parametrize("kind", ["vector", *PLAIN_KINDS])
def test_cartpole_conforms(kind: Any) -> None:
    check_block_environment(partial(open_one, kind, "CartPole-v1", max_episode_steps=15))


@pytest.mark.parametrize("name", ["Pendulum-v1", "FrozenLake-v1"])
def test_continuous_actions_and_discrete_observations_conform(name: str) -> None:
    check_block_environment(partial(open_one, "serial", name, max_episode_steps=9))


def test_serial_threads_and_processes_give_one_stream() -> None:
    digests = set()
    for kind in PLAIN_KINDS:
        block = open_one(kind, **RAGGED)
        digests.add(record(block, actions_for(block, 50)).digest())
        block.close()
    assert len(digests) == 1


@pytest.mark.parametrize("mode", [AutoresetMode.SAME_STEP, AutoresetMode.DISABLED])
def test_masked_reset_modes_give_the_stream_of_plain_environments(mode: AutoresetMode) -> None:
    """Lane by lane the same seeds, so even random environments agree bit for bit."""
    plain = open_one("serial", "CartPole-v1", max_episode_steps=15)
    vector = open_sync(mode, name="CartPole-v1", max_episode_steps=15)
    actions = actions_for(plain, 80)
    assert record(vector, actions).digest() == record(plain, actions).digest()


def test_all_autoreset_modes_give_one_stream() -> None:
    """Without ragged lengths only the seed's tag tells episodes apart, and NEXT_STEP environments seed themselves."""
    streams = []
    for mode in AutoresetMode:
        block = open_sync(mode, episode_steps=4, truncate=True)
        streams.append(record(block, actions_for(block, 40)))
    for stream in streams[1:]:
        assert np.array_equal(stream.observation[..., 1:], streams[0].observation[..., 1:])
        for name in ("reward", "terminated", "truncated", "valid"):
            assert np.array_equal(getattr(stream, name), getattr(streams[0], name)), name


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_drift_gives_each_lane_the_rows_it_has_together(kind: Any) -> None:
    """Lanes sent one by one, in an order of their own: a lane's rows depend on its own actions alone."""
    together, drifting = open_one("serial", **RAGGED), open_one(kind, **RAGGED)
    stream = record(together, actions_for(together, 20))
    drifting.reset()
    sent, order = np.zeros(5, int), np.random.default_rng(3)
    drifting.send(ALL, stream.action[0])
    while (sent < 20).any():
        for lane in order.permutation(np.arange(5)[drifting.receive(5.0)]):
            t = sent[lane]
            assert np.array_equal(drifting.observation[lane], stream.observation[t + 1, lane])
            assert drifting.reward[lane] == stream.reward[t, lane]
            assert drifting.valid[lane] == stream.valid[t, lane]
            sent[lane] += 1
            if sent[lane] < 20:
                drifting.send(np.array([lane]), np.repeat(stream.action[t + 1, lane], 5))
    drifting.close()


class Tampered:
    """A sound block with one law broken after the fact."""

    def __init__(self) -> None:
        self._sound = open_one("serial", **RAGGED)
        self._previous = self._sound.observation.copy()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sound, name)

    def receive(self, timeout_s: float | None = None) -> Lanes:
        lanes = self._sound.receive(timeout_s)
        self.tamper()
        return lanes

    def tamper(self) -> None: ...


class TrainsTheResetStep(Tampered):
    def tamper(self) -> None:
        self._sound.valid[:] = True


class HidesRealSteps(Tampered):
    def tamper(self) -> None:
        self._sound.valid[self._sound.terminated] = False


class DropsTheFinalObservation(Tampered):
    """Shows what SAME_STEP shows: the row of the end is already the next episode's first."""

    def tamper(self) -> None:
        ended = self._sound.terminated
        self._sound.observation[ended, 2:] = [0, -1]


class SwapsLanes(Tampered):
    def tamper(self) -> None:
        self._sound.observation[:] = np.roll(self._sound.observation, 1, axis=0)


class SwapsActions(Tampered):
    def send(self, lanes: Lanes, actions: Any) -> None:
        self._sound.send(lanes, np.roll(actions, 1, axis=0))


class RewardsTheReset(Tampered):
    def tamper(self) -> None:
        self._sound.reward[~self._sound.valid] = 1.0


class FlagsTheReset(Tampered):
    def tamper(self) -> None:
        self._sound.truncated[~self._sound.valid] = True


class RepeatsTheObservation(Tampered):
    """Late by one row, as when the slot is written before the answer is there."""

    def tamper(self) -> None:
        shown, self._previous = self._previous, self._sound.observation.copy()
        self._sound.observation[:] = shown


class ReplacesItsArrays(Tampered):
    def tamper(self) -> None:
        self._sound.reward = self._sound.reward.copy()  # type: ignore[misc]


class AnswersUnasked(Tampered):
    def receive(self, timeout_s: float | None = None) -> Lanes:
        self._sound.receive(timeout_s)
        return ALL


class NumbersLanesWithinTheBlock(Tampered):
    def position(self, lane: int) -> LanePosition:
        at = self._sound.position(lane)
        return LanePosition(at.lane + 1, at.seed, at.episode, at.step, at.last_action)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (TrainsTheResetStep, "only resets"),
        (HidesRealSteps, "follows no episode's end"),
        (DropsTheFinalObservation, "not its final observation"),
        (SwapsLanes, "another lane's|not the lane's next one|final observation"),
        (SwapsActions, "another lane's action|wrong action"),
        (RewardsTheReset, "has a reward"),
        (FlagsTheReset, "has a flag|is valid"),
        (RepeatsTheObservation, "final observation|not the lane's next one"),
        (ReplacesItsArrays, "must overwrite"),
        (AnswersUnasked, "not sent"),
        (NumbersLanesWithinTheBlock, "global lane numbers"),
    ],
)
def test_the_exam_fails_broken_blocks(broken: type[Tampered], law: str) -> None:
    def make() -> BlockEnvironment:
        return broken()  # type: ignore[return-value] # it forwards what it does not define

    with pytest.raises(AssertionError, match=law):
        check_block_environment(make)


def test_the_exam_passes_the_block_that_broken_ones_are_made_of() -> None:
    def make() -> BlockEnvironment:
        return Tampered()  # type: ignore[return-value] # it forwards what it does not define

    check_block_environment(make)


def test_vector_block_refuses_some_of_its_lanes() -> None:
    block = open_one("vector", "CartPole-v1")
    block.reset()
    with pytest.raises(ValueError, match="all of its lanes"):
        block.send(np.array([0, 2]), np.zeros(5, np.int64))
    block.send(np.arange(5), np.zeros(5, np.int64))
    receive_all(block)


def test_blocks_of_one_run_start_differently() -> None:
    first, second = (open_one("serial", COUNTING, block=block) for block in (0, 1))
    first.reset()
    second.reset()
    assert not set(first.observation[:, 0]) & set(second.observation[:, 0])
    vectors = [open_one("vector", "CartPole-v1", block=block) for block in (0, 1)]
    for block in vectors:
        block.reset()
    assert not np.array_equal(vectors[0].observation, vectors[1].observation)
