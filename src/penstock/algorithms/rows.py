"""A batch's valid rows as tensors, shuffled and cut into minibatches. Knows no loss and no optimiser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from penstock.algorithms.batch import Batch
from penstock.core.specs import Array
from penstock.losses.returns import generalized_advantages


@dataclass(frozen=True)
class Rows:
    """N rows, each one step of one lane, in (segment, step, lane) order unless shuffled."""

    observation: Tensor
    action: Tensor
    log_prob: Tensor
    value: Tensor
    advantage: Tensor
    target: Tensor

    def __len__(self) -> int:
        return len(self.advantage)

    def to(self, device: torch.device) -> Rows:
        """The same rows on a device; themselves where they are there already."""
        return Rows(*(getattr(self, field.name).to(device, non_blocking=True) for field in fields(self)))

    def minibatches(self, permutation: Array, count: int) -> Iterator[Rows]:
        """The rows in this order, in `count` pieces that differ by one row at most."""
        order = torch.from_numpy(permutation).to(self.advantage.device)
        shuffled = [getattr(self, field.name).index_select(0, order) for field in fields(self)]
        edges = [len(self) * piece // count for piece in range(count + 1)]
        for start, stop in pairwise(edges):
            yield Rows(*(tensor[start:stop] for tensor in shuffled))


def valid_rows(batch: Batch, gamma: float, gae_lambda: float) -> Rows:
    """Estimate advantages over each lane's segment, then keep what is valid."""
    value = batch.value[:, :-1]
    timed = (batch.reward, value, batch.value[:, 1:], batch.terminated, batch.truncated, batch.valid)
    reward, v_t, v_tp1, terminated, truncated, valid = (np.moveaxis(array, 1, 0) for array in timed)  # [T, M, B]
    estimate = generalized_advantages(reward, v_t, v_tp1, terminated, truncated, valid, gamma, gae_lambda)
    advantage = np.moveaxis(estimate, 0, 1)
    boxed = batch.action.dtype.kind == "f"  # distributions take Box actions as flat rows
    action = batch.action.reshape(*batch.valid.shape, -1) if boxed else batch.action
    columns = (batch.observation[:, :-1], action, batch.log_prob, value, advantage, advantage + value)
    return Rows(*(torch.from_numpy(column[batch.valid]) for column in columns))
