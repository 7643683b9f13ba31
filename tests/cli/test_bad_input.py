"""Bad input: one line that says what to do, exit code 2, no traceback, nothing started, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.config.building import assignments_of, build
from penstock.config.files import to_toml
from penstock.core.errors import EnvironmentFault


@pytest.fixture(autouse=True)
def _nothing_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever reaches the run fails the test; whatever is written would show in the directory."""

    def train(*_: Any, **__: Any) -> None:
        raise AssertionError("a run was started")

    monkeypatch.setattr("penstock.cli.train.train", train)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("tran CartPole-v1", "unknown command 'tran'; did you mean train?"),
        ("--stepz 5", "starts with a command, not '--stepz'"),
        ("train", "needs an environment, such as CartPole-v1, or --resume RUN"),
        ("train CartPole-v1 --stepz 5", "unknown option of penstock train '--stepz'; did you mean --steps"),
        ("train CartPole-v1 --stepz=5", "did you mean --steps"),
        ("train CartPole-v1 --step 5", "did you mean --steps"),
        ("train CartPole-v1 Pendulum-v1", "has no place for 'Pendulum-v1'"),
        ("train CartPole-v1 --seed", "argument --seed: expected one argument"),
        ("train CartPole-v1 --steps many", "run.steps='many': expected a whole number"),
        ("train CartPole-v1 --algo pppo", "unknown algorithm 'pppo'; did you mean ppo?"),
        ("train CartPole-v1 --preset cartpol", "unknown preset 'cartpol'; did you mean cartpole-ppo"),
        ("train CartPole-v1 --set lerning_rate=1", "unknown setting of ppo 'lerning_rate'; did you mean learning_rate"),
        ("train CartPole-v1 --set learner.gamma", "--set learner.gamma is not of the form room.key=value"),
        ("train CartPole-v1 --set gamma=x", "learner.gamma='x': expected a number"),
        ("train CartPole-v1 --set batch_size=300", "nearest legal: 256 or 512"),
        ("train CartPole-v1 --schedule sync --staleness 2", "use --schedule overlap --staleness 2"),
        ("train CartPole-v1 --schedule async --workers 0", "use --workers 1 or more"),
        ("train CartPole-v1 --schedule async --depth 9", "the nearest is 2"),
        ("train CartPole-v1 --set bogus.lr=1", "unknown section of settings 'bogus'"),
        ("train CartPole-v1 --set envs.id=Acrobot-v1", "two environments are named: CartPole-v1 and envs.id=Acrobot-v1"),
        ("train CartPole-v1 --set num_minibatches=3", "nearest legal: 2 or 4"),
        ("train CartPole-v1 --set n_steps=100000007 --set batch_size=1000", "does not divide the 6400000448 rows"),
        ("train CartPole-v1 --set learner_threads=0", "compute.learner_threads must be 1 or more"),
        ("train CartPole-v1 --device foo", "--device foo is none: those are cpu, cuda, mps and xpu"),
        ("train CartPole-v1 --device cuda:x", "--device cuda:x is none"),
        ("train CartPole-v1 --set checkpoint.keep=-5", "checkpoint.keep must be 1 or more"),
        ("train CartPole-v1 --set checkpoint.every=-1", "checkpoint.every must be 0 or more"),
        ("train CartPole-v1 --set metrics.every_s=nan", "metrics.every_s='nan': expected a number, not NaN"),
        ("train CartPole-v1 --until-return nan", "run.until_return='nan': expected a number or none, not NaN"),
        ("train Pendulum-v1 --set log_std_init=nan", "model.log_std_init='nan': expected a number, not NaN"),
        ("train Pendulum-v1 --set log_std_init=inf", "model.log_std_init must be finite, not inf"),
        ("train CartPole-v1 --set learning_rate=inf", "learner.learning_rate must be above 0 and finite, not inf"),
        ("train CartPole-v1 --set vf_coef=inf", "learner.vf_coef must be 0 or above, and finite, not inf"),
        ("train CartPole-v1 --chaos slow:1=10", "needs --workers"),
        ("train CartPole-v1 --chaos slow:2=10 --workers 2", "names a worker that is not there"),
        ("train CartPole-v1 --seed -1", "--seed must be 0 or more"),
        ("train CartPole-v1 --seed 1e30", "run.seed='1e30': expected a whole number"),
        ("train CartPole-v1 --env-arg gravity", "--env-arg gravity is not of the form key=value"),
        ("train CartPole-v1 --chaos earthquake", "--chaos knows"),
        ("train CartPole-v1 --resume runs/x", "leave out 'CartPole-v1'"),
        ("train --resume runs/x --algo ppo", "leave out --algo"),
        ("train --resume runs/x", "cannot read runs/x/config.toml: No such file"),
        ("eval", "needs the directory of a run"),
        ("eval runs/x --episodes 0", "--episodes 0 is too small; 1 is the least"),
        ("eval runs/x --episodes few", "--episodes='few': expected a whole number"),
        ("presets nonesuch", "unknown preset 'nonesuch'"),
        ("doctor --fix", "unknown option of penstock doctor '--fix'"),
    ],
)
def test_is_refused_in_one_line(arguments: str, message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    assert main(arguments.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("penstock: ")
    assert message in printed.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [["--out", "bad\udcffname"], ["--env-arg", "name=\udcff"], ["--set", "envs.id=\udcff"]])
def test_what_is_no_text_is_refused_in_one_line(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    """Bytes that are no UTF-8 reach Python as lone surrogates; records and settings are written in UTF-8."""
    assert main(["train", "CartPole-v1", *arguments]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "\\xff" in line
    assert line.endswith("is no text in UTF-8; rename it")


def test_what_the_machine_refuses_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def train(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device", "runs/x/summary.json")

    monkeypatch.setattr("penstock.cli.train.train", train)
    assert main(["train", "CartPole-v1", "--quiet"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "penstock: OSError: No space left on device (runs/x/summary.json); see penstock doctor"


@pytest.mark.parametrize(
    ("reason", "more", "no_more"),
    [
        ("steps", "--steps 9000", "--steps 5000"),
        ("steps", "--steps 5001", "--until-return 300"),
        ("minutes", "--minutes 5", "--minutes 4"),
        ("minutes", "--minutes none", "--steps 9000"),
        ("return", "--until-return 3", "--until-return -1"),
        ("return", "--until-return none", "--steps 5000"),
    ],
)
def test_a_finished_run_is_not_asked_for_more_in_vain(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, reason: str, more: str, no_more: str
):
    job = build("CartPole-v1", assignments=assignments_of({"steps": 5000, "minutes": 4.0, "until_return": 0.0})).job
    (tmp_path / "config.toml").write_text(to_toml(job))
    (tmp_path / "summary.json").write_text(f'{{"stop_reason": "{reason}", "env_steps": 5000, "return_mean": 9.0}}')
    assert main(["train", "--resume", str(tmp_path), *more.split()]) == 2
    assert "--init-from" in capsys.readouterr().err
    for arguments in ("", no_more):
        assert main(["train", "--resume", str(tmp_path), *arguments.split(), "--json", "--quiet"]) == 0


def test_a_run_that_fails_says_where_after_what_the_worker_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def train(*_: Any, **__: Any) -> None:
        raise EnvironmentFault("Foo-v0 raised\nin step 7", details="Traceback ...\nValueError: 7\n")

    monkeypatch.setattr("penstock.cli.train.train", train)
    assert main(["train", "CartPole-v1", "--quiet"]) == 1
    assert capsys.readouterr().err.splitlines() == ["Traceback ...", "ValueError: 7", "penstock: Foo-v0 raised in step 7"]


def test_what_is_no_error_of_ours_keeps_its_traceback():
    with pytest.raises(AssertionError, match="a run was started"):
        main(["train", "CartPole-v1", "--quiet"])


def test_interrupted_before_the_start(monkeypatch: pytest.MonkeyPatch):
    def train(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.cli.train.train", train)
    assert main(["train", "CartPole-v1", "--quiet"]) == 130
