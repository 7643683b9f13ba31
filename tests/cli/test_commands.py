"""What the commands do with good input."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.commands import Train
from penstock.cli.main import main
from penstock.cli.parser import flag, parse
from penstock.cli.train import assignments, built_from
from penstock.config.files import config_digest
from penstock.core.errors import RunFailed
from penstock.run.job import Job
from penstock.run.training import Outcome, Request

SUMMARY = {
    "run_dir": "runs/x",
    "env_steps": 102_400,
    "version": 50,
    "sps": 98_765.4,
    "wall_s": 3.7,
    "return_mean": 476.2,
    "return_std": 12.5,
    "episodes": 1530,
    "staleness_bound": 1,
    "staleness_max": 1,
    "staleness_mean": 0.98,
    "solved_at_steps": 100_352,
    "solved_at_s": 3.1,
    "eval_return_mean": None,
    "digest": "d" * 64,
    "bottleneck": "The learner is the bottleneck.",
    "stop_reason": "return",
}


class Recorder:
    """Stands for `run.training.train`: notes what it was asked and answers with a summary."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.exit_code = 0
        self.error: RunFailed | None = None

    def __call__(self, request: Request) -> Outcome:
        self.requests.append(request)
        return Outcome(Path("runs/x"), dict(SUMMARY), self.error, self.exit_code)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    recorder = Recorder()
    monkeypatch.setattr("penstock.cli.train.train", recorder)
    return recorder


def job(line: str) -> Job:
    return built_from(parse(Train, "train", line.split())).job


def test_flags_become_settings():
    found = job(
        "CartPole-v1 --schedule async --staleness 3 --depth 2 --workers 2 --steps 1e5 --minutes 1.5 --until-return -1e2 "
        "--seed 7 --model my.nets:Big --device cpu --inference server --chaos delays:2 --digest full "
        "--set learning_rate=1e-4 --set learner.gamma=0.9 --env-arg gravity=9.8 --env-arg mode=fast "
        "--wrap a.b:c --wrap d:e"
    )
    assert (found.flow.schedule, found.flow.staleness, found.flow.depth) == ("async", 3, 2)
    assert (found.run.workers, found.run.steps, found.run.minutes, found.run.until_return) == (2, 100_000, 1.5, -100.0)
    assert (found.run.seed, found.run.chaos, found.run.digest) == (7, "delays:2", "full")
    assert (found.model.custom, found.compute.device, found.compute.inference) == ("my.nets:Big", "cpu", "server")
    assert (found.learner.learning_rate, found.learner.gamma) == (1e-4, 0.9)
    assert found.env.arguments == {"gravity": 9.8, "mode": "fast"}
    assert found.env.wrappers == ("a.b:c", "d:e")


def test_a_flag_wins_over_set():
    assert job("CartPole-v1 --seed 2 --set run.seed=1").run.seed == 2


def test_the_surface_is_pinned():
    """Growth is a decision: this list and DESIGN section 7 change together."""
    flags = [flag(entry) for entry in Train.__dataclass_fields__.values() if not entry.metadata.get("positional")]
    assert flags == [
        "--algo",
        "--preset",
        "--schedule",
        "--staleness",
        "--depth",
        "--workers",
        "--steps",
        "--minutes",
        "--until-return",
        "--seed",
        "--out",
        "--resume",
        "--set",
        "--env-arg",
        "--wrap",
        "--model",
        "--init-from",
        "--device",
        "--inference",
        "--chaos",
        "--digest",
        "--json",
        "--quiet",
    ]


def test_negative_numbers_are_values():
    for text in ("-100", "-1e2", "-0.5"):
        command = parse(Train, "train", ["Acrobot-v1", "--until-return", text])
        assert command.until_return == text
        assert assignments(command)[0].value == text


def test_train_hands_over_the_job_and_prints_the_summary(run: Recorder, capsys: pytest.CaptureFixture[str]):
    assert main(["train", "CartPole-v1", "--out", "runs/mine", "--init-from", "runs/old"]) == 0
    (request,) = run.requests
    assert request.job.env.id == "CartPole-v1"
    assert (request.out, request.init_from, request.quiet) == (Path("runs/mine"), Path("runs/old"), False)
    assert request.config_digest == config_digest(request.job)
    assert request.started_s is not None
    assert 0 < time.monotonic() - request.started_s < 3600
    printed = capsys.readouterr()
    assert request.notes[0] == "CartPole-v1 with ppo, preset cartpole-ppo"  # said once nothing can be refused any more
    assert "476.2 ± 12.5" in printed.out
    assert "98.8 k steps/s" in printed.out
    assert printed.out.splitlines()[-1].split() == ["run", "runs/x"]


