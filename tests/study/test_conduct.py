"""A study from start to end: what counts as a run, the estimate, and a real one that is interrupted and taken up again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from kept_runs import records

from penstock.core.errors import Refused, RunFailed
from penstock.run.signals import StopSignals
from penstock.study.ages import inexact
from penstock.study.cells import TASKS, Cell, Plan
from penstock.study.children import Children, Ended
from penstock.study.conduct import announcement, estimate_s, looked_at
from penstock.study.directory import records_of

CELL = Cell(task=TASKS["cartpole"], staleness=2, correction="none", seed=1)


def summary(**other: Any) -> dict[str, Any]:
    known = {"stop_reason": "steps", "env_steps": 80, "version": 8, "return_mean": 8.0, "episodes": 8, "digest": "d"}
    return {**known, "config_digest": "c", "version_info": {}, "wall_s": 1.0, **other}


def ended(output: str, *, code: int = 0, errors: str = "") -> Ended:
    return Ended(CELL.name, code, output, errors, 1.0)


def look(run_dir: Path, end: Ended, made: list[dict[str, Any]]) -> dict[str, Any]:
    (run_dir / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in made))
    return looked_at(CELL, end, run_dir, "c")


def test_a_run_is_kept_with_its_curve(tmp_path):
    kept = look(tmp_path, ended("noise\n" + json.dumps(summary())), records(8, 2))
    assert (kept["task"], kept["staleness"], kept["correction"], kept["seed"]) == ("cartpole", 2, "none", 1)
    assert kept["curve"]["return_mean"] == [float(n) for n in range(1, 9)]
    assert kept["summary"] == summary()
    assert inexact(records_of(kept), 2) is None


def test_a_run_that_stopped_being_finite_is_an_answer(tmp_path):
    said = json.dumps(summary(stop_reason="nonfinite", return_mean=3.0))
    kept = look(tmp_path, ended(said, code=1, errors="penstock: the loss is not a number"), records(3, 2))
    assert (kept["stop_reason"], kept["return_mean"], len(kept["curve"]["version"])) == ("nonfinite", 3.0, 3)
    at_once = look(tmp_path, ended(json.dumps(summary(stop_reason="nonfinite", return_mean=None)), code=1), [])
    assert at_once["curve"]["return_mean"] == []


def test_a_run_with_a_sample_of_another_age_does_not_count(tmp_path):
    made = records(8, 2)
    made[6]["staleness_histogram"] = [0, 4, 6]
    with pytest.raises(RunFailed, match=r"does not count: .*version 6 has samples 4 of age 1, where 2 is due"):
        look(tmp_path, ended(json.dumps(summary())), made)
    with pytest.raises(RunFailed, match="does not count: no batch was trained"):
        look(tmp_path, ended(json.dumps(summary())), [])


@pytest.mark.parametrize(
    ("end", "error", "message"),
    [
        (ended("", code=2, errors="penstock: no such setting\n"), Refused, "cartpole-K2-none-s1: no such setting"),
        (ended("", code=1, errors="boom\n"), RunFailed, "failed with exit code 1: boom"),
        (ended("", code=-9), RunFailed, "failed with exit code -9: it said nothing"),
        (ended("[]"), RunFailed, "did not end with a summary"),
        (ended(json.dumps(summary(stop_reason="error")), code=1, errors="penstock: it broke"), RunFailed, "'error': it broke"),
        (ended(json.dumps(summary(config_digest="other"))), RunFailed, "ran with other settings"),
    ],
)
def test_a_run_that_failed_is_named(tmp_path, end, error, message):
    with pytest.raises(error, match=message):
        look(tmp_path, end, records(8, 2))


def test_the_estimate_is_the_cost_of_what_is_missing_over_the_cores():
    cells = list(Plan(tasks=(TASKS["cartpole"],), seeds=(1,)).cells())
    one_s = TASKS["cartpole"].start_s + 150_000 * TASKS["cartpole"].step_s
    assert estimate_s(cells, jobs=2, cores=2) == pytest.approx(25 * one_s / 2)
    assert estimate_s(cells, jobs=8, cores=2) == pytest.approx(25 * one_s / 2)  # more jobs than cores only share them
    assert estimate_s(cells[:1], jobs=2, cores=2) == pytest.approx(one_s)
    assert announcement(25, [], 2) == "25 runs, 25 of them done"
    assert announcement(25, cells[:1], 2).startswith("25 runs, 24 of them done, 2 side by side: ")


def test_the_default_study_fits_its_time():
    assert estimate_s(list(Plan().cells()), jobs=2, cores=2) < 40 * 60


# ---------------------------------------------------------------- real runs

TINY = [
    *("--tasks", "cartpole", "--staleness", "0,2", "--corrections", "none", "--seeds", "1", "--steps", "600", "--jobs", "1"),
    *("--set", "n_envs=4", "--set", "n_steps=16", "--set", "batch_size=32", "--figure", "none", "--json"),
]


def start(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "penstock", "study", "staleness", *TINY, "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(happened: Callable[[], bool], timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.processes
def test_an_interrupted_study_ends_its_runs_and_is_taken_up_again(tmp_path):
    out = tmp_path / "study"
    first, second = (out / "cells" / f"cartpole-K{bound}-none-s1.json" for bound in (0, 2))
    process = start(out)
    wait_for(first.exists)
    wait_for(lambda: bool(psutil.Process(process.pid).children()))
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130, errors
    assert "stopped; 1 runs are kept" in errors
    assert psutil.wait_procs(family, timeout=2)[1] == []
    assert (first.exists(), second.exists(), (out / "running").exists()) == (True, False, False)
    written = first.stat().st_mtime_ns

    process = start(out)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "2 runs, 1 of them done" in errors
    assert first.stat().st_mtime_ns == written
    found = json.loads(output)
    assert [row["staleness"] for row in found["rows"]] == [0, 2]
    assert all(row["final_return"]["mean"] > 5 for row in found["rows"])
    histograms = json.loads(second.read_text())["curve"]["staleness_histogram"]
    assert [[age for age, count in enumerate(rows) if count] for rows in histograms[:4]] == [[0], [1], [2], [2]]
    assert (out / "table.md").read_text().startswith("**CartPole-v1**, 600 steps")


@pytest.mark.processes
def test_runs_that_are_left_end_as_if_they_had_been_asked_to(tmp_path):
    cell = Cell(task=TASKS["cartpole"], staleness=1, correction="clip", seed=1)
    with closing(StopSignals()) as signals, Children(signals) as children:
        children.start(cell.name, [*cell.arguments(str(tmp_path / "run")), "--steps", "1e9"])
        wait_for((tmp_path / "run" / "metrics.jsonl").exists)
        (process,) = (child.process for child in children._running)
    assert process.returncode == 130
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["stop_reason"] == "signal"


@pytest.mark.processes
def test_a_killed_study_leaves_no_run_behind(tmp_path):
    process = start(tmp_path / "study")
    wait_for(lambda: bool(psutil.Process(process.pid).children()))
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate(timeout=10)
    assert psutil.wait_procs(family, timeout=2)[1] == []
