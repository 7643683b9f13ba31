"""What is seen of an environment before the run, and what is refused then."""

from __future__ import annotations

import sys
import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from faulty_envs import Faulty
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import Autoreset
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.errors import Refused
from penstock.core.specs import BoxSpec, DiscreteSpec
from penstock.envs.making import EnvironmentMaker
from penstock.envs.probing import Probe, probe
from penstock.envs.settings import EnvSettings
from penstock.envs.spaces import action_spec, observation_spec

SETTINGS = EnvSettings()


def probed(source: Any, settings: EnvSettings = SETTINGS, **arguments: Any) -> Probe:
    return probe(EnvironmentMaker(source, arguments), settings)


def refused(source: Any, **arguments: Any) -> str:
    with pytest.raises(Refused) as told:
        probed(source, **arguments)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_cartpole() -> None:
    seen = probed("CartPole-v1")
    assert seen.vector
    assert 0 < seen.step_s < 1e-3
    assert seen.spec.id == "CartPole-v1"
    assert seen.spec.observation.shape == (4,)
    assert seen.spec.action == DiscreteSpec(2)
    assert (seen.spec.max_episode_steps, seen.spec.reward_threshold, seen.spec.frame_skip) == (500, 475.0, 1)


def test_a_time_limit_from_arguments_and_from_a_wrapper() -> None:
    assert probed("CartPole-v1", max_episode_steps=9).spec.max_episode_steps == 9
    assert probed(lambda: gymnasium.wrappers.TimeLimit(Faulty(), 4)).spec.max_episode_steps == 4
    assert probed(Faulty).spec.max_episode_steps is None


def test_vector_is_looked_for_only_when_it_may_be_used() -> None:
    assert not probed("CartPole-v1", EnvSettings(parallel="serial")).vector
    assert not probed("Pendulum-v1").vector


def test_a_vector_form_with_other_arguments_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(**given: Any) -> Any:
        raise TypeError("got an unexpected keyword argument")

    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "vector_entry_point", other)
    assert not probed("CartPole-v1").vector


def test_a_vector_form_with_other_spaces_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(num_envs: int, **given: Any) -> Any:
        return gymnasium.vector.SyncVectorEnv([EnvironmentMaker("MountainCar-v0")] * num_envs)

    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "vector_entry_point", other)
    assert not probed("CartPole-v1").vector


