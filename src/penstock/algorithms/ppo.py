"""Proximal policy optimization (Schulman et al. 2017, arXiv:1707.06347), algorithm 1's inner loop.

Data of older policies is corrected as `PPOSettings.correction` says: by default by the clipped ratio against the
log-probability recorded when it was collected.
Knows no environment, no schedule of rollouts, and not where its batches come from or where its weights go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from penstock.algorithms.batch import Batch
from penstock.algorithms.crew import total
from penstock.algorithms.descent import Descent, annealed
from penstock.algorithms.rows import Rows, generalized_estimate, read_again, select_valid, valid_rows, vtrace_estimate
from penstock.algorithms.settings import PPOSettings
from penstock.core.seeds import Purpose, stream
from penstock.losses.entropy import entropy_loss
from penstock.losses.policy import approx_kl, clip_fraction, clipped_surrogate, decoupled_surrogate, normalized
from penstock.losses.value import clipped_squared_error, explained_variance, squared_error
from penstock.models.distributions import Distribution
from penstock.models.policy import Policy

STOPS_AT = 1.5
"""Times `target_kl` at which a batch is left, as SB3 and OpenAI's Spinning Up do."""


@dataclass(frozen=True)
class Terms:
    """The loss of one minibatch, or of a piece of one, and what it is made of."""

    loss: Tensor
    policy_loss: Tensor
    value_loss: Tensor
    log_ratio: Tensor
    distribution: Distribution


Parts = Sequence[tuple[float, Terms]]
"""The pieces of a minibatch: each one's share of the rows, and its terms."""


