"""config.toml and the digest of a configuration."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.config.building import build
from penstock.config.files import config_digest, from_toml, to_toml
from penstock.config.sections import all_names
from penstock.config.values import Assignment
from penstock.core.errors import Refused
from penstock.run.job import Job


def job(**settings_given: Any) -> Job:
    assignments = [Assignment(key.replace("__", "."), value) for key, value in settings_given.items()]
    return build("CartPole-v1", assignments=assignments).job


def test_holds_every_setting():
    document = tomllib.loads(to_toml(job()))
    assert {f"{section}.{key}" for section, table in document.items() if isinstance(table, dict) for key in table} == set(
        all_names("ppo")
    )
    assert document["learner"]["target_kl"] == "none"


toml_values = st.recursive(
    st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(
    arguments=st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), toml_values, max_size=3),
    target_kl=st.none() | st.floats(1e-6, 1.0),
    hidden_sizes=st.lists(st.integers(1, 512), max_size=3),
    learning_rate=st.floats(1e-12, 1.0),
)
def test_what_is_written_is_read_back(tmp_path: Path, **given_settings: Any):
    written = job(envs__arguments=given_settings.pop("arguments"), **given_settings)
    path = tmp_path / "config.toml"
    path.write_text(to_toml(written), encoding="utf-8")
    assert from_toml(path) == written
    assert config_digest(from_toml(path)) == config_digest(written)


def test_a_file_of_an_older_version_has_defaults_for_what_is_new(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text('algo = "ppo"\nalgorithm = "penstock.algorithms.ppo:PPO"\n[envs]\nid = "CartPole-v1"\n')
    assert from_toml(path).learner.gamma == 0.99


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("algo = ", "is not TOML"),
        ('[envs]\nid = "X"\n', "does not name its algorithm"),
        ('algo="ppo"\nalgorithm="a:b"\n[lerner]\n', r"\[lerner\] is no section"),
        ('algo="ppo"\nalgorithm="a:b"\n[learner]\ngama = 1\n', "did you mean learner.gamma"),
        ('algo="ppo"\nalgorithm="a:b"\n[learner]\ngamma = "x"\n', "learner.gamma='x': expected a number"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(tmp_path: Path, text: str, message: str):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(Refused, match=rf"config\.toml.*{message}"):
        from_toml(path)


NEUTRAL: list[dict[str, Any]] = [
    {"workers": 0},
    {"workers": 3},
    {"steps": 5},
    {"minutes": 1.0},
    {"until_return": None},
    {"chaos": "delays"},
    {"stepping": "drift"},
    {"inference": "server"},
    {"checkpoint__every": 10},
    {"tensorboard": False},
    {"staleness": 1},
]
DECIDING: list[dict[str, Any]] = [
    {"seed": 1},
    {"learning_rate": 1e-3 * (1 + 1e-9)},
    {"staleness": 2},
    {"schedule": "sync"},
    {"n_blocks": 8},
    {"parallel": "serial"},
    {"hidden_sizes": [64]},
    {"backend": "torch"},
]


CONSTANT = {"learning_rate_schedule": "constant", "clip_range_schedule": "constant"}
"""The length of a run decides what is annealed over it, and CartPole's preset anneals."""


@pytest.mark.parametrize("change", NEUTRAL, ids=str)
def test_digest_ignores_what_is_only_speed(change: dict[str, Any]):
    assert config_digest(job(**CONSTANT, **change)) == config_digest(job(**CONSTANT))


@pytest.mark.parametrize("change", DECIDING, ids=str)
def test_digest_sees_what_decides(change: dict[str, Any]):
    assert config_digest(job(**change)) != config_digest(job())


def test_where_policies_act_decides_where_that_may_be_another_device():
    digests = {config_digest(job(device="cuda", inference=place)) for place in ("local", "server")}
    assert len(digests) == 2


def test_ways_to_step_plain_environments_are_one():
    digests = {config_digest(job(parallel=way)) for way in ("serial", "threads", "processes")}
    assert len(digests) == 1
    assert config_digest(job(parallel="vector")) not in digests


def test_the_length_of_the_run_decides_what_is_annealed():
    short, long = (job(learning_rate_schedule="linear", steps=steps) for steps in (1000, 2000))
    assert config_digest(short) != config_digest(long)


def test_digest_is_a_sha_256_and_sees_the_algorithm():
    assert len(config_digest(job())) == 64
    assert config_digest(dataclasses.replace(job(), algorithm="my:Own")) != config_digest(job())
