"""The tree of errors is drawn at the top of its file and pinned here: exit codes and kinds are part of the surface."""

from __future__ import annotations

import inspect

import pytest

from penstock.core import errors
from penstock.core.errors import MissingExtra, PenstockError, Refused, RunFailed, UnknownName

TREE = {
    "PenstockError": ("Exception", 1),
    "Refused": ("PenstockError", 2),
    "UnknownName": ("Refused", 2),
    "MissingExtra": ("Refused", 2),
    "RunFailed": ("PenstockError", 1),
    "EnvironmentFault": ("RunFailed", 1),
    "WorkerDied": ("RunFailed", 1),
    "NonFinite": ("RunFailed", 1),
    "BadCheckpoint": ("RunFailed", 1),
}


def test_the_tree_is_pinned():
    found = {
        name: (kind.__mro__[1].__name__, kind.exit_code)
        for name, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, PenstockError)
    }
    assert found == TREE


@pytest.mark.parametrize("name", TREE)
def test_the_drawing_shows_every_error(name):
    assert name in (errors.__doc__ or "")


def test_details_travel_beside_the_message():
    error = RunFailed("one line", details="a\nstory")
    assert str(error) == "one line"
    assert error.details == "a\nstory"
    assert RunFailed("one line").details == ""


@pytest.mark.parametrize(
    ("name", "known", "advice"),
    [
        ("pppo", ["ppo", "sac"], "did you mean ppo?"),
        ("zebra", ["sac", "ppo"], "known: ppo, sac"),
        ("zebra", [], "unknown algorithm 'zebra'"),
    ],
)
def test_an_unknown_name_is_met_with_the_nearest(name, known, advice):
    message = str(UnknownName("algorithm", name, known))
    assert message.startswith(f"unknown algorithm '{name}'")
    assert message.endswith(advice)


def test_a_missing_extra_says_what_to_type():
    error = MissingExtra("ALE/Pong-v5", "atari")
    assert "pip install 'penstock[atari]'" in str(error)
    assert isinstance(error, Refused)
