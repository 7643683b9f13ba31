"""Proximal policy optimization (Schulman et al. 2017, arXiv:1707.06347), algorithm 1's inner loop.

Data of older policies is corrected by the clipped ratio against the log-probability recorded when it was collected.
Knows no environment, no schedule of rollouts, and not where its batches come from or where its weights go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from penstock.algorithms.adam import Adam, clip_norm
from penstock.algorithms.batch import Batch
from penstock.algorithms.rows import Rows, valid_rows
from penstock.algorithms.settings import PPOSettings, Schedule
from penstock.core.errors import NonFinite
from penstock.core.seeds import Purpose, stream
from penstock.losses.entropy import entropy_loss
from penstock.losses.policy import approx_kl, clip_fraction, clipped_surrogate, normalized
from penstock.losses.value import clipped_squared_error, squared_error
from penstock.models.distributions import Distribution
from penstock.models.flat import FlatParameters
from penstock.models.policy import Policy

STOPS_AT = 1.5
"""Times `target_kl` at which a batch is left, as SB3 and OpenAI's Spinning Up do."""


@dataclass(frozen=True)
class Terms:
    """The loss of one minibatch and its parts."""

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    log_ratio: Tensor
    distribution: Distribution


class PPO:
    """Turns batches into new weights. `flat` holds the weights, `state()` what else the next update depends on."""

    def __init__(self, policy: Policy, settings: PPOSettings, seed: int) -> None:
        self.policy = policy
        self.settings = settings
        self.seed = seed
        self.flat = FlatParameters(policy)
        self.optimizer = Adam(self.flat.values, settings.adam_eps)

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        """Train on the batch's valid rows; `progress` is the share of the run's steps already trained, 0 to 1."""
        settings = self.settings
        rows = valid_rows(batch, settings.gamma, settings.gae_lambda).to(self.flat.values.device)
        count = max(1, min(round(batch.valid.size / settings.batch_size), len(rows)))
        learning_rate = annealed(settings.learning_rate, settings.learning_rate_schedule, progress)
        clip_range = annealed(settings.clip_range, settings.clip_range_schedule, progress)
        tally = Tally()
        for epoch in range(settings.n_epochs if len(rows) else 0):
            permutation = stream(self.seed, Purpose.MINIBATCH, batch.version, epoch).permutation(len(rows))
            watched = settings.target_kl is not None or epoch == settings.n_epochs - 1
            for minibatch in rows.minibatches(permutation, count):
                terms = self.terms(minibatch, clip_range)
                if watched and self._moved_too_far(terms, clip_range, tally):
                    return self._report(tally, rows, learning_rate, clip_range)
                self._step(terms, learning_rate, tally)
                tally.samples += len(minibatch)
        return self._report(tally, rows, learning_rate, clip_range)

    def terms(self, rows: Rows, clip_range: float) -> Terms:
        """Equation 9: L = L^CLIP + c1 L^VF - c2 S, to be minimised."""
        settings = self.settings
        parameters, value = self.policy(rows.observation)
        distribution = self.policy.distribution(parameters)
        log_ratio = distribution.log_prob(rows.action) - rows.log_prob
        advantage = normalized(rows.advantage) if settings.normalize_advantage else rows.advantage
        policy_loss = clipped_surrogate(log_ratio.exp(), advantage, clip_range)
        if settings.clip_range_vf is None:
            value_loss = squared_error(value, rows.target)
        else:
            value_loss = clipped_squared_error(value, rows.value, rows.target, settings.clip_range_vf)
        loss = torch.add(policy_loss, value_loss, alpha=settings.vf_coef)
        if settings.ent_coef > 0:
            loss = torch.add(loss, entropy_loss(distribution.entropy()), alpha=settings.ent_coef)
        return Terms(loss, policy_loss, value_loss, log_ratio, distribution)

    def _step(self, terms: Terms, learning_rate: float, tally: Tally) -> None:
        gradient = self.flat.gradient.zero_()
        terms.loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        loss, norm = terms.loss.item(), torch.linalg.vector_norm(gradient).item()
        if not (math.isfinite(loss) and math.isfinite(norm)):
            raise NonFinite(
                f"PPO's loss is {loss} and its gradient's norm {norm} at optimiser step {tally.updates + 1} of this batch; "
                "look for unbounded rewards or observations, or lower learner.learning_rate"
            )
        clip_norm(gradient, norm, self.settings.max_grad_norm)
        self.optimizer.step(gradient, learning_rate)
        tally.add(terms, norm)

    @torch.no_grad()
    def _moved_too_far(self, terms: Terms, clip_range: float, tally: Tally) -> bool:
        distance = approx_kl(terms.log_ratio).item()
        tally.distances.append(distance)
        tally.clipped.append(clip_fraction(terms.log_ratio.exp(), clip_range).item())
        tally.entropies.append(terms.distribution.entropy().mean().item())
        return self.settings.target_kl is not None and distance > STOPS_AT * self.settings.target_kl

    def _report(self, tally: Tally, rows: Rows, learning_rate: float, clip_range: float) -> dict[str, float]:
        return {
            "policy_loss": mean(tally.policy_losses),
            "value_loss": mean(tally.value_losses),
            "entropy": mean(tally.entropies),
            "approx_kl": mean(tally.distances),
            "clip_fraction": mean(tally.clipped),
            "explained_variance": explained_variance(rows),
            "grad_norm": mean(tally.norms),
            "learning_rate": learning_rate,
            "clip_range": clip_range,
            "updates": tally.updates,
            "samples": tally.samples,
        }

    def state(self) -> dict[str, Tensor]:
        """What the next update depends on besides weights, settings and seed: the optimiser's tensors by name."""
        return self.optimizer.state()

    def restore(self, weights: Tensor, state: dict[str, Tensor]) -> None:
        """Go on from these flat weights and this `state()`."""
        self.flat.published.copy_(weights)
        self.optimizer.restore(state)


class Tally:
    """What happened in one update, for the report."""

    def __init__(self) -> None:
        self.policy_losses: list[float] = []
        self.value_losses: list[float] = []
        self.entropies: list[float] = []
        self.norms: list[float] = []
        self.distances: list[float] = []
        self.clipped: list[float] = []
        self.samples = 0

    @property
    def updates(self) -> int:
        return len(self.norms)

    def add(self, terms: Terms, norm: float) -> None:
        self.policy_losses.append(terms.policy_loss.item())
        self.value_losses.append(terms.value_loss.item())
        self.norms.append(norm)


def annealed(start: float, schedule: Schedule, progress: float) -> float:
    """A setting at this share of the run."""
    return start if schedule == "constant" else start * max(0.0, 1.0 - progress)


def mean(numbers: list[float]) -> float:
    return float(np.mean(numbers)) if numbers else math.nan


def explained_variance(rows: Rows) -> float:
    """1 - Var(G - V) / Var(G): 1 is perfect, 0 no better than a constant; NaN where the returns do not vary."""
    variance = rows.target.cpu().numpy().var() if len(rows) else 0.0
    return float(1.0 - rows.advantage.cpu().numpy().var() / variance) if variance > 0 else math.nan
