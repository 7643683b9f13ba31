"""Layers, checks, and refusals before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.building import assignments_of, build, resumed
from penstock.config.checks import nearest_divisors
from penstock.config.files import to_toml
from penstock.config.presets import presets
from penstock.config.values import Assignment
from penstock.core.errors import Refused, UnknownName
from penstock.run.job import Job


def job(*written: str, env: str = "CartPole-v1", **choice: Any) -> Job:
    return build(env, assignments=texts(*written), **choice).job


def texts(*written: str) -> list[Assignment]:
    return [Assignment(*text.split("=", 1), is_text=True) for text in written]


def test_defaults_lie_under_the_preset_and_the_preset_under_what_is_said():
    default, preset = job(preset="none").learner, job().learner
    said = job("learner.gamma=0.5").learner
    assert default.gamma == 0.99
    assert preset.gamma == presets()["cartpole-ppo"].settings["learner"]["gamma"] != default.gamma
    assert said.gamma == 0.5
    assert said.n_steps == preset.n_steps


def test_the_last_word_counts():
    assert job("gamma=0.5", "learner.gamma=0.6").learner.gamma == 0.6


def test_cartpole_trains_until_it_is_solved():
    found = job()
    assert (found.run.until_return, found.algo, found.env.id) == (475.0, "ppo", "CartPole-v1")
    assert found.env.n_blocks >= 4
    assert job("until_return=none").run.until_return is None


def test_a_number_of_steps_that_is_named_is_trained_and_not_cut_by_the_presets_target():
    for named in ("steps=5000", "run.steps=5000", "total_timesteps=5000"):
        assert (job(named).run.steps, job(named).run.until_return) == (5000, None)
    assert job("steps=5000", "until_return=400").run.until_return == 400
    assert job("minutes=1").run.until_return == 475.0


def test_opening_note_says_algorithm_and_origin():
    assert build("CartPole-v1").notes[:-1] == ("CartPole-v1 with ppo, preset cartpole-ppo",)
    assert build("Foo-v0").notes[:-1] == ("Foo-v0 with ppo, default settings (there is no preset for it)",)
    assert build("CartPole-v1", preset="none").notes[:-1] == ("CartPole-v1 with ppo, default settings",)
    other = build("Foo-v0", preset="cartpole-ppo")
    assert other.notes[:-1] == ("Foo-v0 with ppo, preset cartpole-ppo (made for CartPole-v1)",)
    assert other.job.env.id == "Foo-v0"


def test_last_note_says_how_the_budget_is_rounded():
    built = build("Foo-v0", preset="none", assignments=texts("n_envs=8", "n_steps=16", "batch_size=64", "steps=1000"))
    assert built.notes[-1] == "1,000 steps, rounded up to whole batches of at most 128"
    until = build("CartPole-v1").notes[-1]
    assert until.endswith(", or until a mean return of 475")


def test_an_environment_without_a_version_has_the_preset_of_its_newest():
    assert build("CartPole").notes[0] == "CartPole with ppo, preset cartpole-ppo (made for CartPole-v1)"
    assert build("Cart").preset is None


def test_algorithms_by_name_and_by_path():
    assert job().algorithm == "penstock.algorithms.ppo:PPO"
    own = job(algo="my.code:Mine", preset="none")
    assert (own.algo, own.algorithm) == ("my.code:Mine", "my.code:Mine")
    with pytest.raises(UnknownName, match="unknown algorithm 'pppo'; did you mean ppo"):
        job(algo="pppo")
    with pytest.raises(Refused, match="module:Class"):
        job(algo="my.code:")


def test_unknown_preset_and_preset_of_another_algorithm():
    with pytest.raises(UnknownName, match="unknown preset 'cartpol'; did you mean cartpole-ppo"):
        job(preset="cartpol")
    with pytest.raises(Refused, match="is for ppo, not my:Own"):
        job(preset="cartpole-ppo", algo="my:Own")


@pytest.mark.parametrize(
    ("schedule", "staleness", "depth", "segments"),
    [("sync", 0, None, None), ("overlap", 1, None, None), ("async", 2, 1, 4)],
)
def test_a_schedule_brings_its_own_numbers(schedule: str, staleness: int, depth: int | None, segments: int | None):
    flow = job(f"schedule={schedule}").flow
    assert (flow.staleness, flow.depth, flow.segments_per_batch) == (staleness, depth, segments)


def test_another_schedule_drops_the_staleness_of_the_layer_below(tmp_path: Path):
    path = tmp_path / "config.toml"
    path.write_text(to_toml(job("schedule=async", "staleness=4", "depth=3")))
    assert job("schedule=sync", preset=str(path)).flow.staleness == 0
    assert job("schedule=async", preset=str(path)).flow.staleness == 4
    assert job(preset=str(path)).flow.depth == 3


@pytest.mark.parametrize(
    ("written", "message"),
    [
        (["schedule=sync", "staleness=1"], "use --schedule overlap --staleness 1"),
        (["schedule=overlap", "staleness=0"], "use --schedule sync"),
        (["schedule=async", "workers=0"], "use --workers 1 or more, or --schedule overlap"),
        (["schedule=async", "staleness=2", "depth=3"], "the nearest is 2"),
        (["schedule=overlap", "depth=3"], "--depth is for async"),
        (["staleness=17"], "ppo with correction 'clip' is sound up to staleness 16"),
        (["n_envs=66"], "does not divide into 4 blocks; take 64 or 68"),
        (["n_steps=32", "n_envs=64", "batch_size=300"], "2048 rows .* nearest legal: 256 or 512"),
        (["n_steps=32", "n_envs=64", "batch_size=9000"], "nearest legal: 2048$"),
        (["schedule=async", "segments_per_batch=2", "n_steps=32", "n_envs=64", "batch_size=2048"], "nearest legal: 1024$"),
        (["n_blocks=4", "workers=5"], "use --workers 4"),
        (["workers=-1"], "workers must be 0 or more"),
        (["chaos=tremble"], "--chaos knows"),
        (["workers=2", "chaos=slow:2=10"], "workers count from 0 to 1"),
        (["gamma=2"], "learner.gamma must be between 0 and 1"),
        (["schedule=asink"], "expected one of sync, overlap, async"),
        (["n_envs=64", "n_steps=32", "num_minibatches=7"], "does not divide the 2048 rows"),
        (["num_minibatches=0"], "does not divide"),
    ],
)
def test_refused_before_anything_starts(written: list[str], message: str):
    with pytest.raises(Refused, match=message) as refusal:
        job(*written)
    assert refusal.value.exit_code == 2
    assert "\n" not in str(refusal.value)


def test_nearest_divisors_by_hand():
    assert nearest_divisors(12, 5) == [4, 6]
    assert nearest_divisors(12, 13) == [12]
    assert nearest_divisors(12, 0) == [1]


@given(st.integers(1, 5000), st.integers(1, 6000))
def test_nearest_legal_ones_are_legal_and_nearest(rows: int, wanted: int):
    found = nearest_divisors(rows, wanted)
    assert all(rows % number == 0 for number in found)
    assert not any(rows % number == 0 and min(found) < number < max(found) for number in range(1, rows + 1) if number != wanted)


def test_a_note_says_what_staleness_to_expect_below_the_bound():
    def said(*written: str) -> list[str]:
        return [note for note in build("Foo-v0", preset="none", assignments=texts(*written)).notes if "staleness" in note]

    expected = "async: staleness at most 4; without stragglers 1 (--depth 1)"
    assert said("schedule=async", "staleness=4") == [expected]
    assert said("schedule=async", "staleness=4", "depth=4") == said("schedule=overlap", "staleness=4") == []


def test_settings_of_a_file_say_their_budget_too(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text(to_toml(build("CartPole-v1", preset="none", assignments=assignments_of({"steps": 1000})).job))
    found = build("CartPole-v1", preset=str(path)).notes
    assert found[0] == f"CartPole-v1 with ppo, settings of {path}"
    assert found[-1] == "1,000 steps, rounded up to whole batches of at most 1,024"


def test_cleanrl_settings_with_notes():
    built = build(
        "CartPole-v1",
        assignments=texts(
            "num_envs=8", "num_steps=128", "num_minibatches=4", "clip_coef=0.1", "clip_vloss=true", "anneal_lr=true"
        ),
    )
    learner = built.job.learner
    assert (built.job.env.n_envs, learner.n_steps, learner.batch_size) == (8, 128, 256)  # 8 * 128 / 4
    assert (learner.clip_range, learner.clip_range_vf, learner.learning_rate_schedule) == (0.1, 0.1, "linear")
    assert "num_minibatches is learner.batch_size=256 here" in built.notes
    assert "num_envs is called envs.n_envs here" in built.notes


def test_settings_from_a_program():
    settings = {"gamma": 0.9, "model": {"hidden_sizes": [32]}, "run.seed": 3, "steps": 1e5}
    found = build("CartPole-v1", assignments=assignments_of(settings)).job
    assert (found.learner.gamma, found.model.hidden_sizes, found.run.seed, found.run.steps) == (0.9, (32,), 3, 100_000)
    with pytest.raises(UnknownName, match=r"did you mean model\.hidden_sizes"):
        build("CartPole-v1", assignments=assignments_of({"model": {"hiden_sizes": [32]}}))


def test_environment_arguments_add_up():
    arguments = job("envs.arguments.gravity=9.8", "envs.arguments.mode=fast", env="Foo-v0").env.arguments
    assert arguments == {"gravity": 9.8, "mode": "fast"}
    assert job("envs.arguments.a=1", env="Foo-v0", preset="none").env.arguments == {"a": 1}
    assert job(env="Foo-v0").env.arguments == {}  # nothing leaks from one job into the next


def test_no_environment():
    with pytest.raises(Refused, match="penstock train CartPole-v1"):
        job(env="")


def test_a_resumed_run_keeps_its_mathematics(tmp_path: Path):
    (tmp_path / "config.toml").write_text(to_toml(job("gamma=0.9")))
    more = resumed(tmp_path, texts("steps=900000", "workers=2")).job
    assert (more.run.steps, more.run.workers, more.learner.gamma) == (900_000, 2, 0.9)
    with pytest.raises(Refused, match=r"keeps learner\.gamma=0\.9.*--init-from"):
        resumed(tmp_path, texts("gamma=0.8"))
    assert resumed(tmp_path, texts("gamma=0.9", "schedule=overlap")).job.learner.gamma == 0.9
    with pytest.raises(Refused, match=r"cannot read .*config\.toml"):
        resumed(tmp_path / "nowhere")
