"""A trained policy for use: one observation or a batch in, actions out, NumPy at both ends. Needs no run and no config.

It reads a checkpoint and nothing else. torch is loaded only for a network of the person's own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from penstock.checkpoint import files
from penstock.core.errors import BadCheckpoint, Refused
from penstock.core.protocols import Actor
from penstock.core.specs import Array, BoxSpec, CompositeSpec, EnvironmentSpec, Place, Space, from_plain, leaves
from penstock.envs.rows import fitted
from penstock.models.actor import build_actor
from penstock.models.settings import ModelSettings

STATISTICS = "normaliser.statistics"
Trust = Collection[str]
"""Modules whose code may be run because a checkpoint names it, or EVERYTHING."""
EVERYTHING: Final[Trust] = frozenset({"*"})


@dataclass(frozen=True)
class Policy:
    """Call it with an observation, or with a batch of them."""

    actor: Actor
    spec: EnvironmentSpec
    version: int
    about: dict[str, Any]

    def __call__(self, observation: Any, deterministic: bool = True, *, seed: int | None = None) -> Any:
        """The action for one observation, or the actions for a batch, as the environment takes them."""
        batch, single = self._rows(observation)
        actions = self.actor.to_environment(self._choose(batch, deterministic, seed))
        return as_taken(self.spec.action, actions[0] if single else actions)

    def _rows(self, observation: Any) -> tuple[Array, bool]:
        """As slots hold them, and whether it is one observation, not a batch."""
        space = self.spec.observation
        first = next(leaves(space))
        found = np.asarray(_leaf_of(observation, first))
        single = found.ndim == len(first.leaf.shape)
        lanes = () if single else found.shape[:1]
        try:
            rows = fitted(observation if isinstance(space, CompositeSpec) else _cast(found, space), space, lanes=lanes)
        except ValueError as error:
            advice = f"an observation has shape {space.shape}, a batch one axis more" if space.shape else "see its spec"
            raise Refused(f"{error}; {advice}") from error
        return (rows[None] if single else rows), single

    def _choose(self, batch: Array, deterministic: bool, seed: int | None) -> Array:
        if deterministic:
            return self.actor.best(batch)
        noise = self.actor.noise(np.random.default_rng(seed), 1, len(batch))
        return self.actor.act(batch, noise[0]).action


def _cast(found: Array, space: Space) -> Array:
    """Numbers of any kind are taken for those of a Box."""
    return found.astype(space.dtype) if isinstance(space, BoxSpec) else found


def _leaf_of(observation: Any, place: Place) -> Any:
    """The part of an observation, as an environment gives it, that lies at this place."""
    for name in place.path:
        try:
            observation = observation[name if isinstance(observation, Mapping) else int(name)]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise Refused(f"the observation has no part '{place.name}'") from error
    return observation


def as_taken(space: Space, actions: Array) -> Any:
    """Actions as an environment takes them: parts of a Dict or Tuple apart, a number or an array each."""
    if not isinstance(space, CompositeSpec):
        return actions
    parts = [as_taken(part, actions[name]) for name, part in zip(space.names, space.parts, strict=True)]
    return tuple(parts) if space.kind == "tuple" else dict(zip(space.names, parts, strict=True))


def load_policy(run_dir: Path, *, version: int | None = None, model: Any = None, trust: Trust = ()) -> Policy:
    """The policy of a run's newest checkpoint, or of one version. `model`: the class, where a script defined it.

    A checkpoint may name code: an environment, wrappers, a network. None of it is run unless its module is in `trust`
    (or below one that is); EVERYTHING is for runs that this very process has made.
    """
    path = files.newest(run_dir) if version is None else run_dir / "checkpoints" / str(version)
    if version is not None and not path.is_dir():
        there = ", ".join(map(str, files.versions(run_dir / "checkpoints"))) or "none"
        raise Refused(f"{run_dir} has no checkpoint of version {version}; there are: {there}")
    stored = files.load(path)
    try:
        about = stored.state["policy"]
        spec = from_plain(about["spec"])
        settings = ModelSettings(**{**about["model"], "hidden_sizes": tuple(about["model"]["hidden_sizes"])})
        in_script = bool(about["defined_in_script"]["model"])
    except (KeyError, TypeError, ValueError) as error:
        raise BadCheckpoint(f"{path} does not describe a policy: {type(error).__name__} {error}") from error
    if in_script and model is None:
        raise Refused(f"the network of {run_dir} was defined in a script; use penstock.load({str(run_dir)!r}, model=TheClass)")
    if settings.custom is not None and model is None:
        demand_trust(run_dir, settings.custom, trust)
    actor = build_actor(spec, settings, "auto", model, int(about.get("seed", 0)))
    _load_weights(actor, stored, path)
    return Policy(actor, spec, stored.version, about)


def demand_trust(run_dir: Path, named: str, trust: Trust) -> None:
    """Refuse to run code that a checkpoint names, "module:Name", unless the person has said that it may be."""
    if ":" not in named or trust is EVERYTHING:
        return
    module = named.rpartition(":")[0]
    if not any(module == trusted or module.startswith(f"{trusted}.") for trusted in trust):
        raise Refused(
            f"{run_dir} wants to run code of the module '{module}' ({named}); if you trust it: --trust {module}, "
            f"or trust=[{module!r}] in Python"
        )


def _load_weights(actor: Any, stored: files.Checkpoint, path: Path) -> None:
    """The parameters in the order of the actor's flat vector."""
    for place in actor.layout.places:
        found = stored.model.get(place.name)
        if found is None or found.shape != place.shape:
            there = "is missing" if found is None else f"has shape {found.shape}"
            raise BadCheckpoint(f"{path} does not fit its own description: '{place.name}' of shape {place.shape} {there}")
    statistics = stored.model.get(STATISTICS)
    if statistics is None or statistics.shape != (actor.normaliser.size,):
        raise BadCheckpoint(f"{path} does not fit its own description: its normaliser's statistics are of another size")
    weights = [stored.model[place.name].ravel() for place in actor.layout.places]
    actor.load(np.concatenate(weights), statistics)
