"""The systems that are measured, each as a child process of this one. Imports neither torch nor any peer."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.bench.figures import steady_rate
from penstock.bench.jobs import Job, peer_settings, penstock_arguments
from penstock.bench.throughput import Measured, demand_steady
from penstock.core.errors import Refused, RunFailed

TIMEOUT_S = 1800.0
PEER_SCRIPT = Path(__file__).with_name("peer_sb3.py")
FACTS = ("sps", "env_steps", "wall_s", "train_wall_s", "staleness_max", "staleness_mean", "dropped_segments", "workers")
"""What of a run's summary is kept beside its rate; sps counts the whole run, not the steady part."""


@dataclass(frozen=True)
class Penstock:
    """`penstock train`, as a person would start it."""

    job: Job
    schedule: str
    steps: int
    sets: tuple[str, ...] = ()
    workers: int | None = None
    ours: bool = True

    @property
    def name(self) -> str:
        return f"penstock {self.schedule}"

    def run(self, seed: int) -> Measured:
        """Train into a directory that is gone afterwards; the rate is read from its metrics."""
        arguments = penstock_arguments(
            self.job, schedule=self.schedule, steps=self.steps, seed=seed, sets=self.sets, workers=self.workers
        )
        with tempfile.TemporaryDirectory(prefix="penstock-bench-") as directory:
            out = Path(directory) / "run"
            summary, cpu_s = last_json_line([sys.executable, "-m", "penstock", *arguments, "--out", str(out)], self.name)
            sps = demand_steady(steady_rate(marks_of(out / "metrics.jsonl")), self.name)
        return Measured(sps, cpu_s, {name: summary.get(name) for name in FACTS})


def marks_of(metrics: Path) -> list[tuple[float, float]]:
    """(steps, seconds) of every trained batch."""
    records = [json.loads(line) for line in metrics.read_text(encoding="utf-8").splitlines()]
    return [(record["env_steps"], record["wall_s"]) for record in records]


@dataclass(frozen=True)
class StableBaselines3:
    """SB3's PPO, in the interpreter that has it."""

    job: Job
    python: str
    steps: int
    threads: int
    ours: bool = False

    @property
    def name(self) -> str:
        return f"sb3, {self.threads} thread{'s' if self.threads > 1 else ''}"

    def run(self, seed: int) -> Measured:
        """Train once; the script says when it reached which step."""
        settings = peer_settings(self.job, steps=self.steps, seed=seed, threads=self.threads)
        command = [self.python, "-I", str(PEER_SCRIPT), json.dumps(settings)]
        said, cpu_s = last_json_line(command, self.name, {"OMP_NUM_THREADS": str(self.threads)})
        marks = [(float(steps), float(seconds)) for steps, seconds in said["marks"]]
        return Measured(demand_steady(steady_rate(marks), self.name), cpu_s, said["versions"])


def find_peer_python(given: str | None) -> str:
    """An interpreter that can import stable_baselines3; refuses where there is none, and says how to make one."""
    if given is None:
        if find_spec("stable_baselines3") is not None:
            return sys.executable
        raise Refused(f"--peer sb3 needs an environment with stable-baselines3: {_how_to_make_one()}")
    try:
        tried = subprocess.run([given, "-I", "-c", "import stable_baselines3"], capture_output=True, check=False)
    except OSError as error:
        raise Refused(f"cannot start --peer-python {given}: {error.strerror}; {_how_to_make_one()}") from error
    if tried.returncode != 0:
        raise Refused(f"--peer-python {given} cannot import stable_baselines3: {_how_to_make_one()}")
    return given


def _how_to_make_one() -> str:
    install = ".venv-peers/bin/pip install -c constraints.txt torch stable-baselines3 'gymnasium[mujoco]'"
    return f"python -m venv .venv-peers && {install}, then --peer-python .venv-peers/bin/python"


def last_json_line(command: Sequence[str], name: str, variables: Mapping[str, str] | None = None) -> tuple[Any, float]:
    """What a child's last line of output says, and the CPU seconds that it and its own children took."""
    before = _children_cpu_s()
    environment = {**os.environ, **(variables or {})}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, env=environment)
    except subprocess.TimeoutExpired as error:
        raise RunFailed(f"{name} did not end within {TIMEOUT_S:.0f} s; give it fewer --steps") from error
    last_words = ended.stderr.strip().splitlines()[-1:] or ["it said nothing"]
    if ended.returncode == Refused.exit_code:  # a setting that was given with --set, say: the person's to mend
        raise Refused(last_words[0].removeprefix("penstock: "))
    if ended.returncode != 0:
        raise RunFailed(f"{name} failed with exit code {ended.returncode}: {last_words[0]}", details=ended.stderr)
    try:
        return json.loads(ended.stdout.splitlines()[-1]), _children_cpu_s() - before
    except (IndexError, json.JSONDecodeError) as error:
        raise RunFailed(f"{name} did not end with a line of JSON", details=ended.stdout + ended.stderr) from error


def _children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
