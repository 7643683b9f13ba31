"""Opens a block: the one place that names its concrete kinds. Knows when each of them is the right choice."""

from __future__ import annotations

from penstock.core.errors import Refused
from penstock.core.protocols import BlockEnvironment
from penstock.core.specs import EnvironmentSpec
from penstock.envs.making import EnvironmentMaker
from penstock.envs.probing import Probe
from penstock.envs.settings import EnvSettings, Parallel, Stepping
from penstock.envs.standing import MAKING, TOGETHER, Standing

SLOW_STEP_S = 1e-3
"""A step of a concurrent lane costs some 50 microseconds of messages; past this it is well spent."""


def choose_parallel(settings: EnvSettings, probe: Probe) -> Parallel:
    """As asked; left to us, the vector form where there is one, concurrent lanes where steps are slow."""
    if settings.parallel == "vector" and not probe.vector:
        raise Refused(f"environment '{probe.spec.id}' has no vector form that can be used; set envs.parallel=auto")
    if settings.parallel != "auto":
        return settings.parallel
    if probe.vector:
        return "vector"
    return "serial" if probe.step_s < SLOW_STEP_S else "threads"


def choose_stepping(settings: EnvSettings, parallel: Parallel) -> Stepping:
    """As asked; left to us, lanes drift where they are concurrent."""
    if settings.stepping != "auto":
        return settings.stepping
    return "drift" if parallel in ("threads", "processes") else "together"


def open_block(
    maker: EnvironmentMaker,
    spec: EnvironmentSpec,
    settings: EnvSettings,
    seed: int,
    block_index: int,
    parallel_choice: Parallel,
    standing: Standing | None = None,
) -> BlockEnvironment:
    """Block `block_index` of a run with this seed; not yet reset. It keeps in `standing` where its lanes stand."""
    num_lanes = settings.lanes_per_block
    if parallel_choice == "vector":
        from penstock.envs.vector import VectorBlock

        if standing is not None:
            standing.form[0], standing.doing[0] = TOGETHER, MAKING
        return VectorBlock(maker.vector(num_lanes), spec, block=block_index, seed=seed, standing=standing)
    if parallel_choice == "serial":
        from penstock.envs.serial import SerialBlock

        return SerialBlock(maker, spec, num_lanes=num_lanes, block=block_index, seed=seed, standing=standing)
    from penstock.envs.concurrent import ConcurrentBlock

    in_processes = parallel_choice == "processes"
    return ConcurrentBlock(
        maker, spec, num_lanes=num_lanes, block=block_index, seed=seed, processes=in_processes, standing=standing
    )
