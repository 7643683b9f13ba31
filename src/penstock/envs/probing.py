"""Looks at one environment before anything is started: what it is, whether it works, how long a step takes.

What it finds wrong is refused in one line. Knows no block, no lane and no process.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.errors import PenstockError, Refused
from penstock.core.seeds import Purpose, derived_seed
from penstock.core.specs import MASK, CompositeSpec, EnvironmentSpec
from penstock.envs.faults import failures
from penstock.envs.making import EnvironmentMaker
from penstock.envs.masks import masked, offers_masks, random_action, with_mask
from penstock.envs.quiet import quiet
from penstock.envs.refusals import one_line, traceback_of
from penstock.envs.rows import all_finite, fitted
from penstock.envs.settings import EnvSettings

_STEPS = 20
_BUDGET_S = 0.1


@dataclass(frozen=True)
class Probe:
    """What is known of an environment before the run starts."""

    spec: EnvironmentSpec
    vector: bool
    """Whether it has a vectorised form that can be used as it is asked for."""
    step_s: float
    """Median seconds a step of one instance takes."""
    hidden_state: bool = False
    """Whether its vectorised form keeps to itself where its lanes stand, so that none can be put there again."""


def probe(maker: EnvironmentMaker, settings: EnvSettings) -> Probe:
    """Make one, check it, step it a little, close it."""
    with quiet():
        environment = maker()
        _check_kind(environment, maker.name)
        try:
            spec, step_s = _tried(environment, _spec_of(environment, maker.name))
        finally:
            with suppress(Exception):  # how it tidies up decides nothing
                environment.close()
        wanted = settings.parallel in ("auto", "vector")
        vector = _vector_form(maker, spec) if wanted else None
        return Probe(spec, vector is not None, step_s, vector is not None and bool(vector.get("hidden_state")))


def _spec_of(environment: Any, name: str) -> EnvironmentSpec:
    from penstock.envs.spaces import spec_of

    try:
        return spec_of(environment, name)
    except PenstockError:
        raise
    except failures() as error:
        raise Refused(
            f"environment '{name}' does not say what it is: {one_line(error)}", details=traceback_of(error)
        ) from error


def _check_kind(environment: Any, name: str) -> None:
    import gymnasium

    if isinstance(environment, gymnasium.vector.VectorEnv):
        raise Refused(f"environment '{name}' is vectorised already; name the single one, Penstock makes the lanes")
    if not isinstance(environment, gymnasium.Env):
        made = f"{type(environment).__module__}.{type(environment).__qualname__}"
        raise Refused(f"environment '{name}' is a {made}, not a gymnasium.Env; derive it from gymnasium.Env")
    culprit = _what_resets(environment)
    if culprit is not None:
        raise Refused(f"environment '{name}' resets itself ({type(culprit).__name__}); remove that, Penstock resets it")


def _what_resets(environment: Any) -> Any:
    """The layer that starts episodes by itself: Gymnasium's wrapper, or an environment that says so in its metadata."""
    import gymnasium

    disabled = gymnasium.vector.AutoresetMode.DISABLED
    declared = (environment.unwrapped.metadata or {}).get("autoreset_mode", disabled)
    if declared not in (disabled, disabled.value):
        return environment.unwrapped
    layer = environment
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, gymnasium.wrappers.Autoreset):
            return layer
        layer = layer.env
    return None


def _tried(environment: Any, spec: EnvironmentSpec) -> tuple[EnvironmentSpec, float]:
    """The spec, with the mask that shows in a reset, and the median seconds of at least one step, a moment's worth at most."""
    seed = derived_seed(0, Purpose.PROBE)
    trial = _Trial(environment, spec, seed)
    took: list[float] = []
    try:
        trial.reset(seed)
        deadline = time.monotonic() + _BUDGET_S
        while len(took) < _STEPS and (not took or time.monotonic() < deadline):
            took.append(trial.step_s())
            if trial.over:
                trial.reset(None)
    except PenstockError:
        raise
    except failures() as error:
        cause = f"environment '{spec.id}' fails in {trial.doing}: {one_line(error)}"
        raise Refused(cause, details=traceback_of(error)) from error
    return trial.spec, statistics.median(took)


class _Trial:
    """An environment that is stepped with random actions, and checked after each step."""

    def __init__(self, environment: Any, spec: EnvironmentSpec, seed: int) -> None:
        self.spec, self.doing, self.over = spec, "reset", False
        self._environment, self._random = environment, np.random.default_rng(seed)
        environment.action_space.seed(seed)

    def reset(self, seed: int | None) -> None:
        self.doing = "reset"
        observation, info = self._environment.reset(seed=seed)
        _check_info(info)
        if not self.spec.masked and offers_masks(self._environment, info):
            self.spec = with_mask(self.spec)
        self._look(observation, info, over=False)

    def step_s(self) -> float:
        """One step, and the seconds it took."""
        self.doing, action = "step", self._action()
        started = time.perf_counter()
        observation, reward, terminated, truncated, info = self._environment.step(action)
        took_s = time.perf_counter() - started
        _check_info(info)
        self.over = bool(terminated or truncated)
        self._look(observation, info, over=self.over)
        if not math.isfinite(float(reward)):
            raise ValueError(f"reward is {reward}")
        return took_s

    def _action(self) -> Any:
        if self.spec.masked:
            return random_action(self.spec, self._row[MASK], self._random)
        return self._environment.action_space.sample()

    def _look(self, observation: Any, info: Mapping[str, Any], *, over: bool) -> None:
        if self.spec.masked:
            observation = masked(observation, info, self._environment, self.spec, over=over)
        self._row = fitted(observation, self.spec.observation)
        if not all_finite(self._row):
            raise ValueError("observation is NaN or infinite")


def _check_info(info: Any) -> None:
    if not isinstance(info, Mapping):
        raise ValueError(f"info is a {type(info).__name__}, expected a dict")


def _vector_form(maker: EnvironmentMaker, spec: EnvironmentSpec) -> Mapping[str, Any] | None:
    """What a vectorised form says of itself. It counts if it takes the same arguments, has the same spaces and can be
    brought to NEXT_STEP."""
    if not maker.vector_entry_point() or spec.masked or isinstance(spec.action, CompositeSpec):
        return None
    from penstock.envs.spaces import action_spec, observation_spec
    from penstock.envs.vector import can_be_next_step

    try:
        environment = maker.vector(2)
    except Refused:
        return None
    try:
        same_observation = observation_spec(environment.single_observation_space, spec.id) == spec.observation
        same_action = action_spec(environment.single_action_space, spec.id) == spec.action
        works = same_observation and same_action and can_be_next_step(environment)
        return environment.metadata if works else None
    except Refused:
        return None
    finally:
        with suppress(Exception):  # as above
            environment.close()
