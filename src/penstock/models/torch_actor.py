"""Any policy acting through torch, with NumPy at the door. Knows no environment and no slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from penstock.core.protocols import Acted
from penstock.core.specs import Array, EnvironmentSpec
from penstock.models.distributions import DiagonalGaussian
from penstock.models.flat import FlatParameters
from penstock.models.networks import ImageNetwork
from penstock.models.normaliser import Normaliser
from penstock.models.policy import Policy
from penstock.models.sampling import sampler_for
from penstock.models.settings import ModelSettings
from penstock.models.tensors import each, tensors_of


class TorchActor:
    """An Actor that runs the policy's own forward."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings, policy: Policy, device: str = "cpu") -> None:
        self.spec = spec
        self.device = torch.device(device)
        self.policy = policy.to(self.device).eval()
        self.flat = FlatParameters(policy)
        self.layout = self.flat.layout
        self.normaliser = Normaliser(spec, settings)
        self.sampler = sampler_for(spec)

    def load(self, weights: Array, statistics: Array) -> None:
        self.flat.published.copy_(torch.from_numpy(np.array(weights, np.float32)))
        if self.policy.log_std is not None:
            self.sampler.set_log_std(self.policy.log_std.detach()[:, None].cpu().numpy().copy())
        for part in self.policy.modules():
            if isinstance(part, ImageNetwork):
                part.settle()
        self.normaliser.load(statistics)

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        return self.sampler.noise(generator, steps, lanes)

    def act(self, observation: Array, noise: Array) -> Acted:
        parameters, value = self._forward(observation)
        action, log_prob = self.sampler.draw(parameters, noise)
        return Acted(action, log_prob, value)

    def best(self, observation: Array) -> Array:
        return self.sampler.mode(self._forward(observation)[0])

    def value(self, observation: Array) -> Array:
        return self._forward(observation)[1]

    def to_environment(self, action: Array) -> Array:
        return self.sampler.to_environment(action)

    @torch.no_grad()
    def _forward(self, observation: Array) -> tuple[Array, Array]:
        """Parameters as the sampler wants them, [n, B], and values [B]."""
        seen = each(self._there, tensors_of(self.normaliser.normalised(observation)))
        parameters, value = self.policy(seen)
        if self.policy.gives_deviations(parameters):
            distribution = self.policy.distribution(parameters)
            assert isinstance(distribution, DiagonalGaussian)
            self.sampler.set_log_std(distribution.log_std.cpu().numpy().T.copy())
            parameters = distribution.mean
        return parameters.cpu().numpy().T, value.cpu().numpy()

    def _there(self, tensor: Tensor) -> Tensor:
        """On the device; on a CPU where it lies."""
        return tensor.to(self.device)
