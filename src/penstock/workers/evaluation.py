"""Plays a finished policy: frozen normaliser, seeds of its own, whole games, raw returns.

Every lane plays its share of the episodes to the end, so that short episodes count no more than long ones.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from penstock.core.errors import BadCheckpoint, Refused
from penstock.core.protocols import ALL, BlockEnvironment
from penstock.core.seeds import Purpose, derived_seed, stream
from penstock.core.specs import Array
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import choose_parallel, open_block
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.workers.policy import Policy, Trust, demand_trust, load_policy

MAX_LANES = 32


def evaluate(
    run_dir: Path,
    *,
    episodes: int,
    seed: int,
    deterministic: bool,
    version: int | None = None,
    trust: Trust = (),
    render: bool = False,
) -> list[float]:
    """The raw returns of so many episodes of a run's policy. `render`: in a window, one after the other."""
    policy = load_policy(run_dir, version=version, trust=trust)
    settings = _settings(run_dir, policy, lanes=1 if render else min(episodes, MAX_LANES))
    for named in (settings.id, *settings.wrappers):
        demand_trust(run_dir, named, trust)
    if render:
        settings = replace(settings, arguments={**settings.arguments, "render_mode": "human"}, parallel="serial")
    maker = EnvironmentMaker.of(settings)
    found = probe(maker, settings)
    own_seed = derived_seed(seed, Purpose.EVALUATION)
    block = open_block(maker, found.spec, settings, own_seed, 0, choose_parallel(settings, found))
    try:
        return play(policy, block, episodes, seed=seed, deterministic=deterministic)
    finally:
        block.close()


def _settings(run_dir: Path, policy: Policy, *, lanes: int) -> EnvSettings:
    """Those of the run's environment, for so many lanes in one block."""
    try:
        in_script, stored = policy.about["defined_in_script"]["environment"], policy.about["environment"]
        if not in_script:
            return EnvSettings(**{**stored, "wrappers": tuple(stored["wrappers"]), "n_envs": lanes, "n_blocks": 1})
    except (KeyError, TypeError) as error:
        raise BadCheckpoint(f"{run_dir} does not describe its environment: {type(error).__name__} {error}") from error
    raise Refused(f"the environment of {run_dir} was defined in a script; evaluate it there with run.policy(observation)")


def play(policy: Policy, block: BlockEnvironment, episodes: int, *, seed: int, deterministic: bool) -> list[float]:
    """Returns in (lane, episode) order."""
    lanes = block.num_lanes
    wanted = np.array([episodes // lanes + (lane < episodes % lanes) for lane in range(lanes)])
    gathered = np.zeros(lanes)
    returns: list[list[float]] = [[] for _ in range(lanes)]
    generator = stream(seed, Purpose.EVALUATION)
    block.reset()
    while any(len(done) < count for done, count in zip(returns, wanted, strict=True)):
        block.send(ALL, policy.actor.to_environment(_choose(policy, block.observation, generator, deterministic)))
        _receive_all(block)
        gathered += np.where(block.valid, block.reward, 0.0)
        for lane in np.flatnonzero(block.ended):
            if len(returns[lane]) < wanted[lane]:
                returns[lane].append(float(gathered[lane]))
            gathered[lane] = 0.0
    return [value for lane in returns for value in lane]


def _choose(policy: Policy, observation: Array, generator: np.random.Generator, deterministic: bool) -> Array:
    if deterministic:
        return policy.actor.best(observation)
    noise = policy.actor.noise(generator, 1, len(observation))
    return policy.actor.act(observation, noise[0]).action


def _receive_all(block: BlockEnvironment) -> None:
    """All lanes of a step that was sent to all."""
    missing = block.num_lanes
    while missing:
        lanes = block.receive(None)
        missing -= block.num_lanes if isinstance(lanes, slice) else len(lanes)
