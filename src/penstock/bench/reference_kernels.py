"""What one core does with each part of a training loop when nothing waits and nothing is copied: plain, frozen code.

Pinned by its SHA-256 in tests/bench: whoever changes this file moves the bar that Penstock is measured against, and every
figure published before. Plain eager torch and NumPy as a textbook has them, neither tuned nor wasteful. Imports nothing of
Penstock, so that a slow update cannot lower its own bar.

A kernel is a function without arguments that does a piece of work and returns how many units of it were done.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import Tensor, nn

Kernel = Callable[[], int]

HIDDEN = 64
CLIP_RANGE, VF_COEF, MAX_GRAD_NORM, LEARNING_RATE, ADAM_EPS = 0.2, 0.5, 0.5, 3e-4, 1e-5


class TwoTowers(nn.Module):
    """Two hidden layers of 64 tanh units for the policy and as many for the value, sharing nothing."""

    def __init__(self, inputs: int, outputs: int, *, discrete: bool) -> None:
        super().__init__()
        self.discrete = discrete
        self.policy = _tower(inputs, outputs)
        self.value = _tower(inputs, 1)
        if not discrete:
            self.log_std = nn.Parameter(torch.zeros(outputs))

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        return self.policy(observation), self.value(observation).squeeze(1)

    def log_prob_and_entropy(self, parameters: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """Categorical over the outputs, or a diagonal Gaussian around them."""
        if self.discrete:
            log_probs = torch.log_softmax(parameters, 1)
            chosen = log_probs.gather(1, action.unsqueeze(1)).squeeze(1)
            return chosen, -(log_probs.exp() * log_probs).sum(1).mean()
        deviation = (action - parameters) / self.log_std.exp()
        constant = 0.5 * float(np.log(2 * np.pi))
        return (-0.5 * deviation**2 - self.log_std - constant).sum(1), (self.log_std + constant + 0.5).sum()


def _tower(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(inputs, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, outputs))


def ppo_update(inputs: int, outputs: int, rows: int, *, discrete: bool) -> Kernel:
    """One PPO minibatch: forward, clipped surrogate, value error, entropy, backward, norm clip, Adam. Counts rows."""
    torch.manual_seed(0)
    network = TwoTowers(inputs, outputs, discrete=discrete)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, eps=ADAM_EPS)
    observation = torch.randn(rows, inputs)
    action = torch.randint(0, outputs, (rows,)) if discrete else torch.randn(rows, outputs)
    advantage, target = torch.randn(rows), torch.randn(rows)
    with torch.no_grad():
        recorded, _ = network.log_prob_and_entropy(network(observation)[0], action)

    def update() -> int:
        parameters, value = network(observation)
        log_prob, entropy = network.log_prob_and_entropy(parameters, action)
        normalized = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (log_prob - recorded).exp()
        clipped = ratio.clamp(1 - CLIP_RANGE, 1 + CLIP_RANGE)
        policy_loss = -torch.minimum(ratio * normalized, clipped * normalized).mean()
        loss = policy_loss + VF_COEF * nn.functional.mse_loss(value, target) - 0.0 * entropy
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        return rows

    return update


def torch_forward(inputs: int, outputs: int, rows: int) -> Kernel:
    """Both towers, without gradients. Counts rows."""
    network = TwoTowers(inputs, outputs, discrete=True)
    observation = torch.randn(rows, inputs)

    def forward() -> int:
        with torch.inference_mode():
            network(observation)
        return rows

    return forward


def numpy_forward(inputs: int, outputs: int, rows: int) -> Kernel:
    """The same two towers in NumPy. Counts rows."""
    network = TwoTowers(inputs, outputs, discrete=True)
    towers = [
        [
            (layer.weight.detach().numpy().T.copy(), layer.bias.detach().numpy())
            for layer in tower
            if isinstance(layer, nn.Linear)
        ]
        for tower in (network.policy, network.value)
    ]
    observation = np.random.default_rng(0).standard_normal((rows, inputs)).astype(np.float32)

    def forward() -> int:
        for (first, first_bias), (second, second_bias), (head, head_bias) in towers:
            hidden = np.tanh(observation @ first + first_bias)
            hidden = np.tanh(hidden @ second + second_bias)
            _ = hidden @ head + head_bias
        return rows

    return forward


def plain_environment(env_id: str, steps: int) -> Kernel:
    """One environment under random actions, reset at each end. Counts steps."""
    environment: Any = gymnasium.make(env_id, disable_env_checker=True)
    environment.action_space.seed(0)
    actions = [environment.action_space.sample() for _ in range(steps)]
    environment.reset(seed=0)

    def run() -> int:
        for action in actions:
            _, _, terminated, truncated, _ = environment.step(action)
            if terminated or truncated:
                environment.reset()
        return steps

    return run


def has_vector_form(env_id: str) -> bool:
    """Whether the environment comes with a vector form of its own."""
    return gymnasium.spec(env_id).vector_entry_point is not None


def vector_environment(env_id: str, lanes: int, steps: int) -> Kernel:
    """The environment's own vector form under random actions. Counts steps that are no resets."""
    environment: Any = gymnasium.make_vec(env_id, num_envs=lanes, vectorization_mode="vector_entry_point")
    environment.action_space.seed(0)
    actions = [environment.action_space.sample() for _ in range(steps)]
    environment.reset(seed=0)
    ended = np.zeros(lanes, bool)

    def run() -> int:
        nonlocal ended
        counted = 0
        for action in actions:
            counted += lanes - int(np.count_nonzero(ended))
            _, _, terminated, truncated, _ = environment.step(action)
            ended = terminated | truncated
        return counted

    return run


def matrix_product(size: int, dtype: torch.dtype) -> Kernel:
    """A square matrix product. Counts floating-point operations."""
    torch.manual_seed(0)
    left, right = torch.randn(size, size).to(dtype), torch.randn(size, size).to(dtype)
    result = torch.empty(size, size, dtype=dtype)

    def multiply() -> int:
        torch.mm(left, right, out=result)
        return 2 * size**3

    return multiply


def forward_operations(inputs: int, outputs: int) -> int:
    """Floating-point operations of the products in one row's forward pass through both towers."""
    return 2 * sum(inputs * HIDDEN + HIDDEN * HIDDEN + HIDDEN * last for last in (outputs, 1))


def update_operations(inputs: int, outputs: int) -> int:
    """The same for a row's part of an update: forward, gradient of weights, gradient of inputs (not of the first layer)."""
    return 3 * forward_operations(inputs, outputs) - 2 * 2 * inputs * HIDDEN
