"""EnvPool's environments, whose lanes are stepped by compiled threads.

EnvPool is in NEXT_STEP form by itself: the step after an episode's end resets the lane, whatever its action, and
`elapsed_step` 0 says that it did, which is checked. Its random streams are fixed when a pool is made, one a lane, and
go on from episode to episode. So `reset` makes a new pool, and a lane of many can neither be begun anew by a seed of its own
nor be restored; a pool of one lane, the single environment, can.

Of its arcade games all settings are said, as in `arcade.py`: rewards stay raw, and a lost life ends the return, not the game.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from penstock.core.errors import Refused
from penstock.core.specs import Array
from penstock.envs.lane import LIFE_LOST
from penstock.envs.quiet import quiet

ARCADE: Mapping[str, Any] = {
    "frame_skip": 4,
    "stack_num": 4,
    "img_height": 84,
    "img_width": 84,
    "gray_scale": True,
    "repeat_action_probability": 0.0,
    "noop_max": 30,
    "use_fire_reset": True,
    "full_action_space": False,
    "max_episode_steps": 27_000,
}
"""What `--env-arg` may change of a game, with what holds otherwise; besides, what EnvPool knows, and episodic_life (true)."""

_RAW: Mapping[str, Any] = {"episodic_life": False, "zero_discount_on_life_loss": False, "reward_clip": False}
"""Of games, so that records see whole ones and their scores; what learning sees is said elsewhere."""
_OURS = frozenset(
    ("num_envs", "batch_size", "seed", "env_seed", "reward_clip", "zero_discount_on_life_loss", "max_num_players")
)


class PoolVector(VectorEnv[Any, Any, Any]):
    """Lanes in one pool, which resets them itself."""

    def __init__(self, task: str, num_envs: int, *, num_threads: int = 1, episodic_life: bool = True, **arguments: Any) -> None:
        from envpool import make_spec

        self._task = task
        self._settings = {**_settings(task, _config(make_spec(task)), arguments), "num_threads": num_threads}
        spec = make_spec(task, **self._settings)
        self.config = _config(spec)
        self.num_envs, self.metadata = num_envs, {"autoreset_mode": AutoresetMode.NEXT_STEP, "hidden_state": True}
        self.single_observation_space, self.single_action_space = spec.gymnasium_observation_space, spec.gymnasium_action_space
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._episodic_life = episodic_life
        self._pool: Any = None
        self._ended, self._lives = np.zeros(num_envs, np.bool_), np.zeros(num_envs, np.int64)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin all lanes; a `seed` begins their random streams too, which takes a new pool."""
        del options
        with quiet():
            if seed is not None or self._pool is None:
                self._pool = self._made(seed)
            observation, info = self._pool.reset()
        self._ended[:] = False
        self._lives = _lives(info, self.num_envs)
        return observation, info

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self._pool.step(actions)
        if not np.array_equal(info["elapsed_step"] == 0, self._ended):
            raise RuntimeError("EnvPool reset a lane whose episode had not ended, or did not reset one whose had")
        np.logical_or(terminated, truncated, out=self._ended)
        lives = _lives(info, self.num_envs)
        lost, self._lives = lives < self._lives, lives
        if self._episodic_life and "lives" in info:
            info[LIFE_LOST] = lost & ~self._ended
        return observation, reward, terminated, truncated, info

    def close_extras(self, **kwargs: Any) -> None:
        del kwargs  # for windows, of which there is none
        self._pool = None  # its threads end with it

    def _made(self, seed: Any) -> Any:
        from envpool import make

        seeds = np.random.SeedSequence(seed).generate_state(self.num_envs) >> 1  # of 31 bits, as EnvPool has them
        return make(self._task, env_type="gymnasium", num_envs=self.num_envs, seed=seeds.tolist(), **self._settings)


class PoolEnvironment(gymnasium.Env[Any, Any]):
    """A pool of one lane as a plain environment: `reset` with a seed makes it anew, so it follows its seeds."""

    def __init__(self, task: str, **arguments: Any) -> None:
        self._lane = PoolVector(task, 1, **arguments)
        config = self._lane.config
        self.observation_space, self.action_space = self._lane.single_observation_space, self._lane.single_action_space
        self.frames_per_step = int(config["frame_skip"]) if "reward_clip" in config else 1
        self.spec = gymnasium.envs.registration.EnvSpec(
            f"envpool/{task.replace('/', '-')}",
            reward_threshold=config.get("reward_threshold"),
            max_episode_steps=config.get("max_episode_steps"),
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self._lane.reset(seed=seed, options=options)
        return _first(observation), _first(info)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        batched = {name: np.asarray(part)[None] for name, part in action.items()} if isinstance(action, dict) else None
        outcome = self._lane.step(np.asarray(action)[None] if batched is None else batched)
        observation, reward, terminated, truncated, info = outcome
        return _first(observation), float(reward[0]), bool(terminated[0]), bool(truncated[0]), _first(info)

    def close(self) -> None:
        self._lane.close()


def _config(spec: Any) -> dict[str, Any]:
    return dict(spec.config._asdict())


def _settings(task: str, known: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """What a pool is made with, the number of lanes, threads and seeds aside; refuses what it would not know."""
    if known.get("max_num_players", 1) > 1:
        raise Refused(f"environment 'envpool/{task}' has {known['max_num_players']} players; one is what can be trained")
    if ours := arguments.keys() & _OURS:
        raise Refused(f"'{min(ours)}' of an EnvPool environment is Penstock's to set; leave out that --env-arg")
    if unknown := arguments.keys() - known.keys():
        may = ", ".join(sorted(known.keys() - _OURS))
        raise Refused(f"'{min(unknown)}' is no argument of environment 'envpool/{task}'; those are {may}")
    if "reward_clip" not in known:  # which arcade games have and no other
        return dict(arguments)
    return {name: value for name, value in {**ARCADE, **arguments, **_RAW}.items() if name in known}


def _lives(info: Mapping[str, Any], num_lanes: int) -> Array:
    return np.array(info["lives"], np.int64) if "lives" in info else np.zeros(num_lanes, np.int64)


def _first(of_lanes: Any) -> Any:
    """The only lane's part, as a copy of its own."""
    if isinstance(of_lanes, Mapping):
        return {name: _first(part) for name, part in of_lanes.items()}
    return np.array(of_lanes[0])
