"""The presets that are shipped."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.config.building import build
from penstock.config.presets import preset_for, presets, read_preset
from penstock.core.errors import Refused

SHIPPED = {
    "CartPole-v1",
    "Acrobot-v1",
    "MountainCarContinuous-v0",
    "Pendulum-v1",
    "LunarLander-v3",
    "HalfCheetah-v5",
    "Hopper-v5",
    "Walker2d-v5",
    "ALE/*",
    "ALE/Pong-v5",
    "ALE/Breakout-v5",
    "MiniGrid-*",
    "Vizdoom*",
}


def test_all_are_there():
    assert {preset.env for preset in presets().values()} == SHIPPED


@pytest.mark.parametrize("name", sorted(presets()))
def test_each_builds_a_job_under_every_schedule(name: str):
    preset = presets()[name]
    built = build(preset.env, preset=name)
    assert built.job.run.steps == preset.steps
    assert built.job.algo == preset.algo
    assert built.job.env.n_blocks >= 2  # so that two workers share one run
    assert preset.reference
    assert preset.about
    for section, table in preset.settings.items():
        part = built.job.env if section == "envs" else getattr(built.job, section)
        found = {key: getattr(part, key) for key in table}
        assert {key: list(value) if isinstance(value, tuple) else value for key, value in found.items()} == table


def test_file_and_preset_have_one_name():
    folder = Path(str(sys.modules["penstock.config.presets"].__file__)).parent / "presets"
    assert {path.stem for path in folder.glob("*.toml")} == set(presets())


def test_found_by_environment():
    found = preset_for("CartPole-v1", None)
    assert found is not None
    assert found.name == "cartpole-ppo"
    assert preset_for("CartPole-v1", "sac") is None
    assert preset_for("Nowhere-v0", None) is None


@pytest.mark.parametrize(
    ("env", "algo", "name"),
    [
        ("envpool/CartPole-v1", None, "cartpole-ppo"),
        ("envpool/Pong-v5", "a2c", "pong-a2c"),
        ("envpool/HalfCheetah-v5", "ppo", "halfcheetah-ppo"),
        ("MiniGrid-DoorKey-5x5-v0", None, "minigrid-ppo"),
        ("VizdoomBasic-v1", None, "vizdoom-ppo"),
        ("ALE/Qbert-v5", "impala", "atari-impala"),
    ],
)
def test_found_by_kind_and_under_other_names(env: str, algo: str | None, name: str):
    found = preset_for(env, algo)
    assert found is not None
    assert found.name == name


def test_envpools_other_environments_are_no_arcade_games():
    assert preset_for("envpool/Swimmer-v5", None) is None


def test_a_file_that_is_no_preset_is_named(tmp_path: Path):
    path = tmp_path / "broken.toml"
    path.write_text("[learner]\ngamma = 1\n")
    with pytest.raises(Refused, match=r"broken\.toml is not a preset"):
        read_preset(path)


def test_config_needs_neither_torch_nor_gymnasium():
    code = (
        "import sys; from penstock.config.building import build; build('CartPole-v1');"
        "sys.exit(any(name in sys.modules for name in ('torch', 'gymnasium', 'rich')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
