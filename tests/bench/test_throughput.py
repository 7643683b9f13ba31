"""The order of runs, pairs and ratios, with contenders that only pretend; how children are read."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from penstock.bench.contenders import find_peer_python, last_json_line, marks_of
from penstock.bench.jobs import JOBS, peer_settings, penstock_arguments
from penstock.bench.throughput import Measured, best_peer, measure, ratios, report
from penstock.core.errors import Refused, RunFailed


@dataclass
class Pretender:
    name: str
    ours: bool
    rates: list[float]
    log: list[tuple[str, int]] = field(default_factory=list)

    def run(self, seed: int) -> Measured:
        self.log.append((self.name, seed))
        return Measured(self.rates[seed - 1], 1.0, {})


def contenders(log: list[tuple[str, int]]) -> list[Pretender]:
    return [
        Pretender("penstock overlap", True, [300.0, 330.0], log),
        Pretender("sb3, 1 thread", False, [100.0, 110.0], log),
        Pretender("sb3, 2 threads", False, [90.0, 150.0], log),
    ]


def test_runs_alternate_and_a_round_shares_its_seed():
    log: list[tuple[str, int]] = []
    said: list[str] = []
    measure(contenders(log), 2, say=said.append)
    names = ["penstock overlap", "sb3, 1 thread", "sb3, 2 threads"]
    assert log == [(name, 1) for name in names] + [(name, 2) for name in names]
    assert said[3] == "run 4 of 6: penstock overlap: 330 steps/s"


def test_the_peer_counts_at_its_best():
    results = measure(contenders([]), 2, say=lambda _: None)
    best = best_peer(results)  # medians 105 and 120
    assert best is not None
    assert best.name == "sb3, 2 threads"
    # pair by pair against that one: 300 / 90 and 330 / 150
    assert ratios(results)["penstock overlap"].mean == pytest.approx(((300 / 90) * (330 / 150)) ** 0.5)


def test_report_has_the_fraction_of_the_limit():
    found = report(measure(contenders([]), 2, say=lambda _: None), 630.0)
    assert found["results"][0]["fraction_of_limit"] == pytest.approx(315 / 630)
    assert found["best_peer"] == "sb3, 2 threads"
    assert list(found["ratios"]) == ["penstock overlap"]


def test_without_a_peer_there_is_no_ratio():
    found = report(measure(contenders([])[:1], 1, say=lambda _: None), 600.0)
    assert (found["best_peer"], found["ratios"]) == (None, {})


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS)
def test_both_sides_get_the_same_job(job):
    arguments = penstock_arguments(job, schedule="async", steps=10, seed=3, sets=["learner.gamma=0.5"], workers=2)
    sets = dict(text.split("=") for flag, text in pairwise(arguments) if flag == "--set")
    peer = peer_settings(job, steps=10, seed=3, threads=1)
    rows = 1024 if job.network == "nature" else 2048
    assert int(sets["envs.n_envs"]) * int(sets["learner.n_steps"]) == rows == peer["n_envs"] * peer["learner"]["n_steps"]
    assert (int(sets["learner.batch_size"]), int(sets["learner.n_epochs"])) == (job.batch_size, 4)
    assert (peer["learner"]["batch_size"], peer["learner"]["n_epochs"]) == (job.batch_size, 4)
    assert sets["learner.gamma"] == "0.5"  # a person's own comes last


def test_penstock_accepts_what_it_is_told(monkeypatch: pytest.MonkeyPatch):
    from penstock.cli.commands import Train
    from penstock.cli.parser import parse
    from penstock.cli.train import built_from

    arguments = penstock_arguments(JOBS["cartpole"], schedule="async", steps=10, seed=3, sets=[], workers=None)
    job = built_from(parse(Train, "train", arguments[1:])).job
    assert (job.env.n_envs, job.env.n_blocks, job.learner.n_steps) == (64, 2, 32)
    assert (job.flow.schedule, job.run.until_return, job.model.hidden_sizes) == ("async", None, (64, 64))


def test_a_childs_last_line_is_read():
    said, cpu_s = last_json_line([sys.executable, "-c", "print('noise'); print('{\"a\": 1}')"], "it")
    assert said == {"a": 1}
    assert cpu_s > 0


@pytest.mark.parametrize(
    ("code", "error", "message"),
    [
        ("import sys; sys.exit('boom')", RunFailed, "it failed with exit code 1: boom"),
        ("print('words')", RunFailed, "it did not end with a line of JSON"),
        ("import sys; print('penstock: no such setting', file=sys.stderr); sys.exit(2)", Refused, "^no such setting"),
    ],
)
def test_a_child_that_fails_is_named(code: str, error: type[Exception], message: str):
    with pytest.raises(error, match=message):
        last_json_line([sys.executable, "-c", code], "it")


def test_marks_are_steps_and_seconds(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"env_steps": 10, "wall_s": 1.5}\n{"env_steps": 30, "wall_s": 2.5}\n')
    assert marks_of(path) == [(10, 1.5), (30, 2.5)]


def test_a_peer_that_is_not_there_is_refused_with_the_way_to_make_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr("penstock.bench.contenders.find_spec", lambda _: None)
    with pytest.raises(Refused, match=r"python -m venv \.venv-peers"):
        find_peer_python(None)
    with pytest.raises(Refused, match=r"cannot start --peer-python .*No such file"):
        find_peer_python(str(tmp_path / "python"))
