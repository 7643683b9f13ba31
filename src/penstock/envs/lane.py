"""One plain environment in NEXT_STEP form, writing its row of a block.

Owns the resets: global lane l's episode e starts from the seed (seed, l, e), whoever hosts it. Knows neither which
process or thread it lives in nor the other lanes.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from penstock.core.errors import EnvironmentFault
from penstock.core.seeds import episode_seed
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.envs.faults import environment_fault, failures
from penstock.envs.given import given
from penstock.envs.masks import masked
from penstock.envs.quiet import quiet
from penstock.envs.rows import Rows, all_finite, fitted
from penstock.envs.standing import MAKING, RESETTING, RESTING, STEPPING

LIFE_LOST = "life_lost"
"""In a step's info: the return ends here as if the episode had terminated, but the game goes on and nothing is reset."""


class Lane:
    """Made on `start`; afterwards `step` takes the action in its row and leaves the outcome there."""

    def __init__(self, maker: Callable[[], Any], spec: EnvironmentSpec, rows: Rows, row: int, *, lane: int, seed: int) -> None:
        self._maker, self._spec, self._rows, self._row = maker, spec, rows, row
        self._lane, self._seed = lane, seed
        self._environment: Any = None
        self._ended = False
        self._discrete = isinstance(spec.action, DiscreteSpec)
        self._action_dtype = np.dtype(spec.action.dtype)
        self._shape, self._dtype = spec.observation.shape, np.dtype(spec.observation.dtype)
        self._takes_arrays = isinstance(spec.observation, BoxSpec)
        self._masked = spec.masked

    def start(self) -> None:
        """Begin episode 0, making the environment first if need be."""
        with quiet():
            if self._environment is None:
                self._make()
            self._begin_episode(0)
        self._clear_row(valid=True)

    def step(self) -> None:
        """One step with the row's action; the step after an episode's end begins the next one instead."""
        rows, row = self._rows, self._row
        if self._ended:
            self._begin_episode(int(rows.episode[row]) + 1)
            self._clear_row(valid=False)
            return
        rows.step[row] += 1
        rows.doing[row] = STEPPING
        try:
            observation, reward, terminated, truncated, info = self._environment.step(self._action())
            ended = bool(terminated or truncated)
            self._write(observation, info, over=ended)
            reward = float(reward)
            if not math.isfinite(reward):
                raise ValueError(f"reward is {reward}")
            rows.reward[row] = reward
            rows.terminated[row] = terminated or info.get(LIFE_LOST, False)
            rows.truncated[row] = truncated
        except failures() as error:
            raise self._fault("step", error) from error
        rows.doing[row] = RESTING
        rows.valid[row] = True
        rows.ended[row] = self._ended = ended

    def check(self) -> None:
        """Raise if the row's observation is not made of numbers."""
        if not all_finite(np.asarray(self._rows.observation[self._row])):
            raise self._fault("step" if self._rows.step[self._row] else "reset", "observation is NaN or infinite")

    def close(self) -> None:
        environment, self._environment = self._environment, None
        if environment is not None:
            with contextlib.suppress(Exception):  # its work is done; how it tidies up decides nothing
                environment.close()

    def _make(self) -> None:
        self._rows.doing[self._row] = MAKING
        try:
            self._environment = self._maker()
        except failures() as error:
            raise self._fault("making", error) from error
        self._action_space = self._environment.action_space
        self._action_dtype = np.dtype(self._action_space.dtype)

    def _begin_episode(self, episode: int) -> None:
        self._rows.episode[self._row], self._rows.step[self._row] = episode, 0
        self._rows.doing[self._row] = RESETTING
        try:
            observation, info = self._environment.reset(seed=episode_seed(self._seed, self._lane, episode))
            self._write(observation, info, over=False)
        except failures() as error:
            raise self._fault("reset", error) from error
        self._rows.doing[self._row] = RESTING
        self._ended = False

    def _clear_row(self, *, valid: bool) -> None:
        rows, row = self._rows, self._row
        rows.reward[row], rows.terminated[row], rows.truncated[row], rows.valid[row] = 0.0, False, False, valid
        rows.ended[row] = False

    def _action(self) -> Any:
        """An environment may keep what it is given, so it gets a copy of its own."""
        action = self._rows.action[self._row]
        if self._discrete:
            return int(action)
        return given(action, self._action_space) if action.dtype.names else action.astype(self._action_dtype)

    def _write(self, observation: Any, info: Mapping[str, Any], *, over: bool) -> None:
        if self._masked:
            observation = masked(observation, info, self._environment, self._spec, over=over)
        plain = self._takes_arrays and type(observation) is np.ndarray
        if not (plain and observation.shape == self._shape and observation.dtype == self._dtype):
            observation = fitted(observation, self._spec.observation)
        self._rows.observation[self._row] = observation

    def _fault(self, doing: str, cause: str | BaseException) -> EnvironmentFault:
        position = self._rows.standing.position(self._row, lane=self._lane, seed=self._seed)
        return environment_fault(self._spec.id, doing, cause, position)