class PPO:
    """Turns batches into new weights. `flat` holds the weights, `state()` what else the next update depends on."""

    def __init__(self, policy: Policy, settings: PPOSettings, seed: int) -> None:
        self.policy = policy
        self.settings = settings
        self.seed = seed
        self.descent = Descent(policy, settings)
        self.flat = self.descent.flat

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        """Train on the batch's valid rows; `progress` is the share of the run's steps already trained, 0 to 1."""
        settings = self.settings
        rows = self.rows(batch).to(self.flat.values.device)
        learning_rate = annealed(settings.learning_rate, settings.learning_rate_schedule, progress)
        clip_range = annealed(settings.clip_range, settings.clip_range_schedule, progress)
        tally = Tally()
        with self.descent.delayed(batch.behaviour):
            self._pass_over(batch, rows, learning_rate, clip_range, tally)
        return self._report(tally, rows, learning_rate, clip_range)

    def _pass_over(self, batch: Batch, rows: Rows, learning_rate: float, clip_range: float, tally: Tally) -> None:
        settings = self.settings
        count = max(1, min(round(batch.valid.size / settings.batch_size), len(rows)))
        for epoch in range(settings.n_epochs if len(rows) else 0):
            permutation = stream(self.seed, Purpose.MINIBATCH, batch.version, epoch).permutation(len(rows))
            watched = settings.target_kl is not None or epoch == settings.n_epochs - 1
            for minibatch in rows.minibatches(permutation, count):
                prepared = self.prepared(minibatch)
                parts = self.descent.differentiate(prepared, lambda policy, rows: self.terms(policy, rows, clip_range))
                if watched and self._moved_too_far(parts, clip_range, tally):
                    return
                tally.add(parts, self.descent.move(parts, learning_rate))
                tally.samples += len(minibatch)

    def rows(self, batch: Batch) -> Rows:
        """The batch's data with advantages, as the correction has it: pi is the policy now, mu the one that acted.

        clip        ratios against mu
        delayed     the same, and the gradient is taken where mu stood (`Descent.delayed`)
        decoupled   ratios against pi at the batch's start, each row weighted by pi / mu
        vtrace      ratios against pi at the batch's start, V-trace advantages and targets
        none        ratios against pi at the batch's start, as if that had acted
        """
        settings = self.settings
        if settings.correction in ("clip", "delayed"):
            return valid_rows(batch, settings.gamma, settings.gae_lambda)
        now = read_again(self.policy, batch)
        if settings.correction == "vtrace":
            bars = {"rho_bar": settings.rho_bar, "c_bar": settings.c_bar}
            traced = vtrace_estimate(batch, now, settings.gamma, settings.gae_lambda, **bars)
            return select_valid(batch, traced, log_prob=now.log_prob, value=now.value[:, :-1])
        weight = np.exp(now.log_prob - batch.log_prob) if settings.correction == "decoupled" else None
        estimate = generalized_estimate(batch, settings.gamma, settings.gae_lambda)
        return select_valid(batch, estimate, log_prob=now.log_prob, weight=weight)

    def prepared(self, minibatch: Rows) -> Rows:
        """What all of a minibatch's rows decide together, before it may be cut into pieces."""
        if not self.settings.normalize_advantage:
            return minibatch
        return replace(minibatch, advantage=normalized(minibatch.advantage))

    def terms(self, policy: Policy, rows: Rows, clip_range: float) -> Terms:
        """Equation 9: L = L^CLIP + c1 L^VF - c2 S, to be minimised. `policy` is ours, or a thread's twin of it."""
        settings = self.settings
        parameters, value = policy(rows.observation)
        distribution = policy.distribution(parameters)
        log_ratio = distribution.log_prob(rows.action) - rows.log_prob
        if rows.weight is None:
            policy_loss = clipped_surrogate(log_ratio.exp(), rows.advantage, clip_range)
        else:
            policy_loss = decoupled_surrogate(log_ratio.exp(), rows.advantage, clip_range, rows.weight)
        if settings.clip_range_vf is None:
            value_loss = squared_error(value, rows.target)
        else:
            value_loss = clipped_squared_error(value, rows.value, rows.target, settings.clip_range_vf)
        loss = torch.add(policy_loss, value_loss, alpha=settings.vf_coef)
        if settings.ent_coef > 0:
            loss = torch.add(loss, entropy_loss(distribution.entropy()), alpha=settings.ent_coef)
        return Terms(loss, policy_loss, value_loss, log_ratio, distribution)

    @torch.no_grad()
    def _moved_too_far(self, parts: Parts, clip_range: float, tally: Tally) -> bool:
        distance = sum(share * approx_kl(terms.log_ratio).item() for share, terms in parts)
        tally.distances.append(distance)
        tally.clipped.append(sum(share * clip_fraction(terms.log_ratio.exp(), clip_range).item() for share, terms in parts))
        tally.entropies.append(sum(share * terms.distribution.entropy().mean().item() for share, terms in parts))
        return self.settings.target_kl is not None and distance > STOPS_AT * self.settings.target_kl

    def _report(self, tally: Tally, rows: Rows, learning_rate: float, clip_range: float) -> dict[str, float]:
        return {
            "policy_loss": mean(tally.policy_losses),
            "value_loss": mean(tally.value_losses),
            "entropy": mean(tally.entropies),
            "approx_kl": mean(tally.distances),
            "clip_fraction": mean(tally.clipped),
            "explained_variance": explained_variance(rows.value, rows.target),
            "grad_norm": mean(tally.norms),
            "learning_rate": learning_rate,
            "clip_range": clip_range,
            "updates": tally.updates,
            "samples": tally.samples,
        }

    def state(self) -> dict[str, Tensor]:
        """What the next update depends on besides weights, settings and seed: the optimiser's tensors by name."""
        return self.descent.state()

    def restore(self, weights: Tensor, state: dict[str, Tensor]) -> None:
        """Go on from these flat weights and this `state()`."""
        self.descent.restore(weights, state)


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

    def add(self, parts: Parts, norm: float) -> None:
        self.policy_losses.append(total(parts, "policy_loss"))
        self.value_losses.append(total(parts, "value_loss"))
        self.norms.append(norm)


def mean(numbers: list[float]) -> float:
    return float(np.mean(numbers)) if numbers else math.nan
