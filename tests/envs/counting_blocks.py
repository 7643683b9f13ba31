"""Blocks over the counting environment, opened in every way there is."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from penstock.core.protocols import BlockEnvironment
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import open_block
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings, Parallel
from penstock.envs.vector import VectorBlock

COUNTING = "penstock/Counting-v0"
RAGGED = {"episode_steps": 7, "ragged": True}
PLAIN_KINDS: tuple[Parallel, ...] = ("serial", "threads", "processes")


def settings_of(name: str = COUNTING, *, lanes: int = 5, **arguments: Any) -> EnvSettings:
    return EnvSettings(id=name, arguments=arguments, n_envs=lanes, n_blocks=1)


def open_one(
    kind: Parallel, name: str = COUNTING, *, source: Any = None, lanes: int = 5, block: int = 0, **arguments: Any
) -> BlockEnvironment:
    """One block of this kind; `source` is a class or factory instead of a name."""
    settings = settings_of(name, lanes=lanes, **arguments)
    maker = EnvironmentMaker.of(settings, source)
    return open_block(maker, probe(maker, settings).spec, settings, 11, block, kind)


def open_sync(mode: AutoresetMode, *, lanes: int = 5, name: str = COUNTING, **arguments: Any) -> VectorBlock:
    """Gymnasium's own vectorisation of the plain environment, in any of its autoreset modes."""
    settings = settings_of(name, lanes=lanes, **arguments)
    maker = EnvironmentMaker.of(settings)
    spec = probe(maker, settings).spec
    environment: gymnasium.vector.VectorEnv[Any, Any, Any] = SyncVectorEnv([maker] * lanes, autoreset_mode=mode)
    return VectorBlock(environment, spec, block=0, seed=11)
