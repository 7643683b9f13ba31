"""A block over an environment's own vectorised form, brought to NEXT_STEP from any of Gymnasium's autoreset modes.

Knows Gymnasium's three modes. This is the hot path: while no episode ends, a step is one call and a handful of whole-
array operations.

    NEXT_STEP   is the form wanted: the environment resets a lane in the step after its end.
    SAME_STEP   has reset it already and keeps the final observation in info["final_obs"].
    DISABLED    leaves it ended until a reset with options={"reset_mask": mask}.

In the last two a step cannot leave a lane out. On its reset step such a lane is therefore stepped along with the others,
for nothing, and then put at the start of its episode by a masked reset with that episode's own seed.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from penstock.core.errors import EnvironmentFault
from penstock.core.protocols import ALL, Lanes
from penstock.core.seeds import Purpose, derived_seed, episode_seed
from penstock.core.specs import Array, BoxSpec, EnvironmentSpec, LanePosition
from penstock.envs.faults import environment_fault, failures
from penstock.envs.lane import LIFE_LOST
from penstock.envs.quiet import quiet
from penstock.envs.rows import all_finite, allocate_rows, finite_lanes, fitted
from penstock.envs.serial import NO_LANES
from penstock.envs.standing import RESETTING, RESTING, STEPPING, TOGETHER, TOGETHER_FROM_ONE_SEED, Standing


class VectorBlock:
    """All lanes step as one, in `receive`; a vector environment cannot step some of its lanes."""

    def __init__(
        self,
        environment: VectorEnv[Any, Any, Any],
        spec: EnvironmentSpec,
        *,
        block: int,
        seed: int,
        standing: Standing | None = None,
    ) -> None:
        self.spec, self.num_lanes = spec, environment.num_envs
        self._environment, self._seed = environment, seed
        self._mode = autoreset_mode(environment)
        self._first_lane, self._block_seed = block * self.num_lanes, derived_seed(seed, Purpose.BLOCK_RESET, block)
        rows = allocate_rows(spec, self.num_lanes, standing=standing)
        self.observation, self.reward, self.valid = rows.observation, rows.reward, rows.valid
        self.terminated, self.truncated, self.ended = rows.terminated, rows.truncated, rows.ended
        self._action, self._action_dtype = rows.action, environment.action_space.dtype or rows.action.dtype
        self._standing, self._doing, self._clock = rows.standing, rows.doing, rows.standing.clock.data
        self._standing.form[0] = TOGETHER_FROM_ONE_SEED if self._mode is AutoresetMode.NEXT_STEP else TOGETHER
        self._doing[0] = RESTING
        self._copies_plainly = isinstance(spec.observation, BoxSpec)
        self._any_ended, self._all_valid, self._sent = False, True, False
        self._steps = 0  # since reset

    def reset(self) -> None:
        self._any_ended, self._all_valid, self._sent, self._steps = False, True, False, 0
        self._standing.episode[:], self._standing.step[:], self._clock[0] = 0, 0, 0
        self._doing[0] = RESETTING
        self.reward[:], self.terminated[:], self.truncated[:], self.valid[:] = 0.0, False, False, True
        self.ended[:] = False
        try:
            with quiet():
                observation, _ = self._environment.reset(seed=self._first_seed())
            self._write(observation)
        except EnvironmentFault:
            raise
        except failures() as error:
            raise self._fault("reset", error) from error
        self._doing[0] = RESTING

    def send(self, lanes: Lanes, actions: Array) -> None:
        if len(actions[lanes]) != self.num_lanes:
            raise ValueError("a vector block steps all of its lanes together")
        self._action = actions.astype(self._action_dtype)  # always a copy: the environment may keep it
        self._standing.action[...] = self._action
        self._sent = True

    def receive(self, timeout_s: float | None = None) -> Lanes:  # noqa: ARG002 there is nothing to wait for
        if not self._sent:
            return NO_LANES
        self._sent = False
        self._steps += 1
        self._clock[0], self._doing[0] = self._steps, STEPPING
        resetting = self._any_ended
        if resetting:
            self._begin_episodes()
        elif not self._all_valid:
            self.valid[:], self._all_valid = True, True
        try:
            self._step(resetting=resetting)
        except EnvironmentFault:
            raise
        except failures() as error:
            raise self._fault("step", error) from error
        self._doing[0] = RESTING
        return ALL

    def fileno(self) -> int:
        return -1

    def position(self, lane: int) -> LanePosition:
        """In NEXT_STEP mode the seed is the block's: its lanes draw from one generator."""
        return self._standing.position(lane, lane=self._first_lane + lane, seed=self._seed)

    def close(self) -> None:
        with contextlib.suppress(Exception):  # its work is done; how it tidies up decides nothing
            self._environment.close()

    def _step(self, *, resetting: bool) -> None:
        if resetting and self._mode is not AutoresetMode.NEXT_STEP:
            outcome = self._step_with_masked_reset()
        else:
            outcome = self._environment.step(self._action)
        observation, self.reward[...], self.terminated[...], self.truncated[...], info = outcome
        if resetting:
            self._clear_reset_rows()
        np.logical_or(self.terminated, self.truncated, out=self.ended)
        self._any_ended = bool(self.ended.any())
        if LIFE_LOST in info:
            np.logical_or(self.terminated, info[LIFE_LOST] & self.valid, out=self.terminated)
        if self._any_ended and self._mode is AutoresetMode.SAME_STEP:
            observation = self._with_final_rows(observation, info)
        self._write(observation)
        if not all_finite(self.reward):
            raise self._fault("step", "reward is NaN or infinite", _first(~np.isfinite(self.reward)))

    def _begin_episodes(self) -> None:
        self._standing.episode[self.ended] += 1
        self._standing.step[self.ended] = -self._steps  # from here on the clock counts them
        np.logical_not(self.ended, out=self.valid)
        self._all_valid = False

    def _clear_reset_rows(self) -> None:
        """Whatever the environment said of a reset step, or of one that was taken for nothing, is no part of the data."""
        resets = ~self.valid
        self.reward[resets], self.terminated[resets], self.truncated[resets] = 0.0, False, False

    def _step_with_masked_reset(self) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if self._mode is AutoresetMode.DISABLED:
            self._masked_reset()  # an ended lane may refuse to be stepped along
        observation, reward, terminated, truncated, info = self._environment.step(self._action)
        observation, first = np.array(observation), self._masked_reset()
        observation[~self.valid] = first[~self.valid]
        return observation, reward, terminated, truncated, info

    def _masked_reset(self) -> Array:
        begins = ~self.valid
        lanes, episodes = range(self._first_lane, self._first_lane + self.num_lanes), self._standing.episode.tolist()
        seeds = [
            episode_seed(self._seed, lane, episode) if begun else None
            for lane, episode, begun in zip(lanes, episodes, begins.tolist(), strict=True)
        ]
        return reset_lanes(self._environment, begins, seeds)

    def _with_final_rows(self, observation: Array, info: dict[str, Any]) -> Array:
        final = info["final_obs"] if "final_obs" in info else info["final_observation"]
        observation = np.array(observation)
        for row in np.flatnonzero(self.ended):
            observation[row] = final[row]
        return observation

    def _write(self, observation: Any) -> None:
        plain = self._copies_plainly and type(observation) is np.ndarray
        if not (plain and observation.shape == self.observation.shape and observation.dtype == self.observation.dtype):
            observation = fitted(observation, self.spec.observation, lanes=(self.num_lanes,))
        self.observation[...] = observation
        if not all_finite(self.observation):
            bad = _first(~finite_lanes(self.observation))
            raise self._fault("step" if self._steps else "reset", "observation is NaN or infinite", bad)

    def _first_seed(self) -> Any:
        if self._mode is AutoresetMode.NEXT_STEP:
            return self._block_seed
        return [episode_seed(self._seed, self._first_lane + lane, 0) for lane in range(self.num_lanes)]

    def _fault(self, doing: str, cause: str | BaseException, row: int | None = None) -> EnvironmentFault:
        """Without a row any lane of the block may be to blame."""
        lanes = "" if row is not None else f"lanes {self._first_lane} to {self._first_lane + self.num_lanes - 1}"
        return environment_fault(self.spec.id, doing, cause, self.position(row or 0), lanes=lanes)


