"""What a trained policy must know of each environment whose answer can be written down, and what learning it takes.

Settings are small, and learning rates fall to 0 so that values end on the spot. Knows no algorithm, correction or schedule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from penstock.envs.known.credit import DelayedReward, MatchCue
from penstock.envs.known.final_row import FinalRow
from penstock.envs.known.mixed import Masked, Mixed
from penstock.envs.known.target import Target
from penstock.envs.known.time_limit import TimeLimit
from penstock.envs.known.values import ConstantReward, TwoState
from penstock.workers.policy import Policy

GAMMA = 0.8
"""Small, so that values are learned in few steps and mistakes are large."""
POOR, RICH = np.array([-1.0], np.float32), np.array([1.0], np.float32)
ONE = np.ones(1, np.float32)

Check = Callable[[Policy, Mapping[str, Any]], None]


@dataclass(frozen=True)
class Answer:
    """One environment: how it is made, how it is trained on, what must come of it."""

    env: str
    check: Check
    arguments: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 10_000
    """With several passes over each batch."""
    single_steps: int = 24_000
    """With one."""


def value(policy: Policy, observation: np.ndarray) -> float:
    return float(policy.actor.value(observation[None])[0])


def _constant(policy: Policy, _: Any) -> None:
    """One step, the end: bootstrapping past it, or training the reset row, gives another value than the reward."""
    assert value(policy, ONE) == pytest.approx(ConstantReward.value(2.0), abs=0.03)


def _two_state(policy: Policy, _: Any) -> None:
    """The second state is worth 1, the first gamma of it: discounts apply once, and the end is not bootstrapped."""
    found = [value(policy, state) for state in (POOR, RICH)]
    assert found == pytest.approx([TwoState.value(state, GAMMA) for state in (POOR, RICH)], abs=0.03)


def _time_limit(policy: Policy, _: Any) -> None:
    """Truncation is no end: 1 / (1 - gamma) = 5, and 3.4 for a learner that takes it for one."""
    assert TimeLimit.mistaken_value(GAMMA) < 3.5
    assert value(policy, ONE) == pytest.approx(TimeLimit.value(GAMMA), abs=0.15)


def _final_row(truncate: bool, gamma: float) -> Check:
    """The final observation is another state than the next episode's first: neither may stand for the other."""

    def check(policy: Policy, _: Any) -> None:
        found = [value(policy, state) for state in (POOR, RICH)]
        assert found == pytest.approx([FinalRow.value(state, gamma, truncate=truncate) for state in (POOR, RICH)], abs=0.03)

    return check


def _match_cue(policy: Policy, _: Any) -> None:
    """Action, observation and reward of one row belong together, or nothing is learned."""
    for cue in (POOR, RICH):
        assert policy(cue) == MatchCue.best_action(cue)
    drawn = policy(np.repeat([POOR, RICH], 200, axis=0), deterministic=False, seed=0)
    assert np.mean(drawn[:200] == 0) > 0.85
    assert np.mean(drawn[200:] == 1) > 0.85


def _delayed_reward(policy: Policy, _: Any) -> None:
    """The first action is paid five steps later, across segment borders too."""
    for cue in (-1.0, 1.0):
        first = np.array([cue, 0, 0], np.float32)
        assert policy(first) == DelayedReward.best_action(first)
        for step in range(1, 6):
            later = np.array([cue, 1.0, step / 6], np.float32)
            assert value(policy, later) == pytest.approx(DelayedReward.value(later, 0.9), abs=0.1)


def _target(policy: Policy, _: Any) -> None:
    """A continuous answer in bounds that are not symmetric."""
    seen = np.linspace(-0.9, 0.9, 7, dtype=np.float32)[:, None]
    assert np.abs(policy(seen) - Target.best_action(seen)).max() < 0.15


def _mixed(_: Policy, summary: Mapping[str, Any]) -> None:
    """Every part of a composite observation reaches the network, every part of a composite action the environment."""
    assert Mixed.random_return < 4
    assert summary["return_mean"] > 0.75 * Mixed.best_return


def _masked(_: Policy, summary: Mapping[str, Any]) -> None:
    """An action that is not allowed raises, so one that slips through ends the run."""
    assert summary["return_mean"] > 0.9 * Masked.best_return


_CONTINUOUS = {"log_std_init": -0.5, "learning_rate": 0.005}
_WIDE = {"feature_size": 64, "gamma": 0.0, "log_std_init": -0.5, "learning_rate": 0.004, "ent_coef": 0.002}

ANSWERS: Mapping[str, Answer] = {
    "constant_reward": Answer("ConstantReward", _constant, {"reward": 2.0}, steps=4000),
    "two_state": Answer("TwoState", _two_state, steps=5000),
    "time_limit": Answer("TimeLimit", _time_limit),
    "final_row_terminated": Answer("FinalRow", _final_row(False, GAMMA), {"truncate": False}, steps=5000),
    "final_row_truncated": Answer("FinalRow", _final_row(True, 0.5), {"truncate": True}, {"gamma": 0.5}),
    "match_cue": Answer("MatchCue", _match_cue, steps=4000),
    "delayed_reward": Answer("DelayedReward", _delayed_reward, {}, {"gamma": 0.9, "gae_lambda": 1.0}, 12_000, 48_000),
    "target": Answer("Target", _target, {}, _CONTINUOUS, 16_000, 48_000),
    "mixed": Answer("Mixed", _mixed, {}, _WIDE, 24_000, 64_000),
    "masked": Answer("Masked", _masked, {}, {}, 12_000, 24_000),
}
