"""Under a pinned schedule the digest depends on settings and seed, on nothing else. Real processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from penstock.run.training import Outcome

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


def digest_of(outcome: Outcome) -> str:
    """Of a run that went as it should: one that broke at once may have the digest of another that did."""
    assert outcome.error is None
    assert outcome.summary["version"] >= 7
    digest = outcome.summary["digest"]
    assert isinstance(digest, str)
    return digest


SCHEDULES: list[dict[str, Any]] = [
    {"schedule": "sync"},
    {"schedule": "overlap"},
    {"schedule": "overlap", "staleness": 3},
]


def digests(run_dir: Path) -> list[str]:
    lines = [json.loads(line) for line in (run_dir / "journal.jsonl").read_text().splitlines()]
    return [line["digest"] for line in lines if line["event"] in ("trained", "learner_ready")]


def model_bytes(run_dir: Path, version: int) -> bytes:
    return (run_dir / "checkpoints" / str(version) / "model.safetensors").read_bytes()


@pytest.mark.parametrize("schedule", SCHEDULES)
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
    for run in (first, *others):  # nothing past the last round is collected, so this does not depend on timing either
        assert run.summary["env_steps_collected"] == run.summary["env_steps"] == first.summary["env_steps"]


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_where_policies_act_changes_nothing(run_training, schedule):
    settings = {**SMALL, **schedule, "steps": 1500}
    local = run_training("CartPole-v1", **settings, workers=1)
    others = [
        run_training("CartPole-v1", **settings, workers=0, inference="server"),
        run_training("CartPole-v1", **settings, workers=1, inference="server", stepping="drift"),
        run_training("CartPole-v1", **settings, workers=3, inference="server", chaos="delays:2"),
    ]
    for other in others:
        assert digest_of(other) == digest_of(local)
        assert digests(other.run_dir) == digests(local.run_dir)
        assert model_bytes(other.run_dir, other.summary["version"]) == model_bytes(local.run_dir, local.summary["version"])
    assert others[2].summary["chaos_events"] > 0


def test_nor_with_blocks_of_one_lane_that_drift_in_threads(run_training):
    settings = {**SMALL, "steps": 1000, "n_envs": 4, "parallel": "threads", "batch_size": 16}
    ways = [("local", 1), ("server", 0), ("server", 1), ("server", 2)]
    for shape in ({"n_blocks": 4}, {"n_blocks": 1, "stepping": "drift"}):
        found = {
            digest_of(
                run_training(
                    "CartPole-v1", **{**settings, **shape}, inference=inference, workers=min(workers, shape["n_blocks"])
                )
            )
            for inference, workers in ways
        }
        assert len(found) == 1


class Torso(torch.nn.Module):
    """A network that acts through torch."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(3, 16)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.layer(observation))


def test_nor_for_a_network_of_ones_own_and_continuous_actions(run_training):
    settings = {**SMALL, "steps": 1000}
    found = {
        digest_of(run_training("Pendulum-v1", **settings, workers=workers, inference=inference, model=Torso))
        for workers, inference in ((1, "local"), (0, "server"), (2, "server"))
    }
    assert len(found) == 1


@pytest.mark.parametrize("env", ["penstock/Mixed-v0", "penstock/Masked-v0"])
def test_nor_for_actions_of_many_parts_and_masks(run_training, env):
    settings = {**SMALL, "steps": 1000, "network": "mlp", "normalize_observation": False, "parallel": "threads"}
    ways = [("local", "together"), ("server", "together"), ("server", "drift")]
    found = {
        digest_of(run_training(env, **settings, workers=1, inference=inference, stepping=stepping))
        for inference, stepping in ways
    }
    assert len(found) == 1


@pytest.mark.parametrize("algo", ["a2c", "impala"])
def test_nor_for_other_algorithms(run_training, algo):
    settings = {name: value for name, value in SMALL.items() if name != "batch_size"}
    found = {
        digest_of(run_training("CartPole-v1", algo=algo, **{**settings, "steps": 1000}, workers=1, inference=inference))
        for inference in ("local", "server")
    }
    assert len(found) == 1


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


@pytest.mark.parametrize("inference", ["local", "server"])
def test_free_flow_has_no_digest_and_keeps_its_bound(run_training, inference):
    wishes = {"schedule": "async", "staleness": 1, "workers": 2, "chaos": "delays:2", "inference": inference}
    outcome = run_training("CartPole-v1", **SMALL, **wishes)
    assert outcome.error is None
    assert outcome.summary["digest"] is None
    assert outcome.summary["staleness_max"] <= 1
    assert outcome.summary["dropped_segments"] == 0
