"""A batch's valid rows as tensors, with their advantages, shuffled and cut into minibatches. Knows no loss and no optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor

from penstock.algorithms.batch import Batch
from penstock.core.specs import Array
from penstock.losses.returns import generalized_advantages
from penstock.losses.vtrace import vtrace
from penstock.models.policy import Policy
from penstock.models.tensors import Tensors, each, tensors_of

ROWS_AT_ONCE = 1024
"""Of a forward pass over a whole batch: fat enough to be fast, small enough for images."""


@dataclass(frozen=True)
class Rows:
    """N rows, each one step of one lane, in (segment, step, lane) order unless shuffled."""

    observation: Tensors
    action: Tensors
    log_prob: Tensor
    """By the policy that ratios are taken against."""
    value: Tensor
    advantage: Tensor
    target: Tensor
    weight: Tensor | None = None
    """What each row counts beside the ratio; None: one."""

    def __len__(self) -> int:
        return len(self.advantage)

    def to(self, device: torch.device) -> Rows:
        """The same rows on a device; themselves where they are there already."""
        return self._of_each(lambda tensor: tensor.to(device, non_blocking=True))

    def minibatches(self, permutation: Array, count: int) -> Iterator[Rows]:
        """The rows in this order, in `count` pieces that differ by one row at most."""
        order = torch.from_numpy(permutation).to(self.advantage.device)
        yield from self._of_each(lambda tensor: tensor.index_select(0, order)).pieces(count)

    def pieces(self, count: int) -> Iterator[Rows]:
        """The rows in order, in `count` pieces that differ by one row at most."""
        edges = [len(self) * piece // count for piece in range(count + 1)]
        for start, stop in pairwise(edges):
            yield self._cut(slice(start, stop))

    def _cut(self, piece: slice) -> Rows:
        return self._of_each(lambda tensor: tensor[piece])

    def _of_each(self, function: Callable[[Tensor], Tensor]) -> Rows:
        found: dict[str, Any] = {}
        for field in fields(self):
            part = getattr(self, field.name)
            found[field.name] = None if part is None else each(function, part)
        return Rows(**found)


@dataclass(frozen=True)
class Estimate:
    """Advantages and what values should be, [M, T, B]."""

    advantage: Array
    target: Array


@dataclass(frozen=True)
class Reading:
    """What a policy makes of a batch: log-probabilities of its actions, [M, T, B], and values, [M, T+1, B]."""

    log_prob: Array
    value: Array


@torch.no_grad()
def read_again(policy: Policy, batch: Batch) -> Reading:
    """The whole batch in the eyes of the policy as it is now."""
    lead, seen = batch.observation.shape[:3], batch.observation
    segments, steps, lanes = lead
    value = np.empty(lead, np.float32)
    log_prob = np.empty((segments, steps - 1, lanes), np.float32)
    for segment in range(segments):  # one after the other: a batch of images may be large
        rows = seen[segment].reshape(-1, *seen.shape[3:])
        values, parameters = _forward(policy, rows)
        value[segment] = values.reshape(steps, lanes)
        action = batch.action[segment].reshape(-1, *batch.action.shape[3:])
        taken = policy.distribution(parameters[: len(action)]).log_prob(action_tensors(action, parameters.device))
        log_prob[segment] = taken.cpu().numpy().reshape(steps - 1, lanes)
    return Reading(log_prob, value)


def _forward(policy: Policy, rows: Array) -> tuple[Array, Tensor]:
    parameters, values = [], []
    device = next(policy.parameters()).device
    for first in range(0, len(rows), ROWS_AT_ONCE):
        piece = each(lambda tensor: tensor.to(device), tensors_of(np.ascontiguousarray(rows[first : first + ROWS_AT_ONCE])))
        found, value = policy(piece)
        parameters.append(found)
        values.append(value)
    return torch.cat(values).cpu().numpy(), torch.cat(parameters)


def generalized_estimate(batch: Batch, gamma: float, gae_lambda: float) -> Estimate:
    """Generalized advantages over each lane's segment, from the values that were recorded."""
    recorded = batch.value[:, :-1]
    reward, v_t, v_tp1 = _time_first(batch.reward, recorded, batch.value[:, 1:])
    terminated, truncated, valid = _time_first(batch.terminated, batch.truncated, batch.valid)
    timed = generalized_advantages(reward, v_t, v_tp1, terminated, truncated, valid, gamma, gae_lambda)
    advantage = np.moveaxis(timed, 0, 1)
    return Estimate(advantage, advantage + recorded)


def vtrace_estimate(batch: Batch, now: Reading, gamma: float, gae_lambda: float, *, rho_bar: float, c_bar: float) -> Estimate:
    """V-trace over each lane's segment, from values and log-probabilities of the policy as it is now."""
    reward, v_t, v_tp1 = _time_first(batch.reward, now.value[:, :-1], now.value[:, 1:])
    log_rho, terminated, truncated, valid = _time_first(
        now.log_prob - batch.log_prob, batch.terminated, batch.truncated, batch.valid
    )
    bounds = gamma, gae_lambda, rho_bar, c_bar
    advantage, target = vtrace(reward, v_t, v_tp1, log_rho, terminated, truncated, valid, *bounds)
    return Estimate(np.moveaxis(advantage, 0, 1), np.moveaxis(target, 0, 1))


def _time_first(*arrays: Array) -> list[Any]:
    """[M, T, B] as [T, M, B]."""
    return [np.moveaxis(array, 1, 0) for array in arrays]


def select_valid(
    batch: Batch, estimate: Estimate, *, log_prob: Array | None = None, value: Array | None = None, weight: Array | None = None
) -> Rows:
    """What is valid, as rows; log-probabilities and values are those recorded unless others are given."""
    here = batch.valid
    observation, action = batch.observation[:, :-1][here], batch.action[here]

    def chosen(given: Array | None, recorded: Array) -> Tensor:
        return torch.from_numpy((recorded if given is None else given)[here])

    return Rows(
        observation=tensors_of(observation),
        action=action_tensors(action),
        log_prob=chosen(log_prob, batch.log_prob),
        value=chosen(value, batch.value[:, :-1]),
        advantage=torch.from_numpy(estimate.advantage[here]),
        target=torch.from_numpy(estimate.target[here]),
        weight=None if weight is None else torch.from_numpy(weight[here]),
    )


def valid_rows(batch: Batch, gamma: float, gae_lambda: float) -> Rows:
    """Valid rows with generalized advantages, all as it was recorded."""
    return select_valid(batch, generalized_estimate(batch, gamma, gae_lambda))


def action_tensors(action: Array, device: torch.device | None = None) -> Tensors:
    """Distributions take several numbers as one row, whatever their shape, and a choice as one number."""
    found = each(lambda part: part if _is_choice(part) else part.reshape(len(part), -1), tensors_of(action))
    return found if device is None else each(lambda part: part.to(device), found)


def _is_choice(part: Tensor) -> bool:
    return part.ndim == 1 and not part.is_floating_point()
