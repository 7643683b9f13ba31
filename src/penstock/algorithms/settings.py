"""What a person may say about learning, and which algorithms there are. Knows no tensor library."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from penstock.core.errors import Refused, UnknownName
from penstock.core.fit import Demands

Schedule = Literal["constant", "linear"]
Optimizer = Literal["adam", "rmsprop", "rmsprop_tf", "sgd"]


@dataclass(frozen=True, kw_only=True)
class LearnerSettings:
    """What every algorithm is told: the part of the section `learner` that the rest of the house reads."""

    positive: ClassVar[tuple[str, ...]] = ("learning_rate", "adam_eps", "rms_prop_eps")
    at_least_one: ClassVar[tuple[str, ...]] = ("n_steps", "gradient_threads")
    not_negative: ClassVar[tuple[str, ...]] = ("ent_coef", "vf_coef")
    shares: ClassVar[tuple[str, ...]] = ("gamma", "gae_lambda", "rms_prop_alpha")
    optional: ClassVar[tuple[str, ...]] = ()

    learning_rate: float = 3e-4
    """The optimiser's step size."""
    learning_rate_schedule: Schedule = "constant"
    """constant, or linear: down to 0 over the run's steps."""
    n_steps: int = 128
    """Steps of every lane in one segment (T)."""
    gamma: float = 0.99
    """Discount of rewards."""
    gae_lambda: float = 0.95
    """Discount of temporal differences in the advantage: 0 bootstraps at once, 1 sums rewards to the end."""
    normalize_advantage: bool = True
    """Give the advantages of every minibatch mean 0 and deviation 1."""
    ent_coef: float = 0.0
    """Weight of the entropy in the loss."""
    vf_coef: float = 0.5
    """Weight of the squared value error in the loss."""
    max_grad_norm: float = 0.5
    """Greatest norm of the gradient; larger ones are scaled down."""
    optimizer: Optimizer = "adam"
    """adam, rmsprop, rmsprop_tf (as TensorFlow has it), or sgd."""
    adam_eps: float = 1e-5
    """Adam's epsilon."""
    rms_prop_alpha: float = 0.99
    """How slowly rmsprop forgets squared gradients."""
    rms_prop_eps: float = 1e-5
    """Rmsprop's epsilon: added to the root; under rmsprop_tf, inside it."""
    gradient_threads: int = 1
    """Threads that compute the gradient of a minibatch side by side, each that of its own piece of the rows. For networks with
    convolutions on a CPU; small networks are faster with one."""
    rho_bar: float = 1.0
    """Under correction vtrace: the greatest weight of a temporal difference."""
    c_bar: float = 1.0
    """Under correction vtrace: the greatest weight that is passed on to earlier steps."""

    @property
    def correction_name(self) -> str:
        """The field `correction`, which every algorithm has with choices of its own."""
        return str(getattr(self, "correction", "none"))

    @property
    def minibatch_rows(self) -> int | None:
        """Rows of a minibatch; None where a batch is one."""
        return None

    @property
    def passes(self) -> int:
        """How often each row is trained on."""
        return 1

    def __post_init__(self) -> None:
        for name in self.at_least_one:
            self._demand(name, getattr(self, name) >= 1, "at least 1")
        for name in self.positive:
            self._demand(name, 0 < getattr(self, name) < math.inf, "above 0 and finite")
        for name in ("max_grad_norm", "rho_bar", "c_bar"):
            self._demand(name, getattr(self, name) > 0, "above 0 (inf: no limit)")
        for name in self.shares:
            self._demand(name, 0 <= getattr(self, name) <= 1, "between 0 and 1")
        for name in self.not_negative:
            self._demand(name, 0 <= getattr(self, name) < math.inf, "0 or above, and finite")
        for name in self.optional:
            self._demand(name, getattr(self, name) is None or getattr(self, name) > 0, "above 0, or none")
        self._demand("optimizer", self.optimizer in get_args(Optimizer), " or ".join(get_args(Optimizer)))
        for name in ("learning_rate_schedule", "clip_range_schedule"):
            self._demand(name, getattr(self, name, "constant") in ("constant", "linear"), "constant or linear")

    def _demand(self, name: str, holds: bool, what: str) -> None:
        if not holds:
            raise Refused(f"learner.{name} must be {what}, not {getattr(self, name)}")