def reset_lanes(environment: VectorEnv[Any, Any, Any], which: Array, seeds: list[int | None]) -> Array:
    """Reset some lanes, each from its own seed; Gymnasium's options carry the mask."""
    reset: Any = (
        environment.reset
    )  # its declared type admits one seed only; SyncVectorEnv, AsyncVectorEnv and ALE take one a lane
    observation, _ = reset(seed=seeds, options={"reset_mask": which})
    return np.asarray(observation)


def autoreset_mode(environment: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """The mode the environment declares; one that declares none does what Gymnasium's own do by default."""
    declared = environment.metadata.get("autoreset_mode", AutoresetMode.NEXT_STEP)
    return declared if isinstance(declared, AutoresetMode) else AutoresetMode(declared)


def can_be_next_step(environment: VectorEnv[Any, Any, Any]) -> bool:
    """Whether this (fresh) environment can be brought to NEXT_STEP: needs masked resets unless it is of that form."""
    if autoreset_mode(environment) is AutoresetMode.NEXT_STEP:
        return True
    only_first = np.arange(environment.num_envs) == 0
    try:
        reset_lanes(environment, ~only_first | only_first, list(range(environment.num_envs)))
        environment.action_space.seed(0)
        stepped = np.array(environment.step(environment.action_space.sample())[0])
        after = reset_lanes(environment, only_first, [0] + [None] * (environment.num_envs - 1))
    except Exception:  # any complaint means the same: it does not know masks or seeds of single lanes
        return False
    return bool(np.array_equal(stepped[1:], after[1:]))


def _first(rows: Any) -> int:
    return int(np.argmax(rows))
