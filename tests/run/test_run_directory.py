"""A run's directory: its own, never another run's; nothing left where nothing was trained."""

from __future__ import annotations

import json
import os
import re
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.core.errors import Refused
from penstock.run import directory as directory_module
from penstock.run.directory import FINISHED, Journal, RunDirectory, default_directory, finished_summary


def create(path: Path | None) -> RunDirectory:
    return RunDirectory.create(path, env_id="ALE/Pong-v5", algo="ppo", seed=3)


def test_the_default_name_says_what_runs(monkeypatch):
    name = default_directory("my_package.envs:Ware house-v0", "ppo", 3)
    assert name.parent == Path("runs")
    assert ":" not in default_directory("CartPole-v1", "my_algorithms:Mine", 3).name
    assert re.fullmatch(r"my_package\.envs_Ware_house-v0-ppo-s3-\d{8}-\d{6}", name.name)


def test_two_runs_of_one_second_get_two_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(directory_module.time, "strftime", lambda _: "now")
    paths = [create(None).path.name for _ in range(3)]
    assert paths == ["ALE_Pong-v5-ppo-s3-now", "ALE_Pong-v5-ppo-s3-now-2", "ALE_Pong-v5-ppo-s3-now-3"]


def test_nor_do_two_share_one_that_begin_at_the_same_moment(tmp_path, monkeypatch):
    """Whoever looks sees nothing there: only the kernel can say who was first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(directory_module.time, "strftime", lambda _: "now")
    there = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: "now" not in self.name and there(self))
    names = [create(None).path.name for _ in range(3)]
    assert names == ["ALE_Pong-v5-ppo-s3-now", "ALE_Pong-v5-ppo-s3-now-2", "ALE_Pong-v5-ppo-s3-now-3"]


def test_many_that_begin_at_once_get_as_many_directories(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(directory_module.time, "strftime", lambda _: "now")
    together = threading.Barrier(8)

    def begin(_: int) -> Path:
        together.wait()
        return create(None).path

    with ThreadPoolExecutor(8) as threads:
        paths = list(threads.map(begin, range(8)))
    assert len(set(paths)) == 8
    assert all((path / "journal.jsonl").exists() for path in paths)


def test_a_new_or_an_empty_one_is_taken(tmp_path):
    assert create(tmp_path / "a" / "b").path.is_dir()
    (tmp_path / "c").mkdir()
    assert create(tmp_path / "c").path == tmp_path / "c"


def test_who_comes_second_never_shares_it(tmp_path, monkeypatch):
    create(tmp_path / "run")
    with pytest.raises(Refused, match="not empty"):
        create(tmp_path / "run")
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(()))  # both have looked before either began
    with pytest.raises(Refused, match="another run is starting"):
        create(tmp_path / "run")


def test_one_that_is_not_empty_or_no_directory_is_refused_untouched(tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("precious")
    (tmp_path / "file").write_text("precious")
    with pytest.raises(Refused, match="exists and is not empty; name another directory"):
        create(tmp_path / "full")
    with pytest.raises(Refused, match="file is a file; name a directory"):
        create(tmp_path / "file")
    with pytest.raises(Refused, match="cannot make"):
        create(tmp_path / "file" / "inside")
    assert (tmp_path / "full" / "thesis.txt").read_text() == (tmp_path / "file").read_text() == "precious"


def test_one_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    if os.getuid() == 0:  # root may write anywhere: ask as the kernel would answer anybody else
        monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK and Path(path) == closed))
    with pytest.raises(Refused, match="permission denied"):
        create(closed)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="only where there is a /proc")
def test_one_that_nobody_can_make_is_refused():
    with pytest.raises(Refused, match=r"cannot make /proc/penstock: .*; name another directory with --out"):
        create(Path("/proc/penstock"))


@pytest.mark.parametrize("there_before", [False, True])
def test_discarding_leaves_what_was_there_before(tmp_path, there_before):
    path = tmp_path / "run"
    if there_before:
        path.mkdir()
    directory = create(path)
    directory.write_text("config.toml", "x")
    (directory.checkpoints / "0").mkdir(parents=True)
    directory.discard()
    assert path.exists() == there_before
    assert not there_before or not list(path.iterdir())


def test_discarding_takes_the_parents_along_that_were_made_for_it(tmp_path):
    (tmp_path / "mine").mkdir()
    create(tmp_path / "mine" / "runs" / "first" / "try").discard()
    assert [path.name for path in tmp_path.rglob("*")] == ["mine"]


def test_discarding_stops_at_what_somebody_else_uses_by_now(tmp_path):
    first, second = create(tmp_path / "runs" / "first"), create(tmp_path / "runs" / "second")
    first.discard()
    assert second.path.is_dir()
    second.discard()  # it did not make runs/, so it leaves it
    assert [path.name for path in tmp_path.rglob("*")] == ["runs"]


def test_what_was_trained_is_not_discarded(tmp_path):
    directory = create(tmp_path / "run")
    (directory.path / "metrics.jsonl").write_text('{"version": 1}\n')
    directory.discard()
    assert (directory.path / "metrics.jsonl").exists()


def test_small_files_are_written_whole(tmp_path, monkeypatch):
    directory = create(tmp_path / "run")
    directory.write_text("summary.json", "old")

    def crash(*_):
        raise OSError("no power")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", crash)
        with pytest.raises(OSError, match="no power"):
            directory.write_text("summary.json", "new")
    assert (directory.path / "summary.json").read_text() == "old"
    directory.write_text("summary.json", "newest ü")
    assert (directory.path / "summary.json").read_text(encoding="utf-8") == "newest ü"


@pytest.mark.parametrize("reason", FINISHED)
def test_a_finished_run_has_a_summary(tmp_path, reason):
    (tmp_path / "summary.json").write_text(json.dumps({"stop_reason": reason, "sps": 1.0}))
    assert finished_summary(tmp_path)["sps"] == 1.0


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"stop_reason": "signal"}', '{"stop_reason": "error"}', '{"stop'])
def test_an_unfinished_run_is_never_taken_for_a_finished_one(tmp_path, text):
    if text is not None:
        (tmp_path / "summary.json").write_text(text)
    with pytest.raises(Refused, match="has not finished"):
        finished_summary(tmp_path)


def test_the_journal_is_appended_to_a_line_an_event(tmp_path):
    for version in (1, 2):
        journal = Journal(tmp_path / "journal.jsonl")
        journal.write("trained", version=version, digest=None)
        journal.flush()
        assert len((tmp_path / "journal.jsonl").read_text().splitlines()) == version
        journal.close()
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert [line["version"] for line in lines] == [1, 2]
    assert all(line["event"] == "trained" and line["time"] > 1.6e9 for line in lines)
