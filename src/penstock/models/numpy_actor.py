"""The built-in policy acting in NumPy: the sampler's hot path. Knows no tensor library, environment or slot.

For a block of 32 lanes the products take a few microseconds and every NumPy call about one, so calls are what counts:
both towers run as one stack of matrices, biases ride along with a row of ones, lanes are the columns so that reductions
over units or choices run along them, and buffers are kept per block size.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from penstock.core.protocols import Acted
from penstock.core.specs import MASK, Array, BoxSpec, EnvironmentSpec
from penstock.models.features import action_size, box_size, observation_size, placed_columns, write_columns
from penstock.models.layout import mlp_layout
from penstock.models.normaliser import Normaliser
from penstock.models.sampling import FORBIDDEN, sampler_for
from penstock.models.settings import ModelSettings


class Buffers:
    """What one forward of B lanes needs. Every input of a product ends in a row of ones, for the bias."""

    def __init__(self, lanes: int, columns: int, settings: ModelSettings, outputs: int) -> None:
        self.observation = np.ones((columns + 1, lanes), np.float32)
        self.features = self.observation[:columns].T
        inputs = [np.ones((2, width + 1, lanes), np.float32) for width in settings.hidden_sizes]
        self.hidden = [(h, h[:, :-1]) for h in inputs]
        self.output = np.empty((2, outputs, lanes), np.float32)


class NumpyActor:
    """An Actor for `TowerPolicy`'s weights. The arrays it returns are fresh at every call: the caller's to keep."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        self.spec = spec
        self.settings = settings
        self.layout = mlp_layout(spec, settings)
        self.normaliser = Normaliser(spec, settings)
        self.sampler = sampler_for(spec)
        self._columns, self._outputs = observation_size(spec), action_size(spec)
        widths = (self._columns, *settings.hidden_sizes, self._outputs)
        self._stacks = [np.zeros((2, o, i + 1), np.float32) for i, o in pairwise(widths)]
        self._buffers: dict[int, Buffers] = {}
        self._places = list(placed_columns(spec))

    def load(self, weights: Array, statistics: Array) -> None:
        """Copy flat weights into stacks of [policy, value], bias beside weight; the value's spare rows stay 0."""
        named = self.layout.views(weights)
        for index, stack in enumerate(self._stacks):
            for tower, name in enumerate(("policy", "value")):
                weight, bias = named[f"{name}.{index}.weight"], named[f"{name}.{index}.bias"]
                stack[tower, : len(bias), :-1] = weight
                stack[tower, : len(bias), -1] = bias
        if box_size(self.spec):
            self.sampler.set_log_std(named["log_std"][:, None].copy())
        self.normaliser.load(statistics)

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        return self.sampler.noise(generator, steps, lanes)

    def act(self, observation: Array, noise: Array) -> Acted:
        output = self._forward(observation)
        action, log_prob = self.sampler.draw(output[0], noise)
        return Acted(action, log_prob, output[1, 0].copy())

    def best(self, observation: Array) -> Array:
        return self.sampler.mode(self._forward(observation)[0])

    def value(self, observation: Array) -> Array:
        value: Array = self._forward(observation)[1, 0].copy()
        return value

    def to_environment(self, action: Array) -> Array:
        return self.sampler.to_environment(action)

    def _forward(self, observation: Array) -> Array:
        """[2, n, B]: the distribution's parameters, then the value in the first row."""
        buffers = self._buffers.get(len(observation))
        if buffers is None:
            buffers = Buffers(len(observation), self._columns, self.settings, self._outputs)
            self._buffers[len(observation)] = buffers
        self._read(observation, buffers)
        inputs: Array = buffers.observation
        for stack, (whole, without_ones) in zip(self._stacks, buffers.hidden, strict=False):
            np.matmul(stack, inputs, out=without_ones)
            if self.settings.activation == "tanh":
                np.tanh(without_ones, out=without_ones)
            else:
                np.maximum(without_ones, 0.0, out=without_ones)
            inputs = whole
        output = np.matmul(self._stacks[-1], inputs, out=buffers.output)
        if self.spec.masked:
            np.copyto(output[0], FORBIDDEN, where=~observation[MASK].T)
        return output

    def _read(self, observation: Array, buffers: Buffers) -> None:
        for place, columns in self._places:
            rows, out = place.of(observation), buffers.features[:, columns]
            if isinstance(place.leaf, BoxSpec):
                self.normaliser.scale(place.name, rows, out)
            else:
                write_columns(place.leaf, rows, out)
