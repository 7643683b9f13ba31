"""Which actor a policy gets. Loads torch only where the choice needs it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from penstock.core.errors import Refused
from penstock.core.loading import load_object
from penstock.core.protocols import Actor
from penstock.core.specs import EnvironmentSpec
from penstock.models.numpy_actor import NumpyActor
from penstock.models.settings import ModelSettings

Backend = Literal["auto", "numpy", "torch"]


def build_actor(
    spec: EnvironmentSpec,
    settings: ModelSettings,
    backend: Backend = "auto",
    custom: Any = None,
    seed: int = 0,
    device: str = "cpu",
) -> Actor:
    """An actor without weights yet; `auto` is NumPy for the built-in policy and torch for a person's own module.

    `custom` is a module class handed over as itself; it goes before `settings.custom`, its name. `seed` is the run's: what a
    module draws when it is made, and does not count as its weights, is then what the learner's drew.
    `device` is where torch acts; NumPy acts where it is.
    """
    towers = custom is None and settings.custom is None and not settings.convolves(spec)
    if backend == "numpy" and not towers:
        raise Refused("compute.backend numpy runs the built-in mlp only; other networks need torch or auto")
    if backend == "numpy" or (backend == "auto" and towers):
        return NumpyActor(spec, settings)
    policy = load_object("penstock.models.policy:build_policy")(spec, settings, seed, custom)
    torch_actor: Callable[..., Actor] = load_object("penstock.models.torch_actor:TorchActor")
    return torch_actor(spec, settings, policy, device)
