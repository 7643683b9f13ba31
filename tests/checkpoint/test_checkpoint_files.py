"""Checkpoints: whole or not there, and what is damaged is said by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.checkpoint import files
from penstock.core.errors import BadCheckpoint, Refused

MODEL = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "statistics": np.array([1e-4, 2.0, 3.0])}
OPTIMIZER = {"step": np.array(7.0, np.float32), "mean": np.zeros(4, np.float32)[::2]}
STATE: dict[str, Any] = {"env_steps": 640, "digest": "abc", "return_mean": None, "share": 0.1, "policy": {"sizes": [64, 64]}}
NAMES = ("model.safetensors", "optimizer.safetensors", "state.json")


def write(directory: Path, version: int = 3, **state: Any) -> Path:
    return files.save(directory, version, MODEL, OPTIMIZER, {**STATE, **state})


def assert_whole(found: files.Checkpoint) -> None:
    for read, written in ((found.model, MODEL), (found.optimizer, OPTIMIZER)):
        assert read.keys() == written.keys()
        for name, array in written.items():
            assert read[name].dtype == array.dtype
            assert np.array_equal(read[name], array)
    assert {key: found.state[key] for key in STATE} == STATE


def test_what_is_saved_is_loaded(tmp_path):
    path = write(tmp_path / "checkpoints")
    assert path == tmp_path / "checkpoints" / "3"
    assert sorted(entry.name for entry in path.iterdir()) == list(NAMES)
    found = files.load(path)
    assert found.version == 3
    assert_whole(found)
    assert json.loads((path / "state.json").read_text())["format"] == files.FORMAT


def test_numbers_that_are_none_are_kept_as_null(tmp_path):
    path = write(tmp_path, return_mean=float("nan"))
    assert files.load(path).state["return_mean"] is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("length", [0, 1, 40, -1])
def test_a_truncated_file_is_said(tmp_path, name, length):
    file = write(tmp_path) / name
    file.write_bytes(file.read_bytes()[:length])
    with pytest.raises(BadCheckpoint):
        files.load(tmp_path / "3")


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_said(tmp_path, name):
    (write(tmp_path) / name).unlink()
    with pytest.raises(BadCheckpoint, match=name):
        files.load(tmp_path / "3")


@given(st.sampled_from(NAMES), st.floats(0, 1, exclude_max=True), st.integers(1, 255))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_changed_byte_is_said_or_changes_nothing(tmp_path, name, where, change):
    file = write(tmp_path) / name
    data = bytearray(file.read_bytes())
    data[int(where * len(data))] ^= change
    file.write_bytes(data)
    try:
        found = files.load(tmp_path / "3")
    except BadCheckpoint:
        return
    assert name == "state.json"  # white space between its parts may change; what it says may not
    assert found.version == 3
    assert_whole(found)


@pytest.mark.parametrize(
    "text",
    ["[]", "3", "{}", '{"format": 1}', '{"format": 99, "version": 3}', '{"format": 1, "version": 3, "sha256": []}', "\x80"],
)
def test_a_foreign_state_is_said(tmp_path, text):
    (write(tmp_path) / "state.json").write_text(text, encoding="latin1")
    with pytest.raises(BadCheckpoint):
        files.load(tmp_path / "3")


@pytest.mark.parametrize("where", ["3/state.json", "nowhere", "."])
def test_what_is_no_checkpoint_directory_is_said(tmp_path, where):
    write(tmp_path)
    with pytest.raises(BadCheckpoint):
        files.load(tmp_path / where)


def test_reading_runs_no_pickle(tmp_path, monkeypatch):
    path = write(tmp_path)
    for name in ("load", "loads"):
        monkeypatch.setattr(f"pickle.{name}", lambda *_: pytest.fail("pickle was run"))
    assert_whole(files.load(path))


# ---------------------------------------------------------------- several


def test_versions_are_numbers_in_order_and_nothing_else(tmp_path):
    for version in (10, 9, 100):
        write(tmp_path, version)
    (tmp_path / ".11.writing").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "12").write_text("a file")
    assert files.versions(tmp_path) == [9, 10, 100]
    assert files.versions(tmp_path / "nowhere") == []


@pytest.mark.parametrize(("keep", "left"), [(2, [3, 4]), (9, [1, 2, 3, 4]), (0, [4])])
def test_prune_keeps_the_newest_and_at_least_one(tmp_path, keep, left):
    for version in (1, 2, 3, 4):
        write(tmp_path, version)
    files.prune(tmp_path, keep)
    assert files.versions(tmp_path) == left


def test_the_newest_is_found_and_none_is_refused(tmp_path):
    for version in (9, 10):
        write(tmp_path / "checkpoints", version)
    assert files.newest(tmp_path).name == "10"
    with pytest.raises(Refused, match="has no checkpoint"):
        files.newest(tmp_path / "checkpoints")


# ---------------------------------------------------------------- a crash at any moment


class Crash(BaseException):
    """Stands for the machine's end: nothing in the program may catch it."""


STEPS = ("_write", "_sync_directory", "shutil.rmtree", "Path.rename")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_crash_leaves_the_old_checkpoint_whole(tmp_path, monkeypatch, step, nth):
    write(tmp_path, 2)
    write(tmp_path, 3)
    _crash_at(monkeypatch, step, nth)
    try:
        write(tmp_path, 3, env_steps=641)  # the same version again, as after a resume
    except Crash:
        monkeypatch.undo()
    monkeypatch.undo()
    for version in files.versions(tmp_path):
        found = files.load(tmp_path / str(version))
        assert found.state["env_steps"] in (640, 641)
    assert files.versions(tmp_path)[0] == 2
    assert files.load(write(tmp_path, 3)).state["env_steps"] == 640  # what a crash left is no obstacle


def _crash_at(monkeypatch: pytest.MonkeyPatch, step: str, nth: int) -> None:
    """Die when `step` is begun for the nth time; of a deletion, after its first file is gone."""
    holder, name = {
        "_write": (files, "_write"),
        "_sync_directory": (files, "_sync_directory"),
        "shutil.rmtree": (shutil, "rmtree"),
        "Path.rename": (Path, "rename"),
    }[step]
    real, count = getattr(holder, name), 0

    def dying(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count < nth:
            return real(*arguments, **named)
        if name == "rmtree" and arguments[0].is_dir():
            next(arguments[0].iterdir()).unlink()
        raise Crash

    monkeypatch.setattr(holder, name, dying)
