"""A job: everything that a run is made of, as settings and names. It is what config.toml holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.algorithms.settings import LearnerSettings
from penstock.checkpoint.settings import CheckpointSettings
from penstock.envs.settings import EnvSettings
from penstock.flow.settings import FlowSettings
from penstock.metrics.settings import MetricsSettings
from penstock.models.settings import ModelSettings
from penstock.run.settings import RunSettings
from penstock.workers.settings import ComputeSettings


@dataclass(frozen=True, kw_only=True)
class Job:
    """One training run, complete."""

    algo: str
    """The algorithm's name, as a person says it."""
    algorithm: str
    """The class behind it, "module:Class"."""
    env: EnvSettings
    learner: LearnerSettings
    model: ModelSettings = field(default_factory=ModelSettings)
    flow: FlowSettings = field(default_factory=FlowSettings)
    run: RunSettings = field(default_factory=RunSettings)
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
