"""Any policy acting through torch, with NumPy at the door. Knows no environment and no slot."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from penstock.core.protocols import Acted
from penstock.core.specs import Array, BoxSpec, EnvironmentSpec
from penstock.models.distributions import DiagonalGaussian
from penstock.models.flat import FlatParameters
from penstock.models.normaliser import Normaliser
from penstock.models.policy import Policy
from penstock.models.sampling import GaussianSampler, sampler_for
from penstock.models.settings import ModelSettings


class TorchActor:
    """An Actor that runs the policy's own forward."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings, policy: Policy) -> None:
        self.spec = spec
        self.policy = policy.eval()
        self.flat = FlatParameters(policy)
        self.layout = self.flat.layout
        self.normaliser = Normaliser(spec, settings)
        self.sampler = sampler_for(spec)

    def load(self, weights: Array, statistics: Array) -> None:
        self.flat.published.copy_(torch.from_numpy(np.array(weights, np.float32)))
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
        parameters, value = self.policy(torch.from_numpy(self._read(observation)))
        distribution = self.policy.distribution(parameters)
        if isinstance(distribution, DiagonalGaussian) and isinstance(self.sampler, GaussianSampler):
            log_std = distribution.log_std.reshape(-1, distribution.mean.shape[1])
            self.sampler.set_log_std(log_std.numpy().T.copy())
            parameters = distribution.mean
        return parameters.numpy().T, value.numpy()

    def _read(self, observation: Array) -> Array:
        if not isinstance(self.spec.observation, BoxSpec):
            return np.array(observation)
        rows = np.empty(observation.shape, np.float32)
        self.normaliser.normalise_observations(observation, rows)
        return rows
