"""Every algorithm under every correction and schedule, where the answer can be written down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.envs.known.credit import MatchCue
from penstock.envs.known.final_row import FinalRow
from penstock.workers.policy import Policy, load_policy

pytestmark = pytest.mark.processes

GAMMA = 0.8
POOR, RICH = np.array([-1.0], np.float32), np.array([1.0], np.float32)

SMALL: dict[str, Any] = {
    "preset": "none",
    "seed": 1,
    "n_envs": 16,
    "n_blocks": 2,
    "hidden_sizes": (16,),
    "learning_rate_schedule": "linear",
    "max_grad_norm": 10.0,
    "gamma": GAMMA,
    "gae_lambda": 0.9,
    "tensorboard": False,
    "experiment": True,  # `none` under staleness is unsound, and must still find the answers of stationary problems
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 16, "n_epochs": 8, "batch_size": 128, "learning_rate": 0.02, "steps": 10_000},
    "a2c": {"n_steps": 4, "optimizer": "adam", "learning_rate": 0.02, "steps": 24_000},
    "impala": {"n_steps": 4, "optimizer": "adam", "learning_rate": 0.02, "steps": 24_000},
}
FLOWS = {
    "sync": {"schedule": "sync", "workers": 0},
    "overlap": {"schedule": "overlap", "workers": 1},
    "stale": {"schedule": "overlap", "staleness": 3, "workers": 1},
    "async": {"schedule": "async", "workers": 2},
}
CORRECTIONS = [
    ("ppo", "decoupled"),
    ("ppo", "vtrace"),
    ("ppo", "delayed"),
    ("ppo", "none"),
    ("a2c", "delayed"),
    ("a2c", "none"),
    ("impala", "vtrace"),
    ("impala", "none"),
]
CASES = [
    pytest.param(algo, correction, flow, marks=[pytest.mark.long] if flow in ("sync", "stale") else [])
    for algo, correction in CORRECTIONS
    for flow in FLOWS
    if not (flow == "async" and correction == "delayed")
]


def trained(run_training: Any, name: str, algo: str, correction: str, flow: str, **changes: Any) -> Policy:
    settings = {**SMALL, **ALGORITHMS[algo], **FLOWS[flow], "correction": correction, **changes}
    outcome = run_training(f"penstock/{name}-v0", algo=algo, **settings)
    assert outcome.error is None
    assert outcome.summary["staleness_max"] <= outcome.summary["staleness_bound"]
    return load_policy(outcome.run_dir)


@pytest.mark.parametrize(("algo", "correction", "flow"), CASES)
def test_values(run_training, algo, correction, flow):
    """The final observation bootstraps a truncation, and is another state than the next episode's first."""
    policy = trained(run_training, "FinalRow", algo, correction, flow, envs={"arguments": {"truncate": True}}, gamma=0.5)
    found = [float(policy.actor.value(state[None])[0]) for state in (POOR, RICH)]
    assert found == pytest.approx([FinalRow.value(state, 0.5, truncate=True) for state in (POOR, RICH)], abs=0.03)


@pytest.mark.parametrize(("algo", "correction", "flow"), CASES)
def test_actions(run_training, algo, correction, flow):
    """Action, observation and reward of one row belong together, or nothing is learned."""
    policy = trained(run_training, "MatchCue", algo, correction, flow)
    for cue in (POOR, RICH):
        assert policy(cue) == MatchCue.best_action(cue)
    drawn = policy(np.repeat([POOR, RICH], 200, axis=0), deterministic=False, seed=0)
    assert np.mean(drawn[:200] == 0) > 0.85
    assert np.mean(drawn[200:] == 1) > 0.85