def test_json_is_the_last_line_and_the_only_one_on_standard_output(run: Recorder, capsys: pytest.CaptureFixture[str]):
    assert main(["train", "CartPole-v1", "--json"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == SUMMARY
    assert len(printed.out.splitlines()) == 1
    assert "476.2" in printed.err


def test_a_run_that_failed_prints_its_summary_and_then_the_cause(run: Recorder, capsys: pytest.CaptureFixture[str]):
    run.error = RunFailed("worker 1 died")
    assert main(["train", "CartPole-v1", "--json"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == SUMMARY
    assert printed.err.splitlines()[-1] == "penstock: worker 1 died"


def test_the_exit_code_is_that_of_the_run(run: Recorder):
    run.exit_code = 143
    assert main(["train", "CartPole-v1", "--quiet"]) == 143


@pytest.mark.parametrize(("flags", "lines"), [(["--quiet"], 0), (["--quiet", "--json"], 1)])
def test_quiet(run: Recorder, capsys: pytest.CaptureFixture[str], flags: list[str], lines: int):
    assert main(["train", "CartPole-v1", *flags]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert len(printed.out.splitlines()) == lines


def test_presets_lists_and_prints(capsys: pytest.CaptureFixture[str]):
    assert main(["presets"]) == 0
    assert "halfcheetah-ppo" in capsys.readouterr().out
    assert main(["presets", "cartpole-ppo"]) == 0
    printed = capsys.readouterr().out
    assert "490.0 ± 6.1" in printed
    assert tomllib.loads(printed)["learner"]["n_epochs"] >= 1
    assert main(["presets", "CartPole-v1"]) == 0
    every = capsys.readouterr().out
    assert printed.strip() in every
    assert all(f"--preset cartpole-{algo}" in every for algo in ("a2c", "impala", "ppo"))


def test_version_and_help(capsys: pytest.CaptureFixture[str]):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("penstock 0.")
    for arguments in ([], ["--help"], ["-h"]):
        assert main(arguments) == 0
        assert "penstock train CartPole-v1" in capsys.readouterr().out


def test_bench_is_handed_its_own_arguments(monkeypatch: pytest.MonkeyPatch):
    heard: list[str] = []

    def bench(arguments: list[str]) -> int:
        heard.extend(arguments)
        return 7

    module = types.ModuleType("penstock.bench.command")
    module.main = bench  # type: ignore[attr-defined]  # the one name that the command line asks for
    monkeypatch.setitem(sys.modules, "penstock.bench.command", module)
    assert main(["bench", "limits", "--quick"]) == 7
    assert heard == ["limits", "--quick"]


def _in_its_own_process(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", ["['--help']", "['train', '--help']"])
def test_help_needs_nothing_heavy(arguments: str):
    code = f"""
import sys
from penstock.cli.main import main
try:
    main({arguments})
except SystemExit:
    pass
print(*(name for name in ('torch', 'gymnasium', 'rich', 'numpy', 'msgspec') if name in sys.modules), file=sys.stderr)
"""
    done = _in_its_own_process(code)
    assert done.stderr.strip() == ""
    assert "penstock train" in done.stdout


def test_help_is_fast():
    """Under 0.4 s is the promise; the best of three keeps a busy machine from deciding."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        subprocess.run([sys.executable, "-m", "penstock", "--help"], stdout=subprocess.DEVNULL, check=True)
        times.append(time.perf_counter() - start)
    assert min(times) < 0.4


def test_the_reader_of_our_output_may_leave():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([sys.executable, "-m", "penstock", "presets"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert done.stderr == b""
    assert done.returncode == 141


Evaluated = Callable[..., list[float]]


def _evaluation(monkeypatch: pytest.MonkeyPatch, evaluate: Evaluated) -> None:
    module = types.ModuleType("penstock.workers.evaluation")
    module.evaluate = evaluate  # type: ignore[attr-defined]  # the one name that the command line asks for
    monkeypatch.setitem(sys.modules, "penstock.workers.evaluation", module)


def test_eval_hands_over_and_reports(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    asked: dict[str, Any] = {}

    def evaluate(run: Path, **options: Any) -> list[float]:
        asked.update(options, run=run)
        return [1.0, 2.0, 3.0]

    _evaluation(monkeypatch, evaluate)
    flags = "--episodes 3 --seed 5 --stochastic --checkpoint 12 --trust a --trust b.c --render --json"
    assert main(["eval", "runs/x", *flags.split()]) == 0
    chosen = {"episodes": 3, "seed": 5, "deterministic": False, "version": 12, "trust": ("a", "b.c"), "render": True}
    assert asked == {"run": Path("runs/x"), **chosen}
    result = json.loads(capsys.readouterr().out)
    assert (result["return_mean"], result["return_std"], result["episodes"]) == (2.0, 1.0, 3)
    assert result["return_low"] == pytest.approx(2.0 - 4.3027 / 3**0.5)
    assert main(["eval", "runs/x"]) == 0
    assert (asked["episodes"], asked["seed"], asked["deterministic"], asked["version"]) == (20, 0, True, None)
    assert capsys.readouterr().out == "return 2 ± 1, 95 % interval of the mean -0.4842 to 4.484, 3 episodes\n"
