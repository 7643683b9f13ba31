"""Every measured run is a child process, started as a person would start it. Reads what it leaves behind."""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.bench.contenders import last_json_line, marks_of
from penstock.bench.figures import steady_rate
from penstock.bench.overlap.cases import LANES, MEAN_S, PPO, ROWS, STEPS, WAIT_VARIABLE, Case, Layout
from penstock.bench.overlap.delays import lane_seeds
from penstock.bench.throughput import demand_steady

ENVIRONMENT = "penstock.bench.overlap.endless:make_endless"
TIMED = "penstock.bench.overlap.timed:TimedWait"


@dataclass(frozen=True, slots=True)
class ClassicRun:
    """What the textbook loop took, in units of the mean step and of one step."""

    rollout: float
    learning: float

    @property
    def cost(self) -> float:
        return self.rollout + self.learning

    @property
    def sps(self) -> float:
        """Lanes x steps a second."""
        return LANES / (self.cost * MEAN_S)


@dataclass(frozen=True, slots=True)
class PenstockRun:
    """Steady steps a second, the learner's mean time for a batch in the same part of the run, and what the summary says."""

    sps: float
    train_s: float
    cpu_s: float
    facts: dict[str, Any]


def classic(case: Case, *, seed: int, rollouts: int) -> ClassicRun:
    """The textbook loop, once."""
    settings = {
        "environment": ENVIRONMENT,
        "arguments": _arguments(case),
        "seeds": lane_seeds(seed),
        "steps": STEPS,
        "rollouts": rollouts,
        "wait_s": case.wait_s,
        "ppo": {**PPO, "inputs": 4, "outputs": 2} if case.share is None else None,
    }
    command = [sys.executable, "-m", "penstock.bench.overlap.classic", json.dumps(settings)]
    took, _ = last_json_line(command, "the classic loop")
    steps_s = rollouts * STEPS * MEAN_S
    return ClassicRun(took["rollout_s"] / steps_s, took["learn_s"] / steps_s)


def penstock(case: Case, schedule: str, layout: Layout, *, seed: int, batches: int) -> PenstockRun:
    """`penstock train`, once, into a directory that is gone afterwards."""
    name = f"penstock {schedule} {layout.name}"
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
        out = Path(directory) / "run"
        command = [sys.executable, "-m", "penstock", *train_arguments(case, schedule, layout, seed, batches), "--out", str(out)]
        summary, cpu_s = last_json_line(command, name, {WAIT_VARIABLE: repr(case.wait_s)})
        metrics = out / "metrics.jsonl"
        sps = demand_steady(steady_rate(marks_of(metrics)), name)
        train_s = steady_train_s(metrics)
    facts = {name: summary[name] for name in ("sps", "env_steps", "short_segments", "staleness_mean", "digest")}
    return PenstockRun(sps, train_s, cpu_s, facts)


def train_arguments(case: Case, schedule: str, layout: Layout, seed: int, batches: int) -> list[str]:
    """All but --out. How lanes are stepped is said, not left to a probe that may happen to see only short delays."""
    learner = ("ppo", PPO) if case.share is None else (TIMED, {"batch_size": ROWS})
    sets: dict[str, Any] = {
        "envs.n_envs": LANES,
        "envs.n_blocks": layout.blocks,
        "envs.parallel": "threads",
        "envs.stepping": "drift",
        "learner.n_steps": STEPS,
        "model.hidden_sizes": "64,64",
        "model.activation": "tanh",
        "checkpoint.every": 0,
        **{f"learner.{name}": value for name, value in learner[1].items()},
    }
    arguments = ["train", ENVIRONMENT, "--algo", learner[0], "--preset", "none", "--schedule", schedule]
    arguments += ["--steps", str(batches * ROWS), "--seed", str(seed), "--workers", str(layout.workers), "--json", "--quiet"]
    for name, value in _arguments(case).items():
        arguments += ["--env-arg", f"{name}={value}"]
    for name, value in sets.items():
        arguments += ["--set", f"{name}={value}"]
    return arguments


def _arguments(case: Case) -> dict[str, float]:
    return {"mean_s": MEAN_S, "variance": case.variance}


def steady_train_s(metrics: Path, skip: float = 0.2) -> float:
    """The learner's mean time for a batch, in the part of the run that counts as steady."""
    records: list[dict[str, Any]] = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    last = records[-1]
    first = next(record for record in records if record["env_steps"] >= skip * last["env_steps"])
    return (_busy_s(last) - _busy_s(first)) / max(1, int(last["version"]) - int(first["version"]))


def _busy_s(record: dict[str, Any]) -> float:
    """Since training began: the share times the time that it is a share of."""
    return float(record["learner_busy"] * record["env_steps"] / record["sps"])
