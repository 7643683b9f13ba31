"""The one module that knows how the rooms fit together: what each worker is given, how much memory, which classes by name."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from penstock.core.specs import EnvironmentSpec, to_plain
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import choose_parallel, choose_stepping
from penstock.envs.probing import Probe
from penstock.envs.standing import Standings
from penstock.flow.events import Law
from penstock.flow.opening import batch_segments, open_law
from penstock.run.job import Job
from penstock.store.asks import Asks
from penstock.store.slots import SegmentShape, Slots
from penstock.transport.messages import Ready
from penstock.workers.chaos import ChaosPlan
from penstock.workers.plans import InferencePlan, LearnerPlan, MemoryPlan, SamplerPlan


@dataclass(frozen=True)
class Wiring:
    """A job, what was found out about its environment, and where it writes: enough to start everything."""

    job: Job
    maker: EnvironmentMaker
    probe: Probe
    run_dir: Path
    settings_digest: str
    custom_model: Any = None
    initial_weights: Path | None = None

    @property
    def num_workers(self) -> int:
        """How many samplers there are: as asked, at most one for each block. It decides speed and nothing else."""
        asked = self.job.run.workers
        chosen = suited_workers(self.job, self.probe.spec, self.probe.step_s, num_cores()) if asked is None else max(1, asked)
        return min(self.job.env.n_blocks, chosen)

    @property
    def shape(self) -> SegmentShape:
        return SegmentShape(steps=self.job.learner.n_steps, lanes=self.job.env.lanes_per_block)

    @property
    def checkpoint_every(self) -> int:
        """Versions between checkpoints; 0: never."""
        segments = batch_segments(self.job.flow, self.job.env.n_blocks)
        return self.job.checkpoint.versions_between(steps=self.job.run.steps, batch_rows=self.shape.rows * segments)

    def open_law(self) -> Law:
        return open_law(self.job.flow, self.job.env.n_blocks, steps=self.job.run.steps, segment_rows=self.shape.rows)

    def create_slots(self) -> Slots:
        """Shared memory for all segments, after checking that there is room."""
        return Slots.create(self.probe.spec, self.shape, self.open_law().num_slots)

    def create_standings(self) -> Standings:
        """Shared memory for where all lanes stand."""
        return Standings.create(self.probe.spec, lanes=self.shape.lanes, blocks=self.job.env.n_blocks)

    @property
    def has_server(self) -> bool:
        """Whether one process acts for all samplers."""
        return self.job.compute.inference == "server"

    def create_asks(self) -> Asks | None:
        """Shared memory for what blocks ask the inference server, where there is one."""
        if not self.has_server:
            return None
        return Asks.create(self.probe.spec, lanes=self.shape.lanes, blocks=self.job.env.n_blocks)

    @property
    def memory(self) -> MemoryPlan:
        return MemoryPlan(shape=self.shape, num_slots=self.open_law().num_slots, num_blocks=self.job.env.n_blocks)

    def learner_plan(self, incarnation: int) -> LearnerPlan:
        job = self.job
        return LearnerPlan(
            incarnation=incarnation,
            algorithm=job.algorithm,
            spec=self.probe.spec,
            model=job.model,
            custom_model=self.custom_model,
            about_policy=self.about_policy(),
            settings=job.learner,
            checkpoint=job.checkpoint,
            run_dir=str(self.run_dir),
            memory=self.memory,
            staleness=job.flow.bound,
            pinned=job.flow.pinned,
            full_digest=job.run.digest == "full",
            experiment=job.run.experiment,
            settings_digest=self.settings_digest,
            seed=job.run.seed,
            compute=job.compute,
            chaos=ChaosPlan.parse(job.run.chaos),
            initial_weights=None if self.initial_weights is None else str(self.initial_weights),
        )

    def inference_plan(self, incarnation: int, board: Ready) -> InferencePlan:
        job = self.job
        return InferencePlan(
            incarnation=incarnation,
            spec=self.probe.spec,
            model=job.model,
            custom_model=self.custom_model,
            memory=self._memory_with(board),
            seed=job.run.seed,
            compute=job.compute,
            chaos=ChaosPlan.parse(job.run.chaos),
        )

    def sampler_plan(self, incarnation: int, index: int, blocks: tuple[int, ...], board: Ready) -> SamplerPlan:
        job = self.job
        parallel = choose_parallel(job.env, self.probe)
        return SamplerPlan(
            index=index,
            incarnation=incarnation,
            blocks=blocks,
            spec=self.probe.spec,
            maker=self.maker,
            environments=job.env,
            parallel=parallel,
            model=job.model,
            custom_model=self.custom_model,
            memory=self._memory_with(board),
            seed=job.run.seed,
            drift=choose_stepping(job.env, parallel) == "drift",
            return_gamma=job.learner.gamma if job.model.normalize_reward else None,
            compute=job.compute,
            chaos=ChaosPlan.parse(job.run.chaos),
        )

    def _memory_with(self, board: Ready) -> MemoryPlan:
        """The same with the board, once the learner has made it."""
        weights, statistics, places = board.num_weights, board.num_statistics, self.job.flow.bound + 2
        return replace(self.memory, num_weights=weights, num_statistics=statistics, board_places=places)

    def about_policy(self) -> dict[str, Any]:
        """What a checkpoint says about its policy, so that it can be used without the run."""
        return {
            "spec": to_plain(self.probe.spec),
            "seed": self.job.run.seed,
            "model": asdict(self.job.model),
            "environment": asdict(self.job.env),
            "defined_in_script": {
                "environment": not isinstance(self.maker.source, str),
                "model": self.custom_model is not None,
            },
        }


UPDATE_S, UPDATE_ROW_S = 350e-6, 2.5e-6
"""About what an optimiser step of a small network costs, and each of its rows: enough to tell who has more to do."""


def suited_workers(job: Job, spec: EnvironmentSpec, step_s: float, cores: int) -> int:
    """One sampler less than there are cores, as the learner keeps one to itself; but where environments take longer than
    learning from them does, it would leave that core idle, and there are as many samplers as cores. Large networks learn
    slowly."""
    if job.model.custom is not None or job.model.convolves(spec):
        return max(1, cores - 1)
    rows = (
        job.learner.minibatch_rows or batch_segments(job.flow, job.env.n_blocks) * job.learner.n_steps * job.env.lanes_per_block
    )
    learning_s = job.learner.passes * (UPDATE_ROW_S + UPDATE_S / rows)
    return cores if step_s > learning_s else max(1, cores - 1)


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