@dataclass(frozen=True, kw_only=True)
class PPOSettings(LearnerSettings):
    """The section `learner` for PPO, and for an algorithm of your own."""

    positive: ClassVar[tuple[str, ...]] = (*LearnerSettings.positive, "clip_range")
    at_least_one: ClassVar[tuple[str, ...]] = (*LearnerSettings.at_least_one, "batch_size", "n_epochs")
    optional: ClassVar[tuple[str, ...]] = ("clip_range_vf", "target_kl")

    batch_size: int = 256
    """Rows of a minibatch; minibatches of one epoch differ by one row at most."""
    n_epochs: int = 4
    """Passes over each batch."""
    clip_range: float = 0.2
    """How far the probability ratio may leave 1 before its gradient stops."""
    clip_range_schedule: Schedule = "constant"
    """constant, or linear: down to 0 over the run's steps."""
    clip_range_vf: float | None = None
    """How far a value may leave the collected one; none: as far as it likes."""
    target_kl: float | None = None
    """Leave the batch once the policy has moved 1.5 times this far; none: never."""
    correction: Literal["clip", "decoupled", "vtrace", "delayed", "none"] = "clip"
    """How data of older policies is corrected: clip, PPO's ratio against the policy that acted; decoupled, the ratio against
    the policy at the batch's start, weighted by that policy's ratio to the one that acted; vtrace, the ratio against the
    policy at the batch's start, with V-trace advantages and targets; delayed, HTS-RL's delayed gradient (pinned schedules);
    none, as if the policy at the batch's start had acted."""

    @property
    def minibatch_rows(self) -> int | None:
        return self.batch_size

    @property
    def passes(self) -> int:
        return self.n_epochs


@dataclass(frozen=True, kw_only=True)
class A2CSettings(LearnerSettings):
    """The section `learner` for A2C: one optimiser step a batch."""

    learning_rate: float = 7e-4
    """The optimiser's step size."""
    n_steps: int = 5
    """Steps of every lane in one segment (T)."""
    gae_lambda: float = 1.0
    """Discount of temporal differences in the advantage: 0 bootstraps at once, 1 sums rewards to the end."""
    normalize_advantage: bool = False
    """Give the advantages of every batch mean 0 and deviation 1."""
    optimizer: Optimizer = "rmsprop"
    """adam, rmsprop, rmsprop_tf (as TensorFlow has it), or sgd."""
    correction: Literal["delayed", "none"] = "delayed"
    """How data of older policies is corrected: delayed, HTS-RL's delayed gradient (pinned schedules; under sync it is the
    plain gradient), or none."""


@dataclass(frozen=True, kw_only=True)
class IMPALASettings(LearnerSettings):
    """The section `learner` for IMPALA: V-trace, one optimiser step a batch."""

    learning_rate: float = 6e-4
    """The optimiser's step size."""
    n_steps: int = 20
    """Steps of every lane in one segment (T)."""
    gae_lambda: float = 1.0
    """V-trace's lambda: 1 is the paper's choice."""
    normalize_advantage: bool = False
    """Give the advantages of every batch mean 0 and deviation 1."""
    ent_coef: float = 0.01
    """Weight of the entropy in the loss."""
    optimizer: Optimizer = "rmsprop"
    """adam, rmsprop, rmsprop_tf (as TensorFlow has it), or sgd."""
    correction: Literal["vtrace", "none"] = "vtrace"
    """How data of older policies is corrected: vtrace, or none: as if the policy at the batch's start had acted."""


@dataclass(frozen=True)
class Algorithm:
    """What the rest of the house knows of an algorithm before torch is there."""

    name: str
    settings: type[LearnerSettings]
    learner: str
    """"module:Class", made as Class(policy, settings, seed)."""
    demands: Demands


CATALOGUE: Mapping[str, Algorithm] = {
    entry.name: entry
    for entry in (
        Algorithm(
            name="ppo",
            settings=PPOSettings,
            learner="penstock.algorithms.ppo:PPO",
            demands=Demands(
                greatest_staleness={
                    "clip": 16,
                    "decoupled": 64,
                    "vtrace": 64,
                    "delayed": 64,
                    "none": 0,
                },
                pinned_only=frozenset({"delayed"}),
            ),
        ),
        Algorithm(
            name="a2c",
            settings=A2CSettings,
            learner="penstock.algorithms.a2c:A2C",
            demands=Demands(greatest_staleness={"delayed": 64, "none": 0}, pinned_only=frozenset({"delayed"})),
        ),
        Algorithm(
            name="impala",
            settings=IMPALASettings,
            learner="penstock.algorithms.impala:IMPALA",
            demands=Demands(greatest_staleness={"vtrace": 64, "none": 0}),
        ),
    )
}


def find_algorithm(name: str) -> Algorithm:
    """The algorithm of this name; refuses others with the nearest name."""
    if name not in CATALOGUE:
        raise UnknownName("algorithm", name, CATALOGUE)
    return CATALOGUE[name]


def settings_of(algo: str) -> type[LearnerSettings]:
    """The section `learner` of an algorithm; one of a person's own is told what PPO is told."""
    return CATALOGUE[algo].settings if algo in CATALOGUE else PPOSettings
