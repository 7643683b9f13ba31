"""From a loss to new weights: one flat vector, its optimiser, and where the gradient is taken. Knows no loss and no batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from penstock.algorithms.crew import Crew, Terms, backward, total
from penstock.algorithms.optimizers import clip_norm, optimizer_for
from penstock.algorithms.rows import Rows
from penstock.algorithms.settings import LearnerSettings, Schedule
from penstock.core.errors import NonFinite
from penstock.core.specs import Array
from penstock.models.flat import FlatParameters
from penstock.models.policy import Policy


class Descent:
    """Steps down the gradient of losses of a policy."""

    def __init__(self, policy: Policy, settings: LearnerSettings) -> None:
        self.flat = FlatParameters(policy)
        self.optimizer = optimizer_for(self.flat.values, settings)
        self.policy, self.settings = policy, settings
        self._crew = Crew(policy, self.flat, settings.gradient_threads) if settings.gradient_threads > 1 else None
        self._home: Tensor | None = None  # theta, while the policy stands at theta + delta
        self._delta = torch.zeros(())

    @contextmanager
    def delayed(self, behaviour: Array | None) -> Iterator[None]:
        """HTS-RL's delayed gradient (Liu et al. 2020, arXiv:2012.09849, equation 3): in here the policy stands where the data
        came from, and each step moves theta by the gradient that is found there.

            delta = theta_b - theta;   g = gradient of L at theta + delta;   theta <- Opt(theta, g)

        delta is constant and there is one optimiser, whatever the number of steps: with one epoch, one minibatch and SGD
        this is the paper's formula. `behaviour`: the weights that acted; None: those of now, and nothing is delayed.
        """
        values = self.flat.values
        if behaviour is None:
            yield
            return
        self._home = values.clone()
        self._delta = torch.from_numpy(behaviour[: len(values)]).to(values.device) - self._home
        values.add_(self._delta)
        try:
            yield
        finally:
            values.copy_(self._home)
            self._home = None

    def differentiate(self, rows: Rows, terms_of: Callable[[Policy, Rows], Terms]) -> list[tuple[float, Terms]]:
        """Fill the gradient with that of the mean loss over these rows; the terms, with the share of rows that each is of.

        With several threads the rows are cut into as many pieces, whose gradients are added up in order: which thread is
        ready first changes no bit.
        """
        gradient = self.flat.gradient.zero_()
        if self._crew is None or len(rows) < self._crew.size:
            terms = terms_of(self.policy, rows)
            backward(terms.loss)
            return [(1.0, terms)]
        parts = self._crew.differentiate(rows, terms_of)
        for twin_gradient in self._crew.gradients:
            gradient.add_(twin_gradient)
        return parts

    def move(self, parts: Sequence[tuple[float, Terms]], learning_rate: float) -> float:
        """One optimiser step along the gradient of these terms; its norm before clipping."""
        gradient = self.flat.gradient
        value, norm = total(parts, "loss"), float(torch.linalg.vector_norm(gradient).item())
        if not (math.isfinite(value) and math.isfinite(norm)):
            raise NonFinite(
                f"the loss is {value} and its gradient's norm {norm}; "
                "look for unbounded rewards or observations, or lower learner.learning_rate"
            )
        clip_norm(gradient, norm, self.settings.max_grad_norm)
        self._move(gradient, learning_rate)
        return norm

    def _move(self, gradient: Tensor, learning_rate: float) -> None:
        if self._home is None:
            self.optimizer.step(gradient, learning_rate)
            return
        values = self.flat.values
        values.copy_(self._home)
        self.optimizer.step(gradient, learning_rate)
        self._home.copy_(values)
        values.add_(self._delta)

    def state(self) -> dict[str, Tensor]:
        """What the next step depends on besides the weights."""
        return self.optimizer.state()

    def restore(self, weights: Tensor, state: dict[str, Tensor]) -> None:
        """Go on from these flat weights and this `state()`."""
        self.flat.published.copy_(weights)
        self.optimizer.restore(state)


def annealed(start: float, schedule: Schedule, progress: float) -> float:
    """A setting at this share of the run."""
    return start if schedule == "constant" else start * max(0.0, 1.0 - progress)
