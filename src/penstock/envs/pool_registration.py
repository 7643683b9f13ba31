"""Importing this names EnvPool's environments in Gymnasium's registry: envpool/CartPole-v1, envpool/Pong-v5, ...

A slash in EnvPool's own name becomes a dash. Needs the extra envpool; makes no environment.
"""

from __future__ import annotations

from envpool import list_all_envs
from gymnasium.envs.registration import EnvSpec, registry

NAMESPACE = "envpool"


def _register_all() -> None:
    for task in list_all_envs():
        name = f"{NAMESPACE}/{task.replace('/', '-')}"
        registry.setdefault(
            name,
            EnvSpec(
                name,
                entry_point="penstock.envs.pools:PoolEnvironment",
                vector_entry_point="penstock.envs.pools:PoolVector",
                kwargs={"task": task},
            ),
        )


_register_all()
