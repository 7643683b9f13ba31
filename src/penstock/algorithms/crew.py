"""Threads that differentiate pieces of a minibatch side by side. Knows no loss and no optimiser.

torch's own threads share every single product and wait for one another after each: some hundred times a minibatch. Where
samplers work on the same cores one of them is always held up, and all are as slow as it. Here a thread has a piece of the rows
to itself, and they meet once a minibatch. (Pong on two cores beside a sampler, float32: 595 steps/s on one thread,
440 with two of torch's, 690 with two of these.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

import torch
from torch import Tensor

from penstock.algorithms.rows import Rows
from penstock.models.flat import FlatParameters
from penstock.models.policy import Policy
from penstock.models.twins import twin_of


class HasLoss(Protocol):
    """What an algorithm computes of some rows: a mean loss, and whatever else it reports."""

    @property
    def loss(self) -> Tensor: ...


Terms = TypeVar("Terms", bound=HasLoss)


class Crew:
    """`size` threads, each with a twin of the policy. Piece k is always differentiated into gradient k."""

    def __init__(self, policy: Policy, flat: FlatParameters, size: int) -> None:
        self.size = size
        twins = [twin_of(policy, flat) for _ in range(size)]
        self._policies = [policy for policy, _ in twins]
        self.gradients = [gradient for _, gradient in twins]
        self._threads: ThreadPoolExecutor | None = None

    def differentiate(self, rows: Rows, terms_of: Callable[[Policy, Rows], Terms]) -> list[tuple[float, Terms]]:
        """The terms of each piece and its share of the rows; the gradients are of share times loss, so they add up."""

        def one(number: int, piece: Rows) -> tuple[float, Terms]:
            share = len(piece) / len(rows)
            self.gradients[number].zero_()
            terms = terms_of(self._policies[number], piece)
            backward(terms.loss * share)
            return share, terms

        if self._threads is None:  # now, since they take over what the learner has set around its update
            settled = (_flushes_denormals(),)
            self._threads = ThreadPoolExecutor(self.size, "gradient", initializer=_settle_thread, initargs=settled)
        return list(self._threads.map(one, range(self.size), rows.pieces(self.size)))


def total(parts: Sequence[tuple[float, HasLoss]], name: str) -> float:
    """A term of the whole minibatch, from those of its pieces."""
    return float(sum(share * getattr(terms, name).item() for share, terms in parts))


def backward(loss: Tensor) -> None:
    """Add the gradients of what the loss depends on to their places."""
    loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped


def _settle_thread(flush_denormal: bool) -> None:
    """Both are a thread's own."""
    torch.set_num_threads(1)
    torch.set_flush_denormal(flush_denormal)


def _flushes_denormals() -> bool:
    """Whether this thread does; torch can be told but not asked."""
    return bool((torch.tensor(1e-39) * 1.0).item() == 0.0)
