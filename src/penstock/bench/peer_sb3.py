"""Measures stable-baselines3's PPO. Run as a script by the interpreter that has it; imports nothing of Penstock.

Takes its settings as one JSON argument and prints one line of JSON: how many steps were done after how many seconds, at
the start of every rollout and at the end. What the callback costs SB3 spends without one too.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def measure(settings: dict[str, Any]) -> dict[str, Any]:
    """Train, and say when which step was reached."""
    import gymnasium
    import stable_baselines3
    import torch
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import DummyVecEnv

    torch.set_num_threads(settings["threads"])
    marks: list[tuple[int, float]] = []

    class Marks(BaseCallback):
        def _on_rollout_start(self) -> None:
            marks.append((self.num_timesteps, time.perf_counter()))

        def _on_step(self) -> bool:
            return True

    if settings["images"]:
        import ale_py
        from stable_baselines3.common.env_util import make_atari_env
        from stable_baselines3.common.vec_env import VecFrameStack

        gymnasium.register_envs(ale_py)
        plain = {"frameskip": 1, "repeat_action_probability": 0.0}  # the wrapper skips frames itself
        environments: Any = VecFrameStack(make_atari_env(settings["env_id"], settings["n_envs"], env_kwargs=plain), 4)
        policy, network = "CnnPolicy", None
    else:
        makers = [lambda: gymnasium.make(settings["env_id"], disable_env_checker=True)] * settings["n_envs"]
        environments, policy = DummyVecEnv(makers), "MlpPolicy"
        network = {"net_arch": {"pi": [64, 64], "vf": [64, 64]}, "activation_fn": torch.nn.Tanh}
    model = stable_baselines3.PPO(
        policy,
        environments,
        policy_kwargs=network,
        device="cpu",
        seed=settings["seed"],
        verbose=0,
        **settings["learner"],
    )
    model.learn(settings["steps"], callback=Marks())
    marks.append((model.num_timesteps, time.perf_counter()))
    versions = {"stable_baselines3": stable_baselines3.__version__, "torch": torch.__version__}
    return {"marks": marks, "versions": versions}


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
