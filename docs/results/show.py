"""Runs what docs/results.md reports, one thing at a time, and prints each table as it stands there.

    .venv/bin/python docs/results/show.py cartpole|determinism|breadth|staleness|stragglers|idle|learning [--out DIR]

Every run is a child process, started as a person would start it. Nothing is measured inside this process but the
processor time of its children. Raw summaries are left in DIR (default: a temporary directory).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

SEEDS = (1, 2, 3, 4, 5)
SCHEDULES = ("sync", "overlap", "async")
LATENCY = "penstock/Latency-v0"


class Stage:
    """Where runs are put."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def train(self, name: str, arguments: str) -> dict[str, Any]:
        """One run's summary."""
        command = f"train {arguments} --quiet --json --out {self.out / name}"
        summary: dict[str, Any] = json.loads(penstock(command).splitlines()[-1])
        return summary

    def evaluate(self, name: str, episodes: int = 100) -> dict[str, Any]:
        """How the run's last checkpoint plays."""
        found: dict[str, Any] = json.loads(penstock(f"eval {self.out / name} --episodes {episodes} --json"))
        return found

    def model_digest(self, name: str, version: int) -> str:
        """SHA-256 of the final weights' file."""
        path = self.out / name / "checkpoints" / str(version) / "model.safetensors"
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def metrics(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name / "metrics.jsonl").read_text().splitlines()]

    def journal(self, name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / name / "journal.jsonl").read_text().splitlines()]


