"""What an environment can do wrong, and that it is told once, in one line, with where it was."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
import pytest
from counting_blocks import PLAIN_KINDS
from faulty_envs import Faulty, KindReward
from gymnasium.vector import AutoresetMode

from penstock.core.errors import EnvironmentFault, SecondSignal
from penstock.core.protocols import ALL, BlockEnvironment
from penstock.core.seeds import episode_seed
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import open_block
from penstock.envs.settings import EnvSettings
from penstock.envs.vector import VectorBlock
from penstock.testing.block_environment import receive_all

SPEC = EnvironmentSpec("Faulty", BoxSpec((2,), "float32", (-10, -10), (10, 10)), DiscreteSpec(3))
SETTINGS = EnvSettings(id="Faulty", n_envs=3, n_blocks=1)


def open_faulty(kind: Any, way: str) -> BlockEnvironment:
    return open_block(EnvironmentMaker(Faulty, {"way": way}), SPEC, SETTINGS, 5, 2, kind)


def run(block: BlockEnvironment, steps: int = 4) -> None:
    try:
        block.reset()
        for _ in range(steps):
            block.send(ALL, np.array([1, 2, 0]))
            receive_all(block)
    finally:
        block.close()


@pytest.mark.parametrize("kind", PLAIN_KINDS)
@pytest.mark.parametrize(
    ("way", "cause"),
    [
        ("raise", "RuntimeError: the pump is dry"),
        ("nan", "observation is NaN or infinite"),
        ("infinity", "observation is NaN or infinite"),
        ("shape", r"observation of shape \(1,\), expected \(2,\)"),
        ("dtype", "observation of dtype <U1, expected float32"),
        ("none_observation", "observation of shape"),
        ("reward_nan", "reward is nan"),
        ("reward_word", "could not convert string to float"),
        ("four", "not enough values to unpack"),
    ],
)
def test_a_bad_step_is_told_with_where_it_was(kind: Any, way: str, cause: str) -> None:
    with pytest.raises(EnvironmentFault, match=cause) as told:
        run(open_faulty(kind, way))
    message = str(told.value)
    assert "\n" not in message
    assert "'Faulty' failed in step" in message
    lane = int(message.split("lane ")[1].split(",")[0])
    assert lane in (6, 7, 8)
    assert f"lane {lane}, seed {episode_seed(5, lane, 0)}, episode 0, step 3, last action {[1, 2, 0][lane - 6]}" in message


@pytest.fixture
def as_in_a_worker() -> Iterator[None]:
    """Where no signal raises KeyboardInterrupt."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("as_in_a_worker")
@pytest.mark.parametrize("kind", PLAIN_KINDS)
@pytest.mark.parametrize(
    ("way", "cause"), [("interrupt", "KeyboardInterrupt: the emergency stop"), ("panic", "Panic: index out of bounds")]
)
def test_what_is_no_exception_is_told_likewise(kind: Any, way: str, cause: str) -> None:
    with pytest.raises(EnvironmentFault, match=rf"in step \(lane \d, .* episode 0, step 3, last action \d\): {cause}"):
        run(open_faulty(kind, way))


@pytest.mark.parametrize(("at_ctrl_c", "raised"), [(signal.default_int_handler, KeyboardInterrupt), (None, EnvironmentFault)])
def test_ctrl_c_is_no_fault_where_it_raises(at_ctrl_c: Any, raised: type[BaseException]) -> None:
    """As in `penstock eval`, where nothing but Python's own handler is there."""
    before = signal.signal(signal.SIGINT, at_ctrl_c or (lambda *_: None))
    try:
        with pytest.raises(raised):
            run(open_faulty("serial", "interrupt"))
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_second_signal_passes_through_an_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    def insist(self: Faulty, action: Any) -> Any:
        raise SecondSignal

    monkeypatch.setattr(Faulty, "step", insist)
    with pytest.raises(SecondSignal):
        run(open_faulty("serial", "none"))


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_details_hold_the_traceback(kind: Any) -> None:
    with pytest.raises(EnvironmentFault) as told:
        run(open_faulty(kind, "raise"))
    assert "faulty_envs.py" in told.value.details
    assert "the pump" in told.value.details


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_a_raise_in_reset_is_a_fault(kind: Any) -> None:
    with pytest.raises(
        EnvironmentFault, match=r"failed in reset .*episode 0, step 0, last action None\): RuntimeError: no licence"
    ):
        run(open_faulty(kind, "reset"))


def test_a_later_reset_counts_its_episode() -> None:
    block = open_faulty("serial", "none")
    block.reset()
    for _ in range(6):
        block.send(ALL, np.zeros(3, int))
        block.receive()
    at = block.position(1)
    assert (at.lane, at.seed, at.episode, at.step, at.last_action) == (7, episode_seed(5, 7, 1), 1, 0, None)


