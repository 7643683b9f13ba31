"""What a person may say about learning, and which algorithms there are. Knows no tensor library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import Refused, UnknownName
from penstock.core.fit import Demands

Schedule = Literal["constant", "linear"]


@dataclass(frozen=True, kw_only=True)
class PPOSettings:
    """The section `learner` for PPO."""

    learning_rate: float = 3e-4
    """Adam's step size."""
    learning_rate_schedule: Schedule = "constant"
    """constant, or linear: down to 0 over the run's steps."""
    n_steps: int = 128
    """Steps of every lane in one segment (T)."""
    batch_size: int = 256
    """Rows of a minibatch; minibatches of one epoch differ by one row at most."""
    n_epochs: int = 4
    """Passes over each batch."""
    gamma: float = 0.99
    """Discount of rewards."""
    gae_lambda: float = 0.95
    """Discount of temporal differences in the advantage: 0 bootstraps at once, 1 sums rewards to the end."""
    clip_range: float = 0.2
    """How far the probability ratio may leave 1 before its gradient stops."""
    clip_range_schedule: Schedule = "constant"
    """constant, or linear: down to 0 over the run's steps."""
    clip_range_vf: float | None = None
    """How far a value may leave the collected one; none: as far as it likes."""
    normalize_advantage: bool = True
    """Give the advantages of every minibatch mean 0 and deviation 1."""
    ent_coef: float = 0.0
    """Weight of the entropy in the loss."""
    vf_coef: float = 0.5
    """Weight of the squared value error in the loss."""
    max_grad_norm: float = 0.5
    """Greatest norm of the gradient; larger ones are scaled down."""
    target_kl: float | None = None
    """Leave the batch once the policy has moved 1.5 times this far; none: never."""
    adam_eps: float = 1e-5
    """Adam's epsilon."""
    correction: Literal["clip"] = "clip"
    """How data of older policies is corrected: the ratio against the recorded log-probability, clipped."""

    def __post_init__(self) -> None:
        for name in ("n_steps", "batch_size", "n_epochs"):
            self._demand(name, getattr(self, name) >= 1, "at least 1")
        for name in ("learning_rate", "clip_range", "adam_eps"):
            self._demand(name, 0 < getattr(self, name) < math.inf, "above 0 and finite")
        self._demand("max_grad_norm", self.max_grad_norm > 0, "above 0 (inf: no limit)")
        for name in ("gamma", "gae_lambda"):
            self._demand(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        for name in ("ent_coef", "vf_coef"):
            self._demand(name, 0 <= getattr(self, name) < math.inf, "0 or above, and finite")
        for name in ("clip_range_vf", "target_kl"):
            self._demand(name, getattr(self, name) is None or getattr(self, name) > 0, "above 0, or none")
        for name in ("learning_rate_schedule", "clip_range_schedule"):
            self._demand(name, getattr(self, name) in ("constant", "linear"), "constant or linear")

    def _demand(self, name: str, holds: bool, what: str) -> None:
        if not holds:
            raise Refused(f"learner.{name} must be {what}, not {getattr(self, name)}")


@dataclass(frozen=True)
class Algorithm:
    """What the rest of the house knows of an algorithm before torch is there."""

    name: str
    settings: type
    learner: str
    """"module:Class", made as Class(policy, settings, seed)."""
    demands: Demands


CATALOGUE: Mapping[str, Algorithm] = {
    "ppo": Algorithm(
        name="ppo",
        settings=PPOSettings,
        learner="penstock.algorithms.ppo:PPO",
        demands=Demands(greatest_staleness={"clip": 16}),
    ),
}


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of this name; refuses others with the nearest name."""
    if name not in CATALOGUE:
        raise UnknownName("algorithm", name, CATALOGUE)
    return CATALOGUE[name]
