"""Which runs a study of staleness is made of, and what each is told. Plain data; starts nothing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from penstock.config.building import build
from penstock.config.files import config_digest
from penstock.config.naming import setting_name
from penstock.config.values import Assignment
from penstock.core.errors import MissingExtra, Refused, UnknownName

ALGORITHM = "ppo"
CORRECTIONS = ("clip", "decoupled", "vtrace", "delayed", "none")
STALENESS = (0, 1, 2, 4, 8)
SEEDS = (1, 2, 3, 4, 5)

_VARIED = frozenset(f"run.{name}" for name in ("seed", "steps", "workers", "minutes", "until_return", "experiment", "chaos"))
"""What the study says itself, beside the whole section `flow`, the environment and the correction."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """An environment and the settings that every run in it has, whatever its staleness and correction."""

    name: str
    env_id: str
    steps: int
    settings: Mapping[str, Any]
    extra: str | None = None
    module: str | None = None
    """What the extra brings, by which its presence is told."""
    start_s: float = 1.9
    step_s: float = 30e-6
    """Of one core: what a run and each of its steps took on the machine of docs/results.md. For the estimate alone."""

    def require(self) -> None:
        """Refuse a task whose environment is not installed."""
        if self.module is not None and self.extra is not None and importlib.util.find_spec(self.module) is None:
            raise MissingExtra(f"the task {self.name} ({self.env_id})", self.extra)


_COMMON: dict[str, Any] = {
    "envs.n_envs": 16,
    "envs.n_blocks": 2,
    "learner.n_steps": 64,
    "learner.batch_size": 256,
    "learner.n_epochs": 4,
    "learner.learning_rate": 1e-3,
    "learner.learning_rate_schedule": "linear",
    "learner.gae_lambda": 0.95,
    "learner.clip_range": 0.2,
    "learner.ent_coef": 0.0,
    "model.hidden_sizes": "64,64",
}
"""Batches of 1,024 or 2,048 rows, so that every run is some 150 versions or more: K = 8 is old, not the whole run."""

TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        Task(
            name="cartpole",
            env_id="CartPole-v1",
            steps=150_000,
            settings={**_COMMON, "learner.gamma": 0.98},
            step_s=26e-6,
        ),
        Task(
            name="acrobot",
            env_id="Acrobot-v1",
            steps=250_000,
            settings={**_COMMON, "learner.gamma": 0.99, "model.normalize_observation": "true"},
            step_s=43e-6,
        ),
        Task(
            name="lunarlander",
            env_id="LunarLander-v3",
            steps=300_000,
            settings={
                **_COMMON,
                "learner.n_steps": 128,
                "learner.batch_size": 128,
                "learner.learning_rate": 7e-4,
                "learner.learning_rate_schedule": "constant",
                "learner.gamma": 0.999,
                "learner.gae_lambda": 0.98,
                "learner.ent_coef": 0.01,
                "model.normalize_observation": "true",
            },
            extra="box2d",
            module="Box2D",
            step_s=54e-6,
        ),
    )
}
DEFAULT_TASKS = ("cartpole", "lunarlander")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run."""

    task: Task
    staleness: int
    correction: str
    seed: int
    sets: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.task.name}-K{self.staleness}-{self.correction}-s{self.seed}"

    def settings(self) -> list[tuple[str, str]]:
        """Everything that the run is told; a person's own comes after the task's, the study's own last."""
        given = [(name, str(value)) for name, value in self.task.settings.items()]
        given += [_halves(text) for text in self.sets]
        flow = {"flow.schedule": "sync"} if self.staleness == 0 else {"flow.schedule": "overlap"}
        own = {
            **flow,
            "flow.staleness": self.staleness,
            "learner.correction": self.correction,
            "run.seed": self.seed,
            "run.steps": self.task.steps,
            "run.workers": 0,
            "run.experiment": "true",
            "metrics.tensorboard": "false",
            "checkpoint.every": 0,
            "checkpoint.keep": 1,
        }
        return [*given, *((name, str(value)) for name, value in own.items())]

    def arguments(self, out: str) -> list[str]:
        """Of `penstock`."""
        told = ["train", self.task.env_id, "--algo", ALGORITHM, "--preset", "none", "--json", "--quiet", "--out", out]
        for name, value in self.settings():
            told += ["--set", f"{name}={value}"]
        return told

    def config_digest(self) -> str:
        """What the run's summary must say; refuses settings as the run itself would."""
        assignments = [Assignment(name, value, is_text=True) for name, value in self.settings()]
        return config_digest(build(self.task.env_id, algo=ALGORITHM, preset="none", assignments=assignments).job)

    def cost_s(self) -> float:
        """Seconds of one core."""
        return self.task.start_s + self.task.steps * self.task.step_s


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A study: every combination once."""

    tasks: tuple[Task, ...] = field(default_factory=lambda: tuple(TASKS[name] for name in DEFAULT_TASKS))
    staleness: tuple[int, ...] = STALENESS
    corrections: tuple[str, ...] = CORRECTIONS
    seeds: tuple[int, ...] = SEEDS
    sets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for text in self.sets:
            _refuse_what_is_varied(text)

    def cells(self) -> Iterator[Cell]:
        """Seeds outermost: a study that is stopped half-way has whole grids."""
        for seed in self.seeds:
            for task in self.tasks:
                for bound in self.staleness:
                    for correction in self.corrections:
                        yield Cell(task=task, staleness=bound, correction=correction, seed=seed, sets=self.sets)

    def described(self) -> dict[str, Any]:
        """What decides the study's numbers, as JSON has it: the same here and there, or it is another study."""
        tasks = {
            task.name: {"env_id": task.env_id, "steps": task.steps, "settings": dict(task.settings)} for task in self.tasks
        }
        whole = asdict(self)
        lists = {name: list(whole[name]) for name in ("staleness", "corrections", "seeds", "sets")}
        return {"study": "staleness", "algo": ALGORITHM, "tasks": tasks, **lists}


def difference(there: Mapping[str, Any], here: Mapping[str, Any], path: str = "") -> str | None:
    """The first thing in which two descriptions differ, in words; None where they are the same."""
    for name in [*there, *(name for name in here if name not in there)]:
        before, now = there.get(name), here.get(name)
        if isinstance(before, Mapping) and isinstance(now, Mapping):
            inner = difference(before, now, f"{path}{name}.")
            if inner is not None:
                return inner
        elif before != now:
            return f"{path}{name} is {_shown(before)} there and {_shown(now)} here"
    return None


def find_tasks(names: Iterable[str]) -> tuple[Task, ...]:
    """The tasks of these names, whose environments are installed."""
    for name in names:
        if name not in TASKS:
            raise UnknownName("task", name, TASKS)
        TASKS[name].require()
    return tuple(TASKS[name] for name in names)


def find_corrections(names: Sequence[str]) -> tuple[str, ...]:
    for name in names:
        if name not in CORRECTIONS:
            raise UnknownName("correction", name, CORRECTIONS)
    return tuple(names)


def _shown(value: Any) -> str:
    if value is None:
        return "absent"
    if isinstance(value, list):
        return ",".join(map(str, value)) or "empty"
    return "there" if isinstance(value, Mapping) else str(value)


def _halves(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise Refused(f"--set {text} is not of the form room.key=value")
    return key.strip(), value


def _refuse_what_is_varied(text: str) -> None:
    name = setting_name(ALGORITHM, _halves(text)[0])
    if name.startswith("flow.") or name in _VARIED or name in ("learner.correction", "envs.id"):
        raise Refused(f"--set {text}: a study of staleness decides {name} itself")
