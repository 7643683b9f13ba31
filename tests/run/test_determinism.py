"""Under a pinned schedule the digest depends on settings and seed, on nothing else. Real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.processes

SMALL: dict[str, Any] = {
    "preset": "none",
    "steps": 3000,
    "seed": 1,
    "n_envs": 8,
    "n_blocks": 4,
    "n_steps": 16,
    "batch_size": 64,
    "normalize_observation": True,
    "normalize_reward": True,
}


def digests(run_dir: Path) -> list[str]:
    lines = [json.loads(line) for line in (run_dir / "journal.jsonl").read_text().splitlines()]
    return [line["digest"] for line in lines if line["event"] in ("trained", "learner_ready")]


def model_bytes(run_dir: Path, version: int) -> bytes:
    return (run_dir / "checkpoints" / str(version) / "model.safetensors").read_bytes()


@pytest.mark.parametrize("schedule", [{"schedule": "sync"}, {"schedule": "overlap"}, {"schedule": "overlap", "staleness": 3}])
def test_timing_and_worker_count_change_nothing(run_training, schedule):
    first = run_training("CartPole-v1", **SMALL, **schedule, workers=0)
    assert len(set(digests(first.run_dir))) == first.summary["version"] + 1  # every link of the chain is another
    others = [
        run_training("CartPole-v1", **SMALL, **schedule, workers=2),
        run_training("CartPole-v1", **SMALL, **schedule, workers=3, chaos="delays:2"),
        run_training("CartPole-v1", **SMALL, **schedule, workers=1, stepping="drift"),
    ]
    for other in others:
        assert digests(other.run_dir) == digests(first.run_dir)
        assert model_bytes(other.run_dir, other.summary["version"]) == model_bytes(first.run_dir, first.summary["version"])
    assert others[1].summary["chaos_events"] > 0


def test_how_plain_environments_are_stepped_changes_nothing(run_training):
    ways = [("serial", "together"), ("serial", "drift"), ("threads", "together"), ("threads", "drift"), ("processes", "drift")]
    settings = {**SMALL, "steps": 1000}
    found = {
        run_training("CartPole-v1", **settings, parallel=parallel, stepping=stepping, workers=1).summary["digest"]
        for parallel, stepping in ways
    }
    assert len(found) == 1


def test_a_continuous_task_is_deterministic_too(run_training):
    found = {
        run_training("Pendulum-v1", **{**SMALL, "steps": 1000}, workers=workers, schedule="overlap").summary["digest"]
        for workers in (0, 2)
    }
    assert len(found) == 1


def test_another_seed_or_learning_rate_gives_another_digest(run_training):
    settings = {**SMALL, "steps": 500, "workers": 0}
    found = {
        run_training("CartPole-v1", **{**settings, **change}).summary["digest"]
        for change in ({}, {"seed": 2}, {"learning_rate": 3e-4 * (1 + 1e-9)})
    }
    assert len(found) == 3


def test_free_flow_has_no_digest_and_keeps_its_bound(run_training):
    outcome = run_training("CartPole-v1", **SMALL, schedule="async", staleness=1, workers=2, chaos="delays:2")
    assert outcome.summary["digest"] is None
    assert outcome.summary["staleness_max"] <= 1
    assert outcome.summary["dropped_segments"] == 0
