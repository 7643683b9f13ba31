"""What is measured: the jobs, and how each is put to Penstock and to a peer. Plain data; starts nothing."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.errors import MissingExtra, UnknownName

Precision = Literal["float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One training job. 2048 rows an iteration for everybody; how lanes are grouped is each system's own affair."""

    name: str
    env_id: str
    observation_size: int
    action_size: int
    discrete: bool
    n_envs: int
    n_blocks: int
    n_steps: int
    steps: int
    """Default length of a measured run."""
    peer_envs: int = 32
    peer_steps: int = 64
    batch_size: int = 512
    n_epochs: int = 4
    learning_rate: float = 3e-4
    gamma: float = 0.99
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    ent_coef: float = 0.0
    vf_coef: float = 0.5
    max_grad_norm: float = 0.5
    network: Literal["towers", "nature"] = "towers"
    precision: Precision = "float32"
    gradient_threads: int = 1
    reward_sign: bool = False
    extra: str | None = None
    module: str | None = None
    """What the extra brings, by which its presence is told."""

    @property
    def lanes_per_block(self) -> int:
        return self.n_envs // self.n_blocks

    def installed(self) -> bool:
        """Whether its environment can be made here."""
        return self.module is None or importlib.util.find_spec(self.module) is not None

    def require(self) -> None:
        """Refuse a job whose environment is not installed."""
        if self.extra is not None and not self.installed():
            raise MissingExtra(f"--job {self.name} ({self.env_id})", self.extra)

    def learner(self) -> dict[str, Any]:
        """The settings that Penstock and its peers share, by the names that both use."""
        names = ("learning_rate", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range")
        return {name: getattr(self, name) for name in (*names, "ent_coef", "vf_coef", "max_grad_norm")}


PONG: tuple[tuple[str, Precision], ...] = (("pong", "float32"), ("pong-bfloat16", "bfloat16"))
JOBS: dict[str, Job] = {
    job.name: job
    for job in (
        Job(
            name="cartpole",
            env_id="CartPole-v1",
            observation_size=4,
            action_size=2,
            discrete=True,
            n_envs=64,
            n_blocks=2,
            n_steps=32,
            steps=400_000,
        ),
        Job(
            name="halfcheetah",
            env_id="HalfCheetah-v5",
            observation_size=17,
            action_size=6,
            discrete=False,
            n_envs=32,
            n_blocks=2,
            n_steps=64,
            steps=150_000,
            extra="mujoco",
            module="mujoco",
        ),
        *(
            Job(
                name=name,
                env_id="ALE/Pong-v5",
                observation_size=4 * 84 * 84,
                action_size=6,
                discrete=True,
                n_envs=8,
                n_blocks=1,
                n_steps=128,
                steps=20_480,
                peer_envs=8,
                peer_steps=128,
                batch_size=256,
                learning_rate=2.5e-4,
                clip_range=0.1,
                ent_coef=0.01,
                network="nature",
                precision=precision,
                gradient_threads=2,
                reward_sign=True,
                extra="atari",
                module="ale_py",
            )
            for name, precision in PONG
        ),
    )
}


def find_job(name: str) -> Job:
    """The job of this name, whose environment is installed."""
    if name not in JOBS:
        raise UnknownName("job", name, JOBS)
    JOBS[name].require()
    return JOBS[name]


def penstock_settings(job: Job) -> dict[str, Any]:
    """What `penstock train` is told with --set; an explicit --set of a person's own comes after and wins."""
    own = {"envs.n_envs": job.n_envs, "envs.n_blocks": job.n_blocks, "learner.n_steps": job.n_steps}
    network: dict[str, Any] = {"model.hidden_sizes": "64,64", "model.activation": "tanh"}
    if job.network == "nature":
        network = {"model.network": "nature", "model.precision": job.precision}
    computing = {"learner.gradient_threads": job.gradient_threads, "model.reward_sign": job.reward_sign}
    return {**own, **network, **computing, **{f"learner.{name}": value for name, value in job.learner().items()}}


def penstock_arguments(
    job: Job, *, schedule: str, steps: int, seed: int, sets: Sequence[str], workers: int | None
) -> list[str]:
    """The arguments of the run to measure, less --out."""
    arguments = ["train", job.env_id, "--algo", "ppo", "--preset", "none", "--schedule", schedule]
    arguments += ["--steps", str(steps), "--seed", str(seed), "--json", "--quiet"]
    arguments += [] if workers is None else ["--workers", str(workers)]
    for setting in (*(f"{name}={value}" for name, value in penstock_settings(job).items()), *sets):
        arguments += ["--set", setting]
    return arguments


def peer_settings(job: Job, *, steps: int, seed: int, threads: int) -> dict[str, Any]:
    """What the peer's script is told."""
    run = {"env_id": job.env_id, "n_envs": job.peer_envs, "steps": steps, "seed": seed, "threads": threads}
    run["images"] = job.network == "nature"
    return {**run, "learner": {"n_steps": job.peer_steps, **job.learner()}}
