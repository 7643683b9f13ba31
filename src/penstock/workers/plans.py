"""What a worker is given when it starts: plain data, plus the user's own code, which travels by value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.algorithms.settings import LearnerSettings
from penstock.checkpoint.settings import CheckpointSettings
from penstock.core.specs import EnvironmentSpec
from penstock.envs.making import EnvironmentMaker
from penstock.envs.settings import EnvSettings, Parallel
from penstock.models.settings import ModelSettings
from penstock.store.slots import SegmentShape
from penstock.workers.chaos import ChaosPlan
from penstock.workers.settings import ComputeSettings


@dataclass(frozen=True)
class MemoryPlan:
    """How the shared arenas are laid out; their descriptors travel beside."""

    shape: SegmentShape
    num_slots: int
    num_blocks: int = 0
    num_weights: int = 0  # unknown until the learner has built its network
    num_statistics: int = 0
    board_places: int = 0


@dataclass(frozen=True)
class SamplerPlan:
    """All that a sampler needs."""

    index: int
    incarnation: int
    blocks: tuple[int, ...]
    spec: EnvironmentSpec
    maker: EnvironmentMaker
    environments: EnvSettings
    parallel: Parallel
    model: ModelSettings
    custom_model: Any  # a module class of the person's own script, or None
    memory: MemoryPlan
    seed: int
    drift: bool
    return_gamma: float | None
    compute: ComputeSettings
    chaos: ChaosPlan


@dataclass(frozen=True)
class InferencePlan:
    """All that an inference server needs."""

    incarnation: int
    spec: EnvironmentSpec
    model: ModelSettings
    custom_model: Any
    memory: MemoryPlan
    seed: int
    compute: ComputeSettings
    chaos: ChaosPlan


@dataclass(frozen=True)
class LearnerPlan:
    """All that a learner needs."""

    incarnation: int
    algorithm: str  # "module:Class"
    spec: EnvironmentSpec
    model: ModelSettings
    custom_model: Any
    about_policy: dict[str, Any]  # what a checkpoint says so that the policy can be used without the run
    settings: LearnerSettings
    checkpoint: CheckpointSettings
    run_dir: str
    memory: MemoryPlan
    staleness: int
    pinned: bool
    full_digest: bool
    experiment: bool
    settings_digest: str
    seed: int
    compute: ComputeSettings
    chaos: ChaosPlan
    initial_weights: str | None = None  # a run directory or checkpoint to start from
