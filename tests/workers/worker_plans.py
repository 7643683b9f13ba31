"""Plans for samplers and learners over penstock/Counting-v0, as wiring would make them; and an algorithm that notes all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from penstock.algorithms.batch import Batch
from penstock.algorithms.settings import PPOSettings
from penstock.checkpoint.settings import CheckpointSettings
from penstock.envs.making import EnvironmentMaker
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.models.flat import FlatParameters
from penstock.models.layout import mlp_layout
from penstock.models.normaliser import Normaliser
from penstock.models.settings import ModelSettings
from penstock.store.asks import Asks
from penstock.store.slots import SegmentShape, Slots
from penstock.weights.board import Board
from penstock.workers.chaos import ChaosPlan
from penstock.workers.plans import InferencePlan, LearnerPlan, MemoryPlan, SamplerPlan
from penstock.workers.settings import ComputeSettings

SEED, LANES, STEPS = 5, 3, 8
COUNTING = {"episode_steps": 5, "ragged": True}
ENVIRONMENTS = EnvSettings(id="penstock/Counting-v0", arguments=COUNTING, n_envs=2 * LANES, n_blocks=2)
MAKER = EnvironmentMaker.of(ENVIRONMENTS)
SPEC = probe(MAKER, ENVIRONMENTS).spec
MODEL = ModelSettings(hidden_sizes=(4,))
SHAPE = SegmentShape(STEPS, LANES)
SIZES = {"num_weights": mlp_layout(SPEC, MODEL).size, "num_statistics": Normaliser(SPEC, MODEL).size}


class Noting:
    """Learns nothing: notes its batches, and adds 1 to every weight at each update."""

    poison = False

    def __init__(self, policy: Any, settings: PPOSettings, seed: int) -> None:
        self.flat = FlatParameters(policy)
        self.batches: list[Batch] = []
        self.progress: list[float] = []

    def update(self, batch: Batch, progress: float) -> dict[str, float]:
        self.batches.append(replace(batch, **{n: np.array(a) for n, a in vars(batch).items() if n != "version"}))
        self.progress.append(progress)
        self.flat.values.add_(torch.nan if self.poison else 1.0)
        return {"updates": 3, "samples": 50, "policy_loss": 0.5}

    def restore(self, weights: torch.Tensor, state: dict[str, torch.Tensor]) -> None:
        self.flat.published.copy_(weights)

    def state(self) -> dict[str, torch.Tensor]:
        return {"count": torch.tensor(float(len(self.batches)))}


def learner_plan(run_dir: Path, **changes: Any) -> LearnerPlan:
    plan = LearnerPlan(
        incarnation=0,
        algorithm="worker_plans:Noting",
        spec=SPEC,
        model=MODEL,
        custom_model=None,
        about_policy={"spec": "of the policy"},
        settings=PPOSettings(n_steps=STEPS, gamma=0.5),
        checkpoint=CheckpointSettings(keep=2),
        run_dir=str(run_dir),
        memory=MemoryPlan(SHAPE, 4),
        staleness=1,
        pinned=True,
        full_digest=False,
        experiment=False,
        settings_digest="of the settings",
        seed=SEED,
        compute=ComputeSettings(),
        chaos=ChaosPlan(),
    )
    return replace(plan, **changes)


def sampler_plan(**changes: Any) -> SamplerPlan:
    plan = SamplerPlan(
        index=0,
        incarnation=7,
        blocks=(0, 1),
        spec=SPEC,
        maker=MAKER,
        environments=ENVIRONMENTS,
        parallel="serial",
        model=MODEL,
        custom_model=None,
        memory=MemoryPlan(SHAPE, 4, num_blocks=2, **SIZES, board_places=3),
        seed=SEED,
        drift=False,
        return_gamma=None,
        compute=ComputeSettings(),
        chaos=ChaosPlan(),
    )
    return replace(plan, **changes)


def inference_plan(**changes: Any) -> InferencePlan:
    plan = InferencePlan(
        incarnation=3,
        spec=SPEC,
        model=MODEL,
        custom_model=None,
        memory=sampler_plan().memory,
        seed=SEED,
        compute=ComputeSettings(inference="server"),
        chaos=ChaosPlan(),
    )
    return replace(plan, **changes)


def new_asks() -> Asks:
    return Asks.create(SPEC, lanes=LANES, blocks=2)


def new_slots() -> Slots:
    return Slots.create(SPEC, SHAPE, 4)


def board_of(versions: int) -> Board:
    """A board with random weights, another draw for each version."""
    memory = sampler_plan().memory
    board = Board.create(num_weights=memory.num_weights, num_statistics=memory.num_statistics, staleness=1)
    for version in range(versions):
        board.publish(version, weights_of(version), np.zeros(memory.num_statistics))
    return board


def weights_of(version: int) -> np.ndarray:
    size = mlp_layout(SPEC, MODEL).size
    return np.random.default_rng(version).normal(size=size).astype(np.float32) / 8