def penstock(command: str) -> str:
    """Standard output of a penstock command; its failure is ours."""
    print(f"penstock {command}", file=sys.stderr, flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *shlex.split(command)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Markdown."""
    titles = list(head)
    print("| " + " | ".join(titles) + " |\n|" + "---|" * len(titles))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print(flush=True)


# ---------------------------------------------------------------- what is shown


def cartpole(stage: Stage) -> None:
    """CartPole-v1 to 475 from process start, every schedule, every seed; and how the final checkpoint plays."""
    rows = []
    for schedule in SCHEDULES:
        walls = []
        for seed in SEEDS:
            name = f"cartpole-{schedule}-{seed}"
            summary = stage.train(name, f"CartPole-v1 --schedule {schedule} --seed {seed}")
            played = stage.evaluate(name)
            walls.append(summary["wall_s"])
            solved = summary["stop_reason"] == "return"
            rows.append(
                [
                    schedule,
                    seed,
                    f"{summary['wall_s']:.2f}",
                    f"{summary['env_steps']:,}",
                    f"{summary['return_mean']:.1f}" + ("" if solved else " (not reached)"),
                    f"{played['return_mean']:.1f}",
                    f"{summary['sps']:,.0f}",
                ]
            )
        rows.append([f"**{schedule}**", "median", f"**{statistics.median(walls):.2f}**", "", "", "", ""])
    table(["schedule", "seed", "seconds from process start", "steps", "return", "eval of 100", "steps/s"], rows)


def determinism(stage: Stage) -> None:
    """One digest and one final model.safetensors, whatever the workers, the stepping and the timing."""
    task = "CartPole-v1 --algo ppo --steps 200000 --seed 1"
    rows: list[list[object]] = []
    for family, schedule in (("overlap", "overlap"), ("sync", "sync"), ("overlap-K3", "overlap --staleness 3")):
        variants = [(f"--workers {workers}", f"w{workers}") for workers in (0, 1, 2, 3)]
        variants.append(("--workers 3 --chaos delays:2", "delays"))
        rows += _compare(stage, family, f"{task} --schedule {schedule}", variants)
    plain = "--set parallel=serial --set stepping"
    variants = [(f"{plain}=together", "together"), (f"{plain}=drift", "drift"), (f"{plain}=drift --workers 2", "drift2")]
    rows += _compare(stage, "plain", f"{task} --schedule overlap", variants)
    others = [("--seed 2", "seed2"), ("--seed 1 --set learning_rate=0.0025000000025", "rate")]
    for flags, name in others:
        rows += _compare(stage, f"other-{name}", f"{task.replace(' --seed 1', '')} --schedule overlap", [(flags, name)])
    table(["run", "digest", "model.safetensors", "version", "chaos events", "segments by worker"], rows)


def breadth(stage: Stage) -> None:
    """One digest for other algorithms, images, lanes on their own and the inference server, whatever workers and timing."""
    rows: list[list[object]] = []
    workers = [(f"--workers {count}", f"w{count}") for count in (0, 1, 3)]
    server = [(f"--inference server --workers {count}", f"server{count}") for count in (0, 2)]
    delays = [("--workers 3 --chaos delays:2", "delays"), ("--workers 2 --inference server --chaos delays:2", "server-delays")]
    for family, task in (
        ("a2c", "CartPole-v1 --algo a2c --steps 60000"),
        ("impala", "CartPole-v1 --algo impala --steps 60000"),
        ("ppo", "CartPole-v1 --algo ppo --steps 100000"),
        ("ppo-K3", "CartPole-v1 --algo ppo --steps 100000 --staleness 3"),
        ("one-lane", "CartPole-v1 --algo ppo --steps 60000 --set n_envs=8 --set n_blocks=8 --set n_steps=128"),
    ):
        rows += _compare(stage, family, f"{task} --seed 1 --schedule overlap", [*workers, *server, *delays])
    pong = [("--workers 0", "w0"), ("--workers 2", "w2"), ("--workers 1 --inference server", "server1")]
    rows += _compare(stage, "pong", "ALE/Pong-v5 --steps 20480 --seed 1 --schedule overlap", pong)
    table(["run", "digest", "model.safetensors", "version", "chaos events", "segments by worker"], rows)


def _compare(stage: Stage, family: str, task: str, variants: list[tuple[str, str]]) -> list[list[object]]:
    rows: list[list[object]] = []
    for flags, short in variants:
        name = f"{family}-{short}"
        summary = stage.train(name, f"{task} {flags}")
        hosts: dict[int, int] = {}
        for entry in stage.journal(name):
            for _, _, worker, _ in entry.get("segments", []):
                hosts[worker] = hosts.get(worker, 0) + 1
        model = stage.model_digest(name, summary["version"])
        by_worker = ", ".join(str(count) for _, count in sorted(hosts.items()))
        rows.append([name, summary["digest"][:16], model[:16], summary["version"], summary["chaos_events"], by_worker])
    if len(variants) > 1 and len({(row[1], row[2], row[3]) for row in rows}) != 1:
        raise SystemExit(f"{family}: the runs are not equal: {rows}")
    return rows


def staleness(stage: Stage) -> None:
    """Free flow under random delays: the bound holds, and is reached."""
    rows = []
    for bound in (1, 2, 4):
        for depth in sorted({1, bound}):
            for seed in (1, 2, 3):
                name = f"stale-{bound}-{depth}-{seed}"
                flags = f"--staleness {bound} --depth {depth} --chaos delays:5 --workers 3 --set until_return=none"
                summary = stage.train(name, f"CartPole-v1 --schedule async --seed {seed} --steps 200000 {flags}")
                histogram = [0] * (bound + 1)
                for record in stage.metrics(name):
                    for age, count in enumerate(record["staleness_histogram"]):
                        histogram[age] += count
                shares = " ".join(f"{count / sum(histogram):.3f}" for count in histogram)
                keys = ("staleness_max", "staleness_mean", "dropped_segments", "short_segments", "chaos_events")
                rows.append([bound, depth, seed, *(_short(summary[key]) for key in keys), shares])
    table(["K", "D", "seed", "max", "mean", "dropped", "short", "chaos events", "share of samples by age 0..K"], rows)


def _short(value: float) -> str:
    return f"{value:.2f}" if isinstance(value, float) else str(value)


STRAGGLER_STEPS = 64
STRAGGLER_MEAN_S = 0.01
STRAGGLER_MINIBATCH = 8


def stragglers(stage: Stage) -> None:
    """Eight workers, one ten times slower, against the other seven alone."""
    environment = f"--preset none --set envs.arguments.mean_s={STRAGGLER_MEAN_S} --set envs.arguments.variance=0.25"
    rows = []
    for share in (0.4, 0.9):
        task = f"{environment} --set batch_size={STRAGGLER_MINIBATCH} --set n_epochs={_epochs_for(stage, environment, share)}"
        alone, busy, _ = _straggler_run(stage, f"seven-{share}", task, blocks=7, flags="--schedule async --staleness 2")
        rows.append([f"{share:g}", "the seven alone, async K=2", f"{alone:.0f}", "100 %", f"{busy:.2f}", ""])
        for label, flags in (
            ("async K=2 D=1", "--schedule async --staleness 2"),
            ("async K=2 D=2", "--schedule async --staleness 2 --depth 2"),
            ("overlap K=1", "--schedule overlap"),
        ):
            name = f"{label}-{share}".replace(" ", "-")
            rate, busy, said = _straggler_run(stage, name, task, blocks=8, flags=f"{flags} --chaos slow:7=10")
            rows.append([f"{share:g}", label, f"{rate:.0f}", f"{100 * rate / alone:.0f} %", f"{busy:.2f}", said])
    table(["learner, of the collect time", "run", "steps/s", "of the seven alone", "learner busy", "what the run says"], rows)


def _epochs_for(stage: Stage, environment: str, share: float) -> int:
    """How many epochs make an update last this share of the time in which eight even workers collect a batch."""
    name = f"calibrate-{share}"
    size = f"--set n_envs=8 --set n_blocks=8 --set n_steps={STRAGGLER_STEPS} --workers 8 --set batch_size={STRAGGLER_MINIBATCH}"
    calibrated = 4
    stage.train(name, f"{LATENCY} {environment} {size} --set n_epochs={calibrated} --steps {8 * 8 * STRAGGLER_STEPS} --seed 1")
    last = stage.metrics(name)[-1]
    busy_s = last["learner_busy"] * last["env_steps"] / last["sps"]
    update_s = busy_s / last["version"] / calibrated
    return max(1, round(share * STRAGGLER_STEPS * STRAGGLER_MEAN_S / update_s))


def _straggler_run(stage: Stage, name: str, settings: str, *, blocks: int, flags: str) -> tuple[float, float, str]:
    rows = 8 * STRAGGLER_STEPS
    size = f"--set n_envs={blocks} --set n_blocks={blocks} --set n_steps={STRAGGLER_STEPS} --workers {blocks}"
    if "async" in flags:
        size += " --set segments_per_batch=8"
    summary = stage.train(name, f"{LATENCY} {settings} {size} {flags} --steps {40 * rows} --seed 1")
    records = stage.metrics(name)
    start = records[len(records) // 5]
    rate = (records[-1]["env_steps"] - start["env_steps"]) / (records[-1]["wall_s"] - start["wall_s"])
    return rate, records[-1]["learner_busy"], summary["bottleneck"]


def idle(stage: Stage) -> None:
    """What a run costs while its environments sleep: processor time of all its processes over wall time."""
    rows = []
    for parallel in ("threads", "processes", "serial"):
        arguments = "--set envs.arguments.mean_s=0.5 --set envs.arguments.variance=0.25 --set n_envs=8 --set n_blocks=4"
        command = f"train {LATENCY} --preset none {arguments} --set parallel={parallel} --set n_steps=16 --set batch_size=128"
        command += f" --minutes 1 --workers 2 --quiet --out {stage.out / f'idle-{parallel}'}"
        process = subprocess.Popen([sys.executable, "-m", "penstock", *shlex.split(command)])
        time.sleep(20.0)  # start-up is over: from here on its environments sleep
        before, start = _tree_cpu_s(process.pid), time.monotonic()
        time.sleep(30.0)
        share = (_tree_cpu_s(process.pid) - before) / (time.monotonic() - start)
        process.wait()
        rows.append([parallel, f"{100 * share:.2f} %"])
    table(["lanes in", "of one core"], rows)


def _tree_cpu_s(pid: int) -> float:
    """Processor seconds of a process and all its descendants that live."""
    import psutil

    process = psutil.Process(pid)
    spent = [each.cpu_times() for each in [process, *process.children(recursive=True)]]
    return sum(times.user + times.system for times in spent)


LEARNING = {
    "Acrobot-v1": (1, 2, 3),
    "LunarLander-v3": (1, 2, 3),
    "Pendulum-v1": (1, 2, 3),
    "MountainCarContinuous-v0": (1, 2, 3),
    "HalfCheetah-v5": (1, 2, 3),
    "Hopper-v5": (1, 2, 3),
    "Walker2d-v5": (1, 2, 3),
}


def learning(stage: Stage) -> None:
    """Every preset but CartPole's as it is shipped; seeds fixed beforehand."""
    rows = []
    for env, seeds in LEARNING.items():
        for seed in seeds:
            name = f"{env}-{seed}"
            summary = stage.train(name, f"{env} --seed {seed}")
            played = stage.evaluate(name)
            spread = f"{summary['return_mean']:.1f} ± {summary['return_std']:.1f}"
            evaluated = f"{played['return_mean']:.1f} ± {played['return_std']:.1f}"
            rows.append([env, seed, f"{summary['env_steps']:,}", spread, evaluated, f"{summary['wall_s']:.1f}"])
    table(["environment", "seed", "steps", "training return, last 100", "eval of 100", "seconds"], rows)


SHOWS: dict[str, Callable[[Stage], None]] = {
    show.__name__: show for show in (cartpole, determinism, breadth, staleness, stragglers, idle, learning)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("show", choices=SHOWS)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    out: Path = chosen.out or Path(tempfile.mkdtemp(prefix="penstock-show-"))
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    SHOWS[chosen.show](Stage(out))


if __name__ == "__main__":
    main()
