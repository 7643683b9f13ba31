"""The parts of a training loop on images: plain, frozen code, as `reference_kernels` has them for small networks.

Pinned by its SHA-256 in tests/bench: whoever changes this file moves the bar that Penstock is measured against. Plain eager
torch, in each of the ways in which images may lie in memory. Imports nothing of Penstock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

Kernel = Callable[[], int]

SIDE, FRAMES, FEATURES = 84, 4, 512
CONVOLUTIONS = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Channels, side of the kernel, stride (Mnih et al. 2015)."""
CLIP_RANGE, VF_COEF, ENT_COEF, MAX_GRAD_NORM, LEARNING_RATE, ADAM_EPS = 0.1, 0.5, 0.01, 0.5, 2.5e-4, 1e-5


class Nature(nn.Module):
    """Three convolutions and a layer of features under a policy head and a value head."""

    def __init__(self, actions: int, *, channels_last: bool, half: bool) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs, side = FRAMES, SIDE
        for outputs, kernel, stride in CONVOLUTIONS:
            layers += [nn.Conv2d(inputs, outputs, kernel, stride), nn.ReLU()]
            inputs, side = outputs, (side - kernel) // stride + 1
        self.body = nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * side * side, FEATURES), nn.ReLU())
        self.policy, self.value = nn.Linear(FEATURES, actions), nn.Linear(FEATURES, 1)
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.half_precision = half
        if channels_last:
            self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs leave it out

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", torch.bfloat16, enabled=self.half_precision):
            features = self.body(image.to(torch.float32, memory_format=self.memory_format) / 255.0)
        features = features.float()
        return self.policy(features), self.value(features).squeeze(1)


def nature_update(actions: int, rows: int, *, channels_last: bool, half: bool) -> Kernel:
    """One PPO minibatch of images: forward, clipped surrogate, value error, entropy, backward, norm clip, Adam. Counts rows."""
    torch.manual_seed(0)
    network = Nature(actions, channels_last=channels_last, half=half)
    optimizer = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE, eps=ADAM_EPS)
    image = torch.randint(0, 256, (rows, FRAMES, SIDE, SIDE), dtype=torch.uint8)
    action, advantage, target = torch.randint(0, actions, (rows, 1)), torch.randn(rows), torch.randn(rows)
    with torch.no_grad():
        recorded = torch.log_softmax(network(image)[0], 1).gather(1, action).squeeze(1)

    def update() -> int:
        logits, value = network(image)
        log_probs = torch.log_softmax(logits, 1)
        normalized = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        ratio = (log_probs.gather(1, action).squeeze(1) - recorded).exp()
        clipped = ratio.clamp(1 - CLIP_RANGE, 1 + CLIP_RANGE)
        policy_loss = -torch.minimum(ratio * normalized, clipped * normalized).mean()
        entropy = -(log_probs.exp() * log_probs).sum(1).mean()
        loss = policy_loss + VF_COEF * nn.functional.mse_loss(value, target) - ENT_COEF * entropy
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(network.parameters(), MAX_GRAD_NORM)
        optimizer.step()
        return rows

    return update


def nature_forward(actions: int, rows: int, *, channels_last: bool, half: bool) -> Kernel:
    """Policy and value of images, without gradients. Counts rows."""
    network = Nature(actions, channels_last=channels_last, half=half)
    image = torch.randint(0, 256, (rows, FRAMES, SIDE, SIDE), dtype=torch.uint8)

    def forward() -> int:
        with torch.inference_mode():
            network(image)
        return rows

    return forward


def arcade_vector(game: str, lanes: int, steps: int) -> Kernel:
    """ALE's own vector environment on one thread under random actions, frames skipped, stacked and scaled. Counts steps."""
    from ale_py.vector_env import AtariVectorEnv

    environment: Any = AtariVectorEnv(game, lanes, num_threads=1, repeat_action_probability=0.0, reward_clipping=False)
    random = np.random.default_rng(0)
    actions = random.integers(0, environment.single_action_space.n, (steps, lanes))
    environment.reset(seed=0)

    def run() -> int:
        for action in actions:
            environment.step(action)
        return steps * lanes

    return run


def forward_operations(actions: int) -> int:
    """Floating-point operations of the products in one image's forward pass."""
    total, inputs, side = 0, FRAMES, SIDE
    for outputs, kernel, stride in CONVOLUTIONS:
        side = (side - kernel) // stride + 1
        total += 2 * side * side * outputs * kernel * kernel * inputs
        inputs = outputs
    return total + 2 * inputs * side * side * FEATURES + 2 * FEATURES * (actions + 1)


def update_operations(actions: int) -> int:
    """The same for a row's part of an update: forward, gradient of weights, gradient of inputs (not of the first layer)."""
    outputs, kernel, stride = CONVOLUTIONS[0]
    side = (SIDE - kernel) // stride + 1
    return 3 * forward_operations(actions) - 2 * side * side * outputs * kernel * kernel * FRAMES
