"""The exam for implementations of `core.protocols.Actor`.

    check_actor(make_actor, observations, weights, statistics)

`make_actor` builds a fresh actor for one environment, `observations` [B, ...] are rows as that environment gives them (a
whole number less its start where they are Discrete), no two alike; `weights` and `statistics` are what it is to load. Fails
with an AssertionError that says which law was broken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from penstock.core.protocols import Acted, Actor
from penstock.core.seeds import Purpose, stream
from penstock.core.specs import (
    Array,
    BoxSpec,
    DiscreteSpec,
    EnvironmentSpec,
    Leaf,
    MaskSpec,
    MultiDiscreteSpec,
    leaves,
    parts_of,
)

STEPS = 3
FIELDS = ("action", "log_prob", "value")

MakeActor = Callable[[], Actor]


def check_actor(make_actor: MakeActor, spec: EnvironmentSpec, observations: Array, weights: Array, statistics: Array) -> None:
    """Every law of the Protocol that can be seen from outside."""
    actor = make_actor()
    actor.load(weights, statistics)
    noise = _noise(actor, len(observations))
    _check_rows(actor, spec, observations, noise)
    _check_repeatable(actor, make_actor, observations, weights, statistics)
    _check_rows_are_independent(actor, observations, noise)
    _check_results_are_kept(actor, observations, noise)
    _check_value_is_one_number(actor, observations, noise)
    _check_noise_decides(actor, observations, noise)
    _check_load_copies(make_actor(), observations, weights, statistics)


def _noise(actor: Actor, lanes: int) -> Array:
    return actor.noise(stream(1, Purpose.ACTION, 0, 0), STEPS, lanes)


def _check_rows(actor: Actor, spec: EnvironmentSpec, observations: Array, noise: Array) -> None:
    lanes = len(observations)
    assert noise.shape[:2] == (STEPS, lanes), f"noise has shape {noise.shape}, not ({STEPS}, {lanes}, ...)"
    acted = actor.act(observations, noise[0])
    assert acted.action.shape == (lanes, *spec.action.shape), f"actions have shape {acted.action.shape}"
    assert acted.log_prob.shape == (lanes,), f"log-probabilities have shape {acted.log_prob.shape}, not ({lanes},)"
    assert acted.value.shape == (lanes,), f"values have shape {acted.value.shape}, not ({lanes},)"
    for name in FIELDS:
        finite = all(np.isfinite(part).all() for _, part in parts_of(getattr(acted, name)))
        assert finite, f"{name} is not finite"
    for given in (actor.to_environment(acted.action), actor.to_environment(actor.best(observations))):
        assert _fits(spec, given), "to_environment gives what the environment does not take"


def _fits(spec: EnvironmentSpec, action: Array) -> bool:
    return all(_leaf_fits(place.leaf, place.of(action)) for place in leaves(spec.action))


def _leaf_fits(leaf: Leaf, action: Array) -> bool:
    match leaf:
        case BoxSpec():
            low, high = leaf.bounds
            return bool((action >= low).all() and (action <= high).all())
        case DiscreteSpec(n, start):
            return bool((action >= start).all() and (action < start + n).all())
        case MultiDiscreteSpec(counts, start):
            first = np.reshape(start, leaf.shape)
            return bool((action >= first).all() and (action < first + np.reshape(counts, leaf.shape)).all())
        case MaskSpec():
            return False


def _check_repeatable(actor: Actor, make_actor: MakeActor, observations: Array, weights: Array, statistics: Array) -> None:
    lanes = len(observations)
    assert np.array_equal(_noise(actor, lanes), _noise(actor, lanes)), "noise depends on more than the generator"
    other = make_actor()
    other.load(weights, statistics)
    _same(
        actor.act(observations, _noise(actor, lanes)[0]),
        other.act(observations, _noise(other, lanes)[0]),
        "two actors with the same weights act differently",
    )


def _check_rows_are_independent(actor: Actor, observations: Array, noise: Array) -> None:
    """To the last bit: what drifting lanes and fixed shapes rely on."""
    whole = actor.act(observations, noise[0])
    for lane in range(len(observations)):
        others, other_noise = np.roll(observations, 1, axis=0), noise[1].copy()
        others[lane], other_noise[lane] = observations[lane], noise[0][lane]
        alone = actor.act(others, other_noise)
        for name in FIELDS:
            same = np.array_equal(getattr(alone, name)[lane], getattr(whole, name)[lane])
            assert same, f"{name} of row {lane} depends on other rows"


def _check_results_are_kept(actor: Actor, observations: Array, noise: Array) -> None:
    first = actor.act(observations, noise[0])
    kept = Acted(*(getattr(first, name).copy() for name in FIELDS))
    actor.act(np.roll(observations, 1, axis=0), noise[1])
    _same(first, kept, "a later call overwrote what an earlier one returned")


def _check_value_is_one_number(actor: Actor, observations: Array, noise: Array) -> None:
    """A bootstrap must be the value that acting in the same state records."""
    acted = actor.act(observations, noise[0])
    assert np.array_equal(actor.value(observations), acted.value), "value() is not the value that act() records"


def _check_noise_decides(actor: Actor, observations: Array, noise: Array) -> None:
    best = actor.best(observations)
    actor.act(observations, noise[2])
    assert np.array_equal(actor.best(observations), best), "best() depends on what was drawn before"


def _check_load_copies(actor: Actor, observations: Array, weights: Array, statistics: Array) -> None:
    own_weights, own_statistics = weights.copy(), statistics.copy()
    actor.load(own_weights, own_statistics)
    before = actor.value(observations).copy()
    own_weights[:], own_statistics[:] = 0.0, 1.0
    assert np.array_equal(actor.value(observations), before), "load keeps the caller's arrays instead of copying them"
    actor.load(weights * np.float32(0.5), statistics)
    assert not np.array_equal(actor.value(observations), before), "load does not replace the weights"


def _same(one: Acted, other: Acted, law: str) -> None:
    for name in FIELDS:
        assert np.array_equal(getattr(one, name), getattr(other, name)), f"{law} ({name})"
