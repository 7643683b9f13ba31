"""The working directory belongs to the person's code: whoever changes it, a run stays where it was asked for."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from script_environments import Wanders

import penstock
from penstock.api import request_of
from penstock.config.building import assignments_of, build
from penstock.core.errors import Refused
from penstock.run.training import Outcome, train
from penstock.workers.forkserver import ForkServer

pytestmark = pytest.mark.processes

TINY: dict[str, Any] = {"steps": 64, "n_envs": 2, "n_blocks": 2, "n_steps": 16, "batch_size": 32, "hidden_sizes": (4,)}
WHOLE = ["checkpoints", "config.toml", "journal.jsonl", "metrics.jsonl", "summary.json"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("home", "elsewhere"):
        (tmp_path / name).mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


def carried_out(server: ForkServer, *, wanders: bool = True, workers: int = 1, **extra: Any) -> Outcome:
    arguments = {"to": str(Path.cwd().parent / "elsewhere") if wanders else "."}
    settings = {**TINY, "workers": workers, "tensorboard": False, "envs": {"arguments": arguments}}
    built = build("script:Wanders", preset="none", assignments=assignments_of(settings))
    return train(request_of(built, environment=Wanders, quiet=True, **extra), server)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("out", [None, "mine"])
def test_an_environment_that_changes_it_does_not_move_the_run(fork_server, home, workers, out):
    outcome = carried_out(fork_server, workers=workers, out=None if out is None else Path(out))
    assert outcome.error is None
    directory = home / "mine" if out else next((home / "runs").iterdir())
    assert names(directory) == WHOLE
    assert names(home.parent / "elsewhere") == []
    assert outcome.run_dir == directory


def test_nor_does_a_callback(fork_server, home):
    def callback(record: dict[str, Any]) -> None:
        os.chdir(home.parent / "elsewhere")

    carried_out(fork_server, wanders=False, callback=callback, out=Path("mine"))
    assert names(home / "mine") == WHOLE
    assert names(home.parent / "elsewhere") == []


def test_a_run_and_its_summary_are_found_from_elsewhere(home):
    run = penstock.train("CartPole-v1", preset="none", out="mine", workers=0, quiet=True, **TINY)
    os.chdir(home.parent / "elsewhere")
    assert run.policy(np.zeros(4)) in (0, 1)
    assert penstock.load(run.summary["run_dir"])(np.zeros(4)) in (0, 1)
    assert run.summary == json.loads((home / "mine" / "summary.json").read_text())


def test_other_weights_are_found_although_the_environment_changes_it(fork_server, home):
    carried_out(fork_server, wanders=False, out=Path("first"))
    assert carried_out(fork_server, out=Path("second"), init_from=Path("first")).error is None


@pytest.mark.parametrize("where", ["out", "cwd"])
def test_a_directory_whose_name_is_no_text_is_refused_at_once(fork_server, home, monkeypatch, where):
    """The summary names it, in UTF-8."""
    odd = os.fsdecode(b"bad\xffname")
    if where == "cwd":
        Path(odd).mkdir()
        monkeypatch.chdir(odd)
    with pytest.raises(Refused, match=r"bad\\xffname.* is no text in UTF-8; name another directory with --out"):
        carried_out(fork_server, wanders=False, out=Path(odd) if where == "out" else None)
    assert names(Path.cwd()) == []
