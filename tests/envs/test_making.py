"""Environments by every name a person may use, and one line for each name that leads nowhere."""

from __future__ import annotations

import builtins
import pickle
import subprocess
import sys
import textwrap
from typing import Any

import gymnasium
import numpy as np
import pytest
from faulty_envs import Faulty
from gymnasium.envs.registration import registry

from penstock.core.errors import MissingExtra, Refused, UnknownName
from penstock.envs.making import EnvironmentMaker
from penstock.envs.settings import EnvSettings


def slower(environment: Any) -> Any:
    return gymnasium.wrappers.TimeLimit(environment, 3)


def steps_until_truncated(environment: Any) -> int:
    environment.reset(seed=1)
    for step in range(1, 1000):
        if environment.step(environment.action_space.sample())[3]:
            return step
    raise AssertionError("never truncated")


def test_a_gymnasium_id_with_arguments() -> None:
    environment = EnvironmentMaker("Pendulum-v1", {"g": 5.0, "max_episode_steps": 7})()
    assert environment.unwrapped.g == 5.0
    assert steps_until_truncated(environment) == 7


def test_the_passive_checker_is_left_out() -> None:
    layer = EnvironmentMaker("CartPole-v1")()
    while isinstance(layer, gymnasium.Wrapper):
        assert not isinstance(layer, gymnasium.wrappers.PassiveEnvChecker)
        layer = layer.env


def test_module_and_attribute() -> None:
    assert isinstance(EnvironmentMaker("faulty_envs:Faulty", {"way": "nan"})().unwrapped, Faulty)


def test_module_and_registered_id_is_made_by_gymnasium(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry, "Faulty-v3", gymnasium.spec("CartPole-v1"))
    environment = EnvironmentMaker("faulty_envs:Faulty-v3")()
    assert environment.spec.id == "CartPole-v1"


def test_class_function_and_lambda() -> None:
    for source in (Faulty, lambda **given: Faulty(**given)):
        environment = EnvironmentMaker.of(EnvSettings(arguments={"way": "nan"}), source)()
        assert environment._way == "nan"


def test_a_version_left_out_is_the_newest() -> None:
    assert EnvironmentMaker("CartPole")().spec.id == "CartPole-v1"


def test_wrappers_from_the_inside_out() -> None:
    maker = EnvironmentMaker("CartPole-v1", wrappers=("test_making:slower", "gymnasium.wrappers:TimeAwareObservation"))
    environment = maker()
    assert isinstance(environment, gymnasium.wrappers.TimeAwareObservation)
    assert isinstance(environment.env, gymnasium.wrappers.TimeLimit)
    assert steps_until_truncated(environment) == 3


def test_a_maker_survives_pickling_with_a_lambda() -> None:
    steps = 4
    maker = EnvironmentMaker(lambda: gymnasium.make("CartPole-v1", max_episode_steps=steps))
    assert steps_until_truncated(pickle.loads(pickle.dumps(maker))()) == 4


def test_what_a_script_defines_and_registers_is_known_elsewhere() -> None:
    """The other process never runs the script, as no worker does."""
    script = textwrap.dedent("""
        import pickle, subprocess, sys, gymnasium
        from penstock.envs.making import EnvironmentMaker
        class Mine(gymnasium.Env):
            observation_space = gymnasium.spaces.Discrete(3)
            action_space = gymnasium.spaces.Discrete(2)
            def reset(self, *, seed=None, options=None): return 2, {}
        gymnasium.register("Mine-v0", "__main__:Mine", max_episode_steps=9)
        gymnasium.register("Other-v0", Mine)
        packed = pickle.dumps([EnvironmentMaker(source) for source in (Mine, "Mine-v0", "Other-v0")])
        code = "import sys, pickle; print([m().reset()[0] for m in pickle.loads(sys.stdin.buffer.read())])"
        sys.exit(subprocess.run([sys.executable, "-c", code], input=packed).returncode)
    """)
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert told.stdout.strip() == "[2, 2, 2]", told.stderr


def test_vector_entry_point_only_where_it_is_the_same_environment() -> None:
    assert EnvironmentMaker("CartPole-v1").vector_entry_point()
    assert EnvironmentMaker("CartPole-v1", {"max_episode_steps": 9}).vector_entry_point()
    assert not EnvironmentMaker("CartPole-v1", {"max_episode_steps": -1}).vector_entry_point()
    assert not EnvironmentMaker("CartPole-v1", wrappers=("test_making:slower",)).vector_entry_point()
    assert not EnvironmentMaker("Pendulum-v1").vector_entry_point()
    assert not EnvironmentMaker(Faulty).vector_entry_point()


