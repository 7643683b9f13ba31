"""Environments whose answers can be written down, trained end to end: a small mistake anywhere in the flow shows here.

Values come from the policy as it was saved, so the checkpoint and the acting copy of the network are in the loop too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from penstock.envs.known.credit import DelayedReward, MatchCue
from penstock.envs.known.final_row import FinalRow
from penstock.envs.known.mixed import Masked, Mixed
from penstock.envs.known.target import Target
from penstock.envs.known.time_limit import TimeLimit
from penstock.envs.known.values import ConstantReward, TwoState
from penstock.workers.policy import Policy, load_policy

pytestmark = pytest.mark.processes

GAMMA = 0.8
"""Small, so that values are learned in few steps and mistakes are large."""

TINY: dict[str, Any] = {
    "preset": "none",
    "seed": 1,
    "n_envs": 16,
    "n_blocks": 2,
    "n_steps": 16,
    "n_epochs": 8,
    "hidden_sizes": (16,),
    "learning_rate": 0.02,
    "learning_rate_schedule": "linear",  # the last updates are small: values end on the spot
    "batch_size": 128,
    "max_grad_norm": 10.0,
    "gamma": GAMMA,
    "tensorboard": False,
}

FLOWS = {
    "sync-inline": {"schedule": "sync", "workers": 0},
    "sync": {"schedule": "sync", "workers": 1},
    "overlap": {"schedule": "overlap", "workers": 1},
    "async": {"schedule": "async", "workers": 2},
}
POOR, RICH = np.array([-1.0], np.float32), np.array([1.0], np.float32)


@pytest.fixture(params=[pytest.param("sync", marks=pytest.mark.long), "sync-inline", "overlap", "async"])
def flow(request) -> dict[str, Any]:
    """Every way in which a batch can come about."""
    return FLOWS[request.param]


def trained(run_training: Any, name: str, flow: dict[str, Any], steps: int, **changes: Any) -> Policy:
    settings = {**TINY, **flow, "steps": steps, **changes}
    outcome = run_training(f"penstock/{name}-v0", **settings)
    assert outcome.error is None
    summary = outcome.summary
    assert summary["stop_reason"] == "steps"
    assert summary["samples_consumed"] == settings["n_epochs"] * summary["env_steps"], "rows that are no data were trained"
    return load_policy(outcome.run_dir)


def value(policy: Policy, observation: np.ndarray) -> float:
    return float(policy.actor.value(observation[None])[0])


def test_constant_reward(run_training, flow):
    """One step, the end: bootstrapping past it, or training the reset row, gives another value than the reward."""
    policy = trained(run_training, "ConstantReward", flow, 4000, envs={"arguments": {"reward": 2.0}})
    assert value(policy, np.ones(1, np.float32)) == pytest.approx(ConstantReward.value(2.0), abs=0.01)


def test_two_state(run_training, flow):
    """The second state is worth 1, the first gamma of it: discounts apply once, and the end is not bootstrapped."""
    policy = trained(run_training, "TwoState", flow, 5000)
    for state in (POOR, RICH):
        assert value(policy, state) == pytest.approx(TwoState.value(state, GAMMA), abs=0.01)


def test_time_limit(run_training, flow):
    """Truncation is no end: 1 / (1 - gamma) = 5, and 3.4 for a learner that takes it for one."""
    policy = trained(run_training, "TimeLimit", flow, 10_000, gae_lambda=0.9)
    found = value(policy, np.ones(1, np.float32))
    assert TimeLimit.mistaken_value(GAMMA) < 3.5
    assert found == pytest.approx(TimeLimit.value(GAMMA), abs=0.05)


@pytest.mark.parametrize("truncate", [False, True], ids=["terminated", "truncated"])
def test_final_row(run_training, flow, truncate):
    """The final observation is another state than the next episode's first: neither may stand for the other."""
    gamma = 0.5 if truncate else GAMMA
    arguments = {"arguments": {"truncate": truncate}}
    policy = trained(run_training, "FinalRow", flow, 10_000 if truncate else 5000, envs=arguments, gamma=gamma, gae_lambda=0.9)
    found = [value(policy, state) for state in (POOR, RICH)]
    assert found == pytest.approx([FinalRow.value(state, gamma, truncate=truncate) for state in (POOR, RICH)], abs=0.02)


def test_match_cue(run_training, flow):
    """Action, observation and reward of one row belong together, or nothing is learned."""
    policy = trained(run_training, "MatchCue", flow, 4000)
    for cue in (POOR, RICH):
        assert policy(cue) == MatchCue.best_action(cue)
    drawn = policy(np.repeat([POOR, RICH], 200, axis=0), deterministic=False, seed=0)
    assert np.mean(drawn[:200] == 0) > 0.9
    assert np.mean(drawn[200:] == 1) > 0.9


def test_delayed_reward(run_training, flow):
    """The first action is paid five steps later, across segment borders too."""
    policy = trained(run_training, "DelayedReward", flow, 12_000, gamma=0.9, gae_lambda=1.0)
    for cue in (-1.0, 1.0):
        first = np.array([cue, 0, 0], np.float32)
        assert policy(first) == DelayedReward.best_action(first)
        for outcome_step in range(1, 6):
            later = np.array([cue, 1.0, outcome_step / 6], np.float32)
            assert value(policy, later) == pytest.approx(DelayedReward.value(later, 0.9), abs=0.05)


def test_target(run_training, flow):
    """A continuous answer in bounds that are not symmetric."""
    policy = trained(run_training, "Target", flow, 12_000, log_std_init=-0.5, learning_rate=0.005, n_epochs=6)
    seen = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    assert np.abs(policy(seen) - Target.best_action(seen)).max() < 0.1


LONG_BUT_OVERLAP = ["overlap", *(pytest.param(name, marks=pytest.mark.long) for name in ("sync", "sync-inline", "async"))]


@pytest.mark.parametrize("flow", LONG_BUT_OVERLAP, indirect=True)  # which way a batch came about is no matter of its parts
def test_mixed(run_training, flow):
    """Every part of a composite observation reaches the network, every part of a composite action the environment."""
    wide = {"feature_size": 64, "gamma": 0.0, "log_std_init": -0.5, "learning_rate": 0.004, "ent_coef": 0.002}
    outcome = run_training("penstock/Mixed-v0", **{**TINY, **flow, **wide, "n_epochs": 6, "steps": 24_000})
    assert outcome.error is None
    assert Mixed.random_return < 4
    assert outcome.summary["return_mean"] > 0.8 * Mixed.best_return


@pytest.mark.parametrize("method", [False, True], ids=["info", "method"])
def test_masked(run_training, flow, method):
    """An action that is not allowed raises, so one that slips through ends the run."""
    settings = {**TINY, **flow, "steps": 12_000, "envs": {"arguments": {"method": method}}}
    outcome = run_training("penstock/Masked-v0", **settings)
    assert outcome.error is None
    assert outcome.summary["return_mean"] > 0.9 * Masked.best_return
