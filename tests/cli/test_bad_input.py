"""Bad input: one line that says what to do, exit code 2, no traceback, nothing started, nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
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
        ("train CartPole-v1 --set lerning_rate=1", "unknown setting 'lerning_rate'; did you mean learning_rate"),
        ("train CartPole-v1 --set learner.gamma", "--set learner.gamma is not of the form room.key=value"),
        ("train CartPole-v1 --set gamma=x", "learner.gamma='x': expected a number"),
        ("train CartPole-v1 --set batch_size=300", "nearest legal: 256 or 512"),
        ("train CartPole-v1 --schedule sync --staleness 2", "use --schedule overlap --staleness 2"),
        ("train CartPole-v1 --schedule async --workers 0", "use --workers 1 or more"),
        ("train CartPole-v1 --schedule async --depth 9", "the nearest is 2"),
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