def test_the_vector_form_keeps_the_time_limit() -> None:
    environment = EnvironmentMaker("CartPole-v1", {"max_episode_steps": 2}).vector(3)
    environment.reset(seed=0)
    environment.step(np.zeros(3, np.int64))
    assert environment.step(np.zeros(3, np.int64))[3].all()


def refusal(source: Any, **arguments: Any) -> Refused:
    with pytest.raises(Refused) as told:
        EnvironmentMaker.of(EnvSettings(id="", arguments=arguments), source)()
    assert "\n" not in str(told.value)
    assert told.value.exit_code == 2
    return told.value


@pytest.mark.parametrize("name", ["CartPol-v1", "cartpole-v1", "CartPole-v7"])
def test_unknown_ids_name_the_nearest(name: str) -> None:
    told = refusal(name)
    assert isinstance(told, UnknownName)
    assert "CartPole-v1" in str(told)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("", "name one"),
        ("Zzzzqqq", "module:Name"),
        ("LunarLander-v2", "LunarLander-v3"),
        ("Nobody/CartPole-v1", "CartPole-v1"),
        ("no_such_module:Thing", "no module named 'no_such_module'"),
        ("faulty_envs:Missing", "has no 'Missing'"),
        ("Ant-v3", "gymnasium-robotics"),
    ],
)
def test_other_names_that_lead_nowhere(name: str, advice: str) -> None:
    assert advice in str(refusal(name))


def test_arguments_that_do_not_exist() -> None:
    assert "'gravity'" in str(refusal("CartPole-v1", gravity=3))
    assert "'gravity'" in str(refusal(Faulty, gravity=3))


def test_an_instance_is_refused_with_what_to_write_instead() -> None:
    assert "lambda: Faulty(...)" in str(refusal(Faulty()))


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("ALE/Pong-v5", "ale_py", "atari"),
        ("MiniGrid-Empty-5x5-v0", "minigrid", "minigrid"),
        ("HalfCheetah-v5", "mujoco", "mujoco"),
        ("HalfCheetah-v5", "imageio", "mujoco"),
        ("LunarLander-v3", "Box2D", "box2d"),
        ("LunarLander-v3", "pygame", "box2d"),
    ],
)
def test_a_missing_dependency_names_its_extra(name: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_module(wanted: str, *rest: Any, **more: Any) -> Any:
        if wanted.partition(".")[0] == module:
            raise ModuleNotFoundError(f"No module named '{module}'", name=module)
        return real_import(wanted, *rest, **more)

    for loaded in [loaded for loaded in sys.modules if loaded.startswith(("gymnasium.envs.mujoco", "gymnasium.envs.box2d"))]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.delitem(registry, name, raising=False) if name.startswith(("ALE", "Mini")) else None
    monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, module, None)  # type: ignore[arg-type] # how Python marks a module as absent
    monkeypatch.setattr(builtins, "__import__", no_module)
    told = refusal(name)
    assert isinstance(told, MissingExtra)
    assert f"penstock[{extra}]" in str(told)


def test_nothing_reaches_the_terminal() -> None:
    script = textwrap.dedent("""
        from penstock.envs.making import EnvironmentMaker
        from penstock.envs.probing import probe
        from penstock.envs.settings import EnvSettings
        from penstock.core.errors import Refused
        import warnings
        filters = list(warnings.filters)
        for name in ("CartPole-v0", "CartPole", "MountainCarContinuous-v0", "HalfCheetah-v5", "LunarLander-v3", "Ant-v2"):
            try:
                probe(EnvironmentMaker(name), EnvSettings())
            except Refused:
                pass
        import gymnasium.logger
        assert gymnasium.logger.min_level == gymnasium.logger.WARN, "silence outlived its purpose"
    """)
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (told.returncode, told.stdout, told.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["MiniGrid-Empty-5x5-v0", "BabyAI-GoToRedBall-v0"])
def test_a_grid_of_tiles_comes_without_its_sentence_and_spread_over_a_byte(name: str) -> None:
    pytest.importorskip("minigrid")
    environment = EnvironmentMaker(name)()
    assert set(environment.observation_space.spaces) == {"direction", "image"}
    image = environment.reset(seed=1)[0]["image"]
    assert image.dtype == np.uint8
    assert (image.max(axis=(0, 1)) >= 50).any(), "a wall is of kind 2 of 10, and shows as 50"
    assert set(np.unique(image[..., 0])) <= {25 * kind for kind in range(11)}
    environment.close()


def test_vizdoom_leaves_no_settings_file_where_it_is_run(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("vizdoom")
    monkeypatch.chdir(tmp_path)
    environment = EnvironmentMaker("VizdoomBasic-v1", wrappers=("penstock.envs.wrappers:small_screen",))()
    assert environment.reset(seed=1)[0]["screen"].shape == (1, 84, 84)
    environment.close()
    assert not list(tmp_path.glob("*.ini"))
