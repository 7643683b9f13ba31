"""What people import is pinned: growth is a decision."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys

import pytest

import penstock
from penstock import api

NAMES = [
    "BadCheckpoint",
    "EnvironmentFault",
    "MissingExtra",
    "NonFinite",
    "PenstockError",
    "Refused",
    "Run",
    "RunFailed",
    "UnknownName",
    "WorkerDied",
    "load",
    "train",
]


def test_the_public_names_are_pinned_and_all_there():
    assert penstock.__all__ == NAMES
    assert all(getattr(penstock, name) is not None for name in NAMES)
    assert (penstock.train, penstock.load, penstock.Run) == (api.train, api.load, api.Run)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = penstock.trian


def test_signatures_are_pinned():
    assert list(inspect.signature(penstock.train).parameters) == [
        "env", "algo", "steps", "seed", "schedule", "callback", "model", "preset", "out", "init_from", "quiet", "settings"
    ]  # fmt: skip
    assert list(inspect.signature(penstock.load).parameters) == ["run_dir", "version", "model", "trust"]
    assert [field.name for field in dataclasses.fields(penstock.Run)] == ["run_dir", "summary", "exit_code", "model"]


def test_importing_loads_neither_torch_nor_gymnasium():
    code = "import sys, penstock; print([name for name in ('torch', 'gymnasium', 'numpy') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert found.stdout.strip() == "[]"
