"""Penstock: high-throughput deep-RL training under one law of staleness.

    run = penstock.train("CartPole-v1", algo="ppo", steps=100_000, seed=1)
    action = run.policy(observation)

Importing this package loads neither torch nor Gymnasium; names are resolved when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.core.errors import (
    BadCheckpoint,
    EnvironmentFault,
    MissingExtra,
    NonFinite,
    PenstockError,
    Refused,
    RunFailed,
    UnknownName,
    WorkerDied,
)

if TYPE_CHECKING:
    from penstock.api import Run, load, train

__version__ = "0.1.0"

__all__ = [
    "BadCheckpoint",
    "EnvironmentFault",
    "MissingExtra",
    "NonFinite",
    "PenstockError",
    "Refused",
    "Run",
    "RunFailed",
    "UnknownName",
    "WorkerDied",
    "load",
    "train",
]


def __getattr__(name: str) -> Any:
    if name in ("Run", "load", "train"):
        from penstock import api

        return getattr(api, name)
    raise AttributeError(f"module 'penstock' has no attribute '{name}'")
