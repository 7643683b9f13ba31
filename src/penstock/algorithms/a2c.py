"""Advantage actor-critic (Mnih et al. 2016, arXiv:1602.01783, algorithm S3, with one synchronous learner).

One optimiser step a batch, over all of its valid rows. Under staleness the gradient is delayed as in HTS-RL. Knows no
environment, no schedule of rollouts, and not where its batches come from or where its weights go.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from torch import Tensor

from penstock.algorithms.batch import Batch
from penstock.algorithms.crew import total
from penstock.algorithms.descent import Descent, annealed
from penstock.algorithms.rows import Rows, valid_rows
from penstock.algorithms.settings import LearnerSettings
from penstock.losses.entropy import entropy_loss
from penstock.losses.policy import approx_kl, normalized, policy_gradient
from penstock.losses.value import explained_variance, squared_error
from penstock.models.policy import Policy


@dataclass(frozen=True)
class Terms:
    """The loss, what it is made of, and how far the policy is from the one that acted."""

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    entropy: Tensor
    approx_kl: Tensor


class A2C:
    """Turns batches into new weights. `flat` holds the weights, `state()` what else the next update depends on."""

    def __init__(self, policy: Policy, settings: LearnerSettings, seed: int) -> None:
        del seed  # nothing is drawn here
        self.policy = policy
        self.settings = settings
        self.descent = Descent(policy, settings)
        self.flat = self.descent.flat

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        """One step on the batch's valid rows; `progress` is the share of the run's steps already trained, 0 to 1."""
        rows = self.rows(batch).to(self.flat.values.device)
        learning_rate = annealed(self.settings.learning_rate, self.settings.learning_rate_schedule, progress)
        if not len(rows):
            return {"updates": 0, "samples": 0, "learning_rate": learning_rate}
        with self.descent.delayed(batch.behaviour):
            return self._step(rows, learning_rate)

    def rows(self, batch: Batch) -> Rows:
        """The batch's data with its advantages and targets."""
        return valid_rows(batch, self.settings.gamma, self.settings.gae_lambda)

    def _step(self, rows: Rows, learning_rate: float) -> dict[str, float]:
        if self.settings.normalize_advantage:
            rows = replace(rows, advantage=normalized(rows.advantage))
        parts = self.descent.differentiate(rows, self.terms)
        names = ("policy_loss", "value_loss", "entropy", "approx_kl")
        return {
            **{name: total(parts, name) for name in names},
            "grad_norm": self.descent.move(parts, learning_rate),
            "explained_variance": explained_variance(rows.value, rows.target),
            "learning_rate": learning_rate,
            "updates": 1,
            "samples": len(rows),
        }

    def terms(self, policy: Policy, rows: Rows) -> Terms:
        """L = L^PG + c1 L^VF - c2 S, to be minimised. `policy` is ours, or a thread's twin of it."""
        parameters, value = policy(rows.observation)
        distribution = policy.distribution(parameters)
        log_prob, entropy = distribution.log_prob(rows.action), distribution.entropy()
        policy_loss, value_loss = policy_gradient(log_prob, rows.advantage), squared_error(value, rows.target)
        loss = policy_loss + self.settings.vf_coef * value_loss + self.settings.ent_coef * entropy_loss(entropy)
        moved = approx_kl(log_prob.detach() - rows.log_prob)
        return Terms(loss, policy_loss, value_loss, entropy.detach().mean(), moved)

    def state(self) -> dict[str, Tensor]:
        """What the next update depends on besides weights and settings: the optimiser's tensors by name."""
        return self.descent.state()

    def restore(self, weights: Tensor, state: dict[str, Tensor]) -> None:
        """Go on from these flat weights and this `state()`."""
        self.descent.restore(weights, state)
