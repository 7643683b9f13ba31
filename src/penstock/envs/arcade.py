"""Arcade games through ALE's own vector environment, which sees to skipping, stacking and scaling in compiled code.

Every setting that the field has disagreed about is said here, none is left to ALE, whose registry and whose class differ:
frames skipped and their maximum over the last two taken (Mnih et al. 2015), no sticky actions unless asked for (Machado et al.
2018, arXiv:1709.06009, would have 0.25), up to 30 no-ops after a reset. Rewards stay raw, and a lost life ends the return but
not the game: what is learned from is thus apart from what is reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv

from penstock.core.errors import Refused
from penstock.core.specs import Array
from penstock.envs.lane import LIFE_LOST

SETTINGS: Mapping[str, Any] = {
    "frameskip": 4,
    "maxpool": True,
    "stack_num": 4,
    "img_height": 84,
    "img_width": 84,
    "grayscale": True,
    "repeat_action_probability": 0.0,
    "noop_max": 30,
    "use_fire_reset": True,
    "full_action_space": False,
    "max_num_frames_per_episode": 108_000,
    "num_threads": 1,
}
"""What `--env-arg` may change, with what holds otherwise; besides, episodic_life (true) and preprocessing (true)."""


class ArcadeVector(VectorEnv[Any, Any, Any]):
    """Lanes of one game, never reset but by a mask and each from a seed of its own."""

    def __init__(self, game: str, num_envs: int, *, episodic_life: bool = True, **settings: Any) -> None:
        if unknown := settings.keys() - SETTINGS.keys():
            known = ", ".join((*SETTINGS, "episodic_life", "preprocessing"))
            raise Refused(f"'{min(unknown)}' is no argument of arcade games; those are {known}")
        from ale_py.vector_env import AtariVectorEnv

        fixed = {"episodic_life": False, "life_loss_info": False, "reward_clipping": False}
        self._games = AtariVectorEnv(
            game, num_envs, autoreset_mode=AutoresetMode.NEXT_STEP, **{**SETTINGS, **settings, **fixed}
        )
        self.num_envs = num_envs
        # Its own resets are never let happen: whoever drives us resets by mask what has ended, with the seed of the episode
        self.metadata = {**self._games.metadata, "autoreset_mode": AutoresetMode.DISABLED}
        self.single_observation_space = self._games.single_observation_space
        self.single_action_space = self._games.single_action_space
        self.observation_space, self.action_space = self._games.observation_space, self._games.action_space
        self.frames_per_step = int({**SETTINGS, **settings}["frameskip"])
        self._episodic_life = episodic_life
        self._lives = np.zeros(num_envs, np.int64)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        """`seed`: one, or one for each lane, of which those of the lanes in options["reset_mask"] count."""
        mask = np.ones(self.num_envs, np.bool_) if options is None else np.asarray(options["reset_mask"], np.bool_)
        if isinstance(seed, list | np.ndarray):
            seed = np.array([lane_seed for lane_seed, begins in zip(seed, mask, strict=True) if begins], np.int64)
        observation, info = self._games.reset(seed=seed, options={"reset_mask": mask})
        self._lives = np.array(info["lives"], np.int64)
        return observation, {}

    def step(self, actions: Array) -> tuple[Array, Array, Array, Array, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._games.step(actions)
        lives = np.array(info["lives"], np.int64)
        lost, self._lives = lives < self._lives, lives
        extra = {LIFE_LOST: lost & ~terminated & ~truncated} if self._episodic_life else {}
        return observation, reward, terminated, truncated, extra

    def close_extras(self, **kwargs: Any) -> None:
        del kwargs  # for windows, of which there is none
        self._games.close()


class ArcadeGame(gymnasium.Env[Array, Any]):
    """The same game as a single environment."""

    def __init__(self, game: str, **settings: Any) -> None:
        self._lane = ArcadeVector(game, 1, **settings)
        self.observation_space, self.action_space = self._lane.single_observation_space, self._lane.single_action_space
        self.frames_per_step = self._lane.frames_per_step

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Array, dict[str, Any]]:
        del options
        observation, _ = self._lane.reset(seed=seed)
        return observation[0].copy(), {}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._lane.step(np.array([action], np.int64))
        lost = {LIFE_LOST: bool(info[LIFE_LOST][0])} if LIFE_LOST in info else {}
        return observation[0].copy(), float(reward[0]), bool(terminated[0]), bool(truncated[0]), lost

    def close(self) -> None:
        self._lane.close()
