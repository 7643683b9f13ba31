"""What a person may call a setting: `section.field`, the field alone where one section has it, or another dialect's name.

The canonical names are SB3's. CleanRL's are accepted, each with a note that says what it is called here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_origin

from penstock.config.sections import SECTIONS, all_names, field_types
from penstock.config.values import Assignment, checked
from penstock.core.errors import Refused, UnknownName


def setting_name(algo: str, key: str) -> str:
    """The full name of the setting that `key` means: section.field, or section.field.entry where it holds a table."""
    section, dot, rest = key.partition(".")
    if not dot:
        return _leaf(algo, key)
    if section not in SECTIONS:
        raise UnknownName("section of settings", section, SECTIONS)
    field, _, entry = rest.partition(".")
    types = field_types(algo, section)
    if field not in types or (entry and get_origin(types[field]) is not dict):
        raise UnknownName(_kind(algo), key, _names_near(algo, section, rest))
    return key


def _kind(algo: str) -> str:
    """What a person is told that they have named wrongly: a setting of one algorithm may be none of another."""
    return f"setting of {algo}"


def _names_near(algo: str, section: str, field: str) -> list[str]:
    """Where to look for what was meant: first elsewhere under that very name, else in the section."""
    elsewhere = [name for name in all_names(algo) if name.partition(".")[2] == field]
    return elsewhere or [f"{section}.{name}" for name in field_types(algo, section)]


def _leaf(algo: str, key: str) -> str:
    found = [name for name in all_names(algo) if name.partition(".")[2] == key]
    if len(found) > 1:
        raise Refused(f"'{key}' is a setting of several sections; write {' or '.join(found)}")
    if not found:
        raise UnknownName(_kind(algo), key, {name.partition(".")[2] for name in all_names(algo)})
    return found[0]


@dataclass(frozen=True)
class Dialect:
    """A name from elsewhere: the setting it means here, and its value in our terms."""

    name: str
    setting: str
    translate: Callable[[Any], Any] | None = None
    type: Any = None
    """What the other dialect expects, where it is not what the setting here expects."""


def _lower(word: str) -> str:
    return word.rpartition(".")[2].lower()


def _annealed(on: bool) -> str:
    return "linear" if on else "constant"


NUM_MINIBATCHES = "num_minibatches"
"""CleanRL's count of minibatches; it becomes learner.batch_size once the rows of a batch are known."""
CLIP_VALUE_LOSS = "clip_vloss"
"""CleanRL's switch; on, it means that learner.clip_range_vf equals learner.clip_range."""

DIALECT: dict[str, Dialect] = {
    entry.name: entry
    for entry in (
        Dialect("num_envs", "envs.n_envs"),
        Dialect("num_steps", "learner.n_steps"),
        Dialect("update_epochs", "learner.n_epochs"),
        Dialect("minibatch_size", "learner.batch_size"),
        Dialect("clip_coef", "learner.clip_range"),
        Dialect("norm_adv", "learner.normalize_advantage"),
        Dialect("anneal_lr", "learner.learning_rate_schedule", _annealed, bool),
        Dialect("total_timesteps", "run.steps"),
        Dialect("n_timesteps", "run.steps"),
        Dialect("env_id", "envs.id"),
        Dialect("net_arch", "model.hidden_sizes"),
        Dialect("activation_fn", "model.activation", _lower, str),
        Dialect("lr", "learner.learning_rate"),
    )
}


def leaf_of(key: str) -> str | None:
    """The name alone or under a section; None for what lies deeper (an environment's own arguments) or nowhere."""
    section, dot, leaf = key.rpartition(".")
    return leaf if not dot or section in SECTIONS else None


def from_dialect(assignment: Assignment) -> tuple[Assignment, str] | None:
    """The same assignment in our names, and a note about it; None if it is in our names already."""
    entry = DIALECT.get(leaf_of(assignment.key) or "")
    if entry is None:
        return None
    value, is_text = assignment.value, assignment.is_text
    if entry.translate is not None:
        value, is_text = entry.translate(checked(entry.name, value, entry.type, is_text=is_text)), False
    return Assignment(entry.setting, value, is_text), f"{entry.name} is called {entry.setting} here"