def test_numbers_of_other_types_are_taken_where_they_fit() -> None:
    made: list[KindReward] = []

    def make() -> KindReward:
        made.append(KindReward())
        return made[-1]

    spec = EnvironmentSpec("Kind", BoxSpec((2,), "uint8", (0, 0), (255, 255)), BoxSpec((1,), "float32", (-1,), (1,)))
    block = open_block(EnvironmentMaker(make), spec, EnvSettings(id="Kind", n_envs=1, n_blocks=1), 0, 0, "serial")
    block.reset()
    assert block.observation.tolist() == [[7, 255]]
    action = np.array([[0.5]], np.float32)
    for expected in (1, 2, 3, 4, 5, 1):
        block.send(ALL, action)
        block.receive()
        assert block.reward[0] == expected
    action[:] = 0
    assert all(given.dtype == np.float64 and given.tolist() == [0.5] for given in made[0].given), "kept actions changed"


def test_whole_numbers_that_do_not_fit_are_a_fault() -> None:
    spec = EnvironmentSpec("Kind", BoxSpec((2,), "uint8", (0, 0), (255, 255)), DiscreteSpec(3))

    class TooLarge(Faulty):
        def step(self, action: Any) -> Any:
            return np.array([256, 0]), 0.0, False, False, {}

    block = open_block(EnvironmentMaker(TooLarge, {"dtype": "uint8"}), spec, SETTINGS, 0, 0, "serial")
    with pytest.raises(EnvironmentFault, match="dtype int64, expected uint8"):
        run(block)


class FaultyVector:
    """Just enough of a vector environment; its second step does what `way` names."""

    num_envs, metadata = 3, {"autoreset_mode": AutoresetMode.NEXT_STEP}
    action_space = gymnasium.spaces.MultiDiscrete([3, 3, 3])

    def __init__(self, way: str) -> None:
        self._way, self._step = way, 0

    def reset(self, *, seed: Any = None, options: Any = None) -> Any:
        return np.zeros((3, 2), np.float32), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        observation, reward, flags = np.ones((3, 2), np.float32), np.ones(3), np.zeros(3, bool)
        if self._step == 2:
            if self._way == "raise":
                raise RuntimeError("the pump is dry")
            if self._way == "nan":
                observation[1, 0] = np.nan
            if self._way == "reward":
                reward[2] = np.inf
            if self._way == "shape":
                observation = observation[:2]
        return observation, reward, flags, flags, {}

    def close(self) -> None: ...


@pytest.mark.parametrize(
    ("way", "where", "cause"),
    [
        ("raise", "lanes 6 to 8", "RuntimeError: the pump is dry"),
        ("nan", "lane 7,", "observation is NaN or infinite"),
        ("reward", "lane 8,", "reward is NaN or infinite"),
        ("shape", "lanes 6 to 8", "observation of shape (2, 2), expected (3, 2)"),
    ],
)
def test_vector_faults_name_the_lane_where_it_can_be_known(way: str, where: str, cause: str) -> None:
    vector: Any = FaultyVector(way)
    with pytest.raises(EnvironmentFault) as told:
        run(VectorBlock(vector, SPEC, block=2, seed=5))
    assert where in str(told.value)
    assert cause in str(told.value)
    assert "episode 0, step 2" in str(told.value)


def test_a_vector_reset_that_is_not_a_number_is_told_once() -> None:
    vector: Any = FaultyVector("none")
    vector.reset = lambda **_: (np.full((3, 2), np.nan, np.float32), {})
    with pytest.raises(EnvironmentFault, match=r"failed in reset \(lane 6, .*observation is NaN") as told:
        VectorBlock(vector, SPEC, block=2, seed=5).reset()
    assert str(told.value).count("environment 'Faulty'") == 1


def test_what_an_environment_says_of_a_reset_step_is_not_taken() -> None:
    vector: Any = FaultyVector("none")
    block = VectorBlock(vector, SPEC, block=0, seed=0)
    block.reset()
    flags = np.array([True, False, True])
    for valid in ([True] * 3, [False, True, False]):
        vector.step = lambda _, r=valid: (np.ones((3, 2), np.float32), np.where(r, 1.0, np.nan), flags, flags, {})
        block.send(ALL, np.zeros(3, int))
        block.receive()
        assert block.valid.tolist() == valid
        assert block.reward.tolist() == [float(real) for real in valid]
        assert block.terminated.tolist() == block.truncated.tolist() == (flags & valid).tolist()


def test_the_largest_numbers_are_finite() -> None:
    vector: Any = FaultyVector("none")
    block = VectorBlock(vector, SPEC, block=0, seed=0)
    vector.reset = lambda **_: (np.full((3, 2), 3e38, np.float32), {})
    block.reset()
    assert block.observation[0, 0] > 1e38