@pytest.mark.parametrize("honours_mask", [True, False])
def test_a_vector_form_that_cannot_reset_single_lanes_does_not_count(
    honours_mask: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Masked(gymnasium.vector.SyncVectorEnv):
        def __init__(self, num_envs: int, **given: Any) -> None:
            plain = [EnvironmentMaker("CartPole-v1")] * num_envs
            super().__init__(plain, autoreset_mode=AutoresetMode.SAME_STEP)

        def reset(self, *, seed: Any = None, options: Any = None) -> Any:
            return super().reset(seed=seed, options=options if honours_mask else None)

    monkeypatch.setattr(gymnasium.spec("CartPole-v1"), "vector_entry_point", Masked)
    assert probed("CartPole-v1").vector is honours_mask


def test_a_slow_environment_takes_its_time_but_not_ours() -> None:
    started = time.monotonic()
    seen = probed("penstock/Latency-v0", mean_s=0.03, variance=0.0)
    assert 0.03 <= seen.step_s < 0.2
    assert time.monotonic() - started < 0.5, "twenty steps would take 0.6 s"


def test_an_environment_that_raises_is_refused_with_the_cause() -> None:
    assert refused(Faulty, way="reset") == "environment 'Faulty' fails in reset: RuntimeError: no licence"
    assert refused(Faulty, way="raise") == "environment 'Faulty' fails in step: RuntimeError: the pump is dry"
    assert "NaN" in refused(Faulty, way="nan")
    assert "shape (1,), expected (2,)" in refused(Faulty, way="shape")
    assert "unpack" in refused(Faulty, way="four")


def test_an_environment_that_leaves_is_refused_and_does_not_take_us_along() -> None:
    class Leaves(Faulty):
        def reset(self, **given: Any) -> Any:
            sys.exit(3)

    assert refused(Leaves) == "environment 'Leaves' fails in reset: SystemExit: 3"


def test_a_reward_that_is_no_number_is_refused() -> None:
    class Pays(Faulty):
        def step(self, action: Any) -> Any:
            return np.zeros(2, np.float32), float("nan"), False, False, {}

    assert "reward is nan" in refused(Pays)


@pytest.mark.parametrize("doing", ["reset", "step"])
def test_an_info_that_is_no_mapping_is_refused(doing: str) -> None:
    class Mumbles(Faulty):
        def reset(self, **given: Any) -> Any:
            return np.zeros(2, np.float32), [] if doing == "reset" else {}

        def step(self, action: Any) -> Any:
            return np.zeros(2, np.float32), 0.0, False, False, None

    what = "list" if doing == "reset" else "NoneType"
    assert refused(Mumbles) == f"environment 'Mumbles' fails in {doing}: ValueError: info is a {what}, expected a dict"


def test_an_environment_without_spaces_is_refused() -> None:
    class Silent(gymnasium.Env[Any, Any]):
        pass

    assert "environment 'Silent' does not say what it is: AttributeError" in refused(Silent)


def test_an_environment_that_cannot_close_may_be_used() -> None:
    class Stuck(Faulty):
        def close(self) -> None:
            raise RuntimeError("the lid is stuck")

    maker = EnvironmentMaker(lambda: Stuck(way="none"))
    assert probe(maker, EnvSettings()).spec.observation.shape == (2,)


def test_an_environment_that_resets_itself_is_refused() -> None:
    assert "remove that" in refused(lambda: Autoreset(Faulty()))

    class Says(Faulty):
        metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012 Gymnasium declares it so

    assert "(Says)" in refused(lambda: gymnasium.wrappers.TimeLimit(Says(), 5))


def test_what_is_not_an_environment_is_refused() -> None:
    assert "vectorised already" in refused(lambda: gymnasium.make_vec("CartPole-v1", 2))
    assert "builtins.dict" in refused(dict)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Graph(spaces.Discrete(2), None),
        spaces.Text(4),
        spaces.Box(0, 1, (0,)),
        spaces.Box(0, 1, (2,), np.bool_),
    ],
)
def test_observation_spaces_that_are_not_supported_are_named(space: Any) -> None:
    with pytest.raises(Refused, match=rf"'X' has observation space {type(space).__name__}.*supported: Box"):
        observation_spec(space, "X")


@pytest.mark.parametrize(
    ("space", "advice"),
    [
        (spaces.Text(3), "Text.*supported: Discrete, bounded Box"),
        (spaces.Box(-np.inf, np.inf, (2,)), "unbounded"),
        (spaces.Box(np.array([0, -np.inf]), np.ones(2)), "unbounded"),
        (spaces.Box(0, 5, (2,), np.int64), "of floats"),
    ],
)
def test_action_spaces_that_are_not_supported_are_named(space: Any, advice: str) -> None:
    with pytest.raises(Refused, match=advice):
        action_spec(space, "X")


@pytest.mark.parametrize(
    ("given_dtype", "stored"), [("float64", "float32"), ("float16", "float32"), ("uint8", "uint8"), ("int32", "int32")]
)
def test_floats_are_stored_as_float32_and_whole_numbers_as_they_are(given_dtype: str, stored: str) -> None:
    spec = observation_spec(spaces.Box(0, 9, (2, 3), np.dtype(given_dtype).type), "X")
    assert isinstance(spec, BoxSpec)
    assert (spec.dtype, spec.shape, spec.low) == (stored, (2, 3), (0.0,) * 6)


def test_discrete_spaces_keep_their_start() -> None:
    assert observation_spec(spaces.Discrete(3, start=-1), "X") == DiscreteSpec(3, -1)
    assert action_spec(spaces.Discrete(3, start=5), "X") == DiscreteSpec(3, 5)


@given(low=st.floats(-1e30, 1e30), width=st.floats(1e-3, 1e30))
def test_bounds_are_rounded_inwards(low: float, width: float) -> None:
    """An action clipped to the float32 bounds is inside the float64 space."""
    space = spaces.Box(low, low + abs(low) + width, (1,), np.float64)
    spec = action_spec(space, "X")
    assert isinstance(spec, BoxSpec)
    for bound in spec.bounds:
        assert bound.dtype == np.float32
        assert space.low[0] <= np.float64(bound[0]) <= space.high[0]
