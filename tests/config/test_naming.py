"""What settings may be called."""

from __future__ import annotations

import pytest

from penstock.algorithms.settings import CATALOGUE
from penstock.config.building import assignments_of, build
from penstock.config.naming import CLIP_VALUE_LOSS, DIALECT, NUM_MINIBATCHES, from_dialect, setting_name
from penstock.config.sections import SECTIONS, all_names, field_types, sections
from penstock.config.values import Assignment
from penstock.core.errors import Refused, UnknownName


def test_sections_are_the_tables_of_a_config_file():
    expected = ("envs", "learner", "model", "flow", "run", "compute", "checkpoint", "metrics")
    assert all(tuple(sections(algo)) == SECTIONS == expected for algo in (*CATALOGUE, "my_algorithms:Mine"))


def test_the_learners_settings_are_the_algorithms():
    assert setting_name("ppo", "clip_range") == "learner.clip_range"
    assert setting_name("my_algorithms:Mine", "clip_range") == "learner.clip_range"
    for name in ("clip_range", "learner.clip_range"):
        with pytest.raises(UnknownName, match="setting of a2c"):
            setting_name("a2c", name)
    assert setting_name("a2c", "rms_prop_alpha") == "learner.rms_prop_alpha"


@pytest.mark.parametrize("algo", CATALOGUE)
def test_every_full_name_means_itself_and_every_unique_leaf_its_setting(algo: str):
    leaves = [name.partition(".")[2] for name in all_names(algo)]
    for name, leaf in zip(all_names(algo), leaves, strict=True):
        assert setting_name(algo, name) == name
        if leaves.count(leaf) == 1:
            assert setting_name(algo, leaf) == name


def test_a_table_has_entries():
    assert setting_name("ppo", "envs.arguments.gravity") == "envs.arguments.gravity"
    with pytest.raises(UnknownName):
        setting_name("ppo", "envs.n_envs.gravity")


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("lerning_rate", "learning_rate"),
        ("learner.gama", "learner.gamma"),
        ("lerner.gamma", "learner"),
        ("envs.gamma", "learner.gamma"),
    ],
)
def test_unknown_names_get_the_nearest(key: str, near: str):
    with pytest.raises(UnknownName, match=rf"did you mean {near}"):
        setting_name("ppo", key)


def test_a_leaf_of_several_sections_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("penstock.config.naming.all_names", lambda algo: ["run.seed", "envs.seed"])
    with pytest.raises(Refused, match=r"write run\.seed or envs\.seed"):
        setting_name("ppo", "seed")


def test_the_other_dialect_leads_to_settings_and_hides_none():
    leaves = {name.partition(".")[2] for name in all_names("ppo")}
    assert not leaves & set(DIALECT)
    for entry in DIALECT.values():
        section, _, field = entry.setting.partition(".")
        assert field in field_types("ppo", section)


def test_the_other_dialect_is_translated_with_a_note():
    translated = from_dialect(Assignment("update_epochs", "8", is_text=True))
    assert translated == (Assignment("learner.n_epochs", "8", is_text=True), "update_epochs is called learner.n_epochs here")
    annealed = from_dialect(Assignment("anneal_lr", "True", is_text=True))
    assert annealed is not None
    assert annealed[0] == Assignment("learner.learning_rate_schedule", "linear")
    assert from_dialect(Assignment("learner.gamma", 0.9)) is None
    torchs = from_dialect(Assignment("activation_fn", "nn.ReLU", is_text=True))
    assert torchs is not None
    assert torchs[0] == Assignment("model.activation", "relu")


@pytest.mark.parametrize("name", [*DIALECT, NUM_MINIBATCHES, CLIP_VALUE_LOSS])
def test_an_environments_own_argument_is_never_taken_for_the_other_dialect(name: str):
    built = build("CartPole-v1", preset="none", assignments=assignments_of({f"envs.arguments.{name}": 7}))
    plain = build("CartPole-v1", preset="none").job
    assert built.job.env.arguments == {name: 7}
    assert (built.job.learner, built.job.run, built.job.model) == (plain.learner, plain.run, plain.model)
    assert not any(name in note for note in built.notes)


@pytest.mark.parametrize("name", [NUM_MINIBATCHES, CLIP_VALUE_LOSS, "clip_coef"])
def test_the_other_dialects_names_for_what_an_algorithm_has_not_are_refused(name: str):
    with pytest.raises(Refused, match=r"a setting of ppo|setting of a2c"):
        build("CartPole-v1", algo="a2c", preset="none", assignments=assignments_of({name: 4}))


def test_the_other_dialect_under_a_section_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="section of settings 'bogus'"):
        build("CartPole-v1", assignments=assignments_of({"bogus.lr": 1}))
