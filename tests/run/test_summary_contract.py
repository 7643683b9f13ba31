"""The summary is a contract: every key always there, strict JSON, and numbers that agree with each other."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from penstock.api import request_of
from penstock.config.building import assignments_of, build
from penstock.core.errors import Refused, RunFailed
from penstock.run.training import Outcome, train
from penstock.workers.forkserver import ForkServer

NAMES = """
run_dir version_info env_id algo schedule seed workers config_digest version updates env_steps global_step
env_steps_collected env_frames samples_consumed replay_ratio samples_per_insert staleness_bound staleness_max staleness_mean
dropped_segments short_segments masked_steps worker_restarts chaos_events wall_s train_wall_s sps return_mean return_std
episodes eval_return_mean eval_return_std eval_episodes solved_at_steps solved_at_s digest bottleneck stop_reason
"""
KEYS = NAMES.split()

TINY: dict[str, Any] = {
    "preset": "none",
    "workers": 0,
    "seed": 4,
    "steps": 400,
    "n_envs": 4,
    "n_blocks": 2,
    "n_steps": 16,
    "batch_size": 32,
    "hidden_sizes": (4,),
    "tensorboard": False,
}


def summary_of(run_dir: Path) -> dict[str, Any]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not strict JSON")

    found: dict[str, Any] = json.loads((run_dir / "summary.json").read_text(), parse_constant=refuse)
    return found


def test_every_key_of_the_contract_is_there_and_no_other(run_training):
    outcome = run_training("penstock/Counting-v0", **TINY)
    summary = summary_of(outcome.run_dir)
    assert list(summary) == KEYS
    assert summary == outcome.summary
    assert set(summary["version_info"]) == {"package", "torch", "commit"}
    assert summary["version_info"]["package"]


def test_numbers_agree_with_each_other(run_training):
    summary = run_training("penstock/Counting-v0", **TINY, schedule="sync", n_epochs=3).summary
    assert (summary["env_id"], summary["algo"], summary["schedule"]) == ("penstock/Counting-v0", "ppo", "sync")
    assert (summary["seed"], summary["workers"], summary["stop_reason"]) == (4, 0, "steps")
    assert summary["env_steps"] == summary["global_step"] == summary["env_frames"] == summary["env_steps_collected"]
    assert summary["env_steps"] + summary["masked_steps"] == summary["version"] * 4 * 16
    assert summary["samples_consumed"] == 3 * summary["env_steps"]
    assert summary["sps"] == pytest.approx(summary["env_steps"] / summary["train_wall_s"])
    assert summary["wall_s"] >= summary["train_wall_s"] > 0
    assert (summary["staleness_bound"], summary["staleness_max"], summary["staleness_mean"]) == (0, 0, 0)
    assert summary["return_mean"] == 55  # ten steps that pay 1 to 10
    assert summary["return_std"] == 0
    assert summary["episodes"] == 4 * (summary["version"] * 16 // 11)  # eleven rows an episode, its reset row among them
    assert len(summary["digest"]) == 64


def test_a_run_that_ended_before_any_episode_has_nulls_and_the_same_keys(run_training):
    arguments = {"arguments": {"episode_steps": 100_000}}
    summary = run_training("penstock/Counting-v0", **{**TINY, "steps": 1}, envs=arguments).summary
    assert list(summary) == KEYS
    for key in ("return_mean", "return_std", "solved_at_steps", "solved_at_s", "eval_return_mean", "replay_ratio"):
        assert summary[key] is None
    assert (summary["episodes"], summary["version"]) == (0, 1)


def test_a_target_that_is_reached_is_the_reason(run_training):
    outcome = run_training("penstock/Counting-v0", **{**TINY, "steps": 10_000}, until_return=55.0)
    summary = outcome.summary
    assert summary["stop_reason"] == "return"
    assert summary["solved_at_steps"] == summary["env_steps"] < 10_000
    assert summary["episodes"] >= 100
    assert outcome.exit_code == 0


def test_what_a_run_leaves_on_disk_is_pinned(run_training):
    run_dir = run_training("penstock/Counting-v0", **TINY).run_dir
    names = sorted(path.name for path in run_dir.iterdir())
    assert names == ["checkpoints", "config.toml", "journal.jsonl", "metrics.jsonl", "summary.json"]
    assert not list(run_dir.rglob(".*"))


# ---------------------------------------------------------------- what was trained is never thrown away


def lines_of(run_dir: Path) -> int:
    return len((run_dir / "metrics.jsonl").read_text().splitlines())


ERRORS = [SystemExit(3), KeyboardInterrupt(), RunFailed("a plan of mine"), Refused("no more"), ValueError("typo")]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.processes
def test_a_callback_that_raises_does_not_cost_the_run(run_training, tmp_path, error, workers):
    def callback(record: dict[str, Any]) -> None:
        if record["version"] == 2:
            raise error

    with pytest.raises(type(error)):
        run_training("penstock/Counting-v0", **{**TINY, "workers": workers}, callback=callback)
    run = tmp_path / "run1"
    assert lines_of(run) == 2
    assert (run / "checkpoints" / "2").is_dir(), "what was learned until then is saved"
    assert json.loads((run / "summary.json").read_text())["stop_reason"] == "error"
    faults = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines() if '"fault"' in line]
    assert [type(error).__name__ in fault["message"] for fault in faults] == [True]


@pytest.mark.processes
def test_the_fork_servers_death_is_named_and_does_not_cost_the_run(tmp_path):
    server = ForkServer()

    def callback(record: dict[str, Any]) -> None:
        if record["version"] == 2:
            os.kill(server._process.pid, signal.SIGKILL)

    handler = signal.getsignal(signal.SIGINT)
    outcome = train_with(server, tmp_path / "run", callback)
    server.close()
    assert isinstance(outcome.error, RunFailed)
    assert "the process that starts workers has ended" in str(outcome.error)
    assert (outcome.exit_code, outcome.summary["stop_reason"]) == (1, "error")
    assert lines_of(tmp_path / "run") >= 2
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.processes
def test_a_torch_that_does_not_load_is_named_and_leaves_nothing(tmp_path, monkeypatch):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "torch.py").write_text("raise ImportError('libfoo.so is missing')\n")
    monkeypatch.syspath_prepend(tmp_path / "broken")
    server = ForkServer()
    try:
        with pytest.raises(RunFailed, match=r"libfoo.so is missing; run `penstock doctor`"):
            train_with(server, tmp_path / "run", None)
    finally:
        server.close()
    assert not (tmp_path / "run").exists()


def train_with(server: ForkServer, out: Path, callback: Any) -> Outcome:
    settings = {key: value for key, value in TINY.items() if key != "preset"}
    assignments = assignments_of({**settings, "workers": 1, "steps": 10**7})
    built = build("penstock/Counting-v0", preset="none", assignments=assignments)
    return train(request_of(built, out=out, callback=callback, quiet=True), server)
