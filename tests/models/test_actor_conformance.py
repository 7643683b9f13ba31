"""Every actor passes the exam, and the exam fails actors that are broken in the ways that matter."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from model_specimens import CHOICES, EVERY, MOTORS, PLACES
from torch import nn

from penstock.core.protocols import Acted, Actor
from penstock.core.specs import Array, EnvironmentSpec
from penstock.models.actor import build_actor
from penstock.models.settings import ModelSettings
from penstock.testing.actor import check_actor

LANES = 7


class Features(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 6)

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(observation))


def observations(spec: EnvironmentSpec) -> Array:
    if spec is PLACES:
        return np.arange(LANES)
    return np.random.default_rng(2).normal(0.5, 2.0, (LANES, 5)).astype(np.float32)


def examine(spec: EnvironmentSpec, make: Any, settings: ModelSettings) -> None:
    actor = build_actor(spec, settings, custom=Features if make is custom else None)
    weights = np.random.default_rng(4).normal(0, 0.4, actor.layout.size).astype(np.float32)  # type: ignore[attr-defined]  # both have one
    statistics = actor.normaliser.initial()  # type: ignore[attr-defined]  # both have one
    check_actor(lambda: make(spec, settings), spec, observations(spec), weights, statistics)


def numpy_actor(spec: EnvironmentSpec, settings: ModelSettings) -> Actor:
    return build_actor(spec, settings, "numpy")


def torch_actor(spec: EnvironmentSpec, settings: ModelSettings) -> Actor:
    return build_actor(spec, settings, "torch")


def custom(spec: EnvironmentSpec, settings: ModelSettings) -> Actor:
    return build_actor(spec, settings, custom=Features)


@pytest.mark.parametrize("spec", EVERY, ids=lambda spec: spec.id)
@pytest.mark.parametrize("make", [numpy_actor, torch_actor])
def test_built_in_actors_conform(spec: EnvironmentSpec, make: Any) -> None:
    examine(spec, make, ModelSettings())


@pytest.mark.parametrize("spec", [CHOICES, MOTORS], ids=lambda spec: spec.id)
def test_normalising_and_a_network_of_ones_own_conform(spec: EnvironmentSpec) -> None:
    examine(spec, numpy_actor, ModelSettings(normalize_observation=True, activation="relu"))
    examine(spec, custom, ModelSettings())


class Broken:
    """A sound actor with one law broken."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        self.sound: Any = build_actor(spec, settings, "numpy")

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sound, name)


class MixesRows(Broken):
    def act(self, observation: Array, noise: Array) -> Acted:
        return self.sound.act(observation - observation.mean(0), noise)


class DrawsByItself(Broken):
    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        return self.sound.noise(np.random.default_rng(), steps, lanes)


class ReusesItsArrays(Broken):
    kept: Array | None = None

    def act(self, observation: Array, noise: Array) -> Acted:
        acted = self.sound.act(observation, noise)
        if self.kept is None:
            self.kept = acted.value
        self.kept[:] = acted.value
        return replace(acted, value=self.kept)


class BootstrapsWithAnother(Broken):
    def value(self, observation: Array) -> Array:
        return self.sound.value(observation) + np.float32(1e-6)


class KeepsTheCallersWeights(Broken):
    def load(self, weights: Array, statistics: Array) -> None:
        self.weights, self.statistics = weights, statistics

    def act(self, observation: Array, noise: Array) -> Acted:
        self.sound.load(self.weights, self.statistics)
        return self.sound.act(observation, noise)

    def value(self, observation: Array) -> Array:
        self.sound.load(self.weights, self.statistics)
        return self.sound.value(observation)

    def best(self, observation: Array) -> Array:
        self.sound.load(self.weights, self.statistics)
        return self.sound.best(observation)


class LoadsOnlyOnce(Broken):
    loaded = False

    def load(self, weights: Array, statistics: Array) -> None:
        if not self.loaded:
            self.sound.load(weights, statistics)
        self.loaded = True


class DoesNotClip(Broken):
    def to_environment(self, action: Array) -> Array:
        return action * 100.0


class ForgetsTheStart(Broken):
    def to_environment(self, action: Array) -> Array:
        return action


class Wanders(Broken):
    drawn = 0

    def act(self, observation: Array, noise: Array) -> Acted:
        self.drawn += 1
        return self.sound.act(observation, noise)

    def best(self, observation: Array) -> Array:
        return (self.sound.best(observation) + self.drawn) % 3


@pytest.mark.parametrize(
    ("broken", "spec", "law"),
    [
        (MixesRows, CHOICES, "depends on other rows"),
        (DrawsByItself, CHOICES, "noise depends on more than the generator"),
        (ReusesItsArrays, CHOICES, "overwrote what an earlier one returned"),
        (BootstrapsWithAnother, CHOICES, "is not the value that act"),
        (KeepsTheCallersWeights, CHOICES, "instead of copying"),
        (LoadsOnlyOnce, CHOICES, "does not replace the weights"),
        (DoesNotClip, MOTORS, "what the environment does not take"),
        (ForgetsTheStart, CHOICES, "what the environment does not take"),
        (Wanders, CHOICES, "depends on what was drawn before"),
    ],
)
def test_the_exam_fails_broken_actors(broken: Any, spec: EnvironmentSpec, law: str) -> None:
    with pytest.raises(AssertionError, match=law):
        examine(spec, partial(broken), ModelSettings())
