"""`bench overlap`: delays that are the runs' own, the law's yardstick, the frozen baseline, tables and refusals."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import json
import re
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from penstock.bench import command
from penstock.bench.overlap import children, classic, delays, plot, tables
from penstock.bench.overlap.cases import LANES, LAYOUTS, MEAN_S, ROUND_S, ROWS, STEPS, Case, hts_speedup
from penstock.bench.overlap.endless import make_endless
from penstock.core.errors import MissingExtra, Refused
from penstock.core.seeds import episode_seed
from penstock.envs.known.latency import Latency

PINNED = "7428a258547dc0adcf01e79403e85bdaa3c0dadd59ae9bf281765f72c001c6f5"
"""Changing the classic loop makes published figures incomparable: do it on purpose, and say so in docs/results.md."""

CLASSIC = Path(str(classic.__file__))


def test_the_classic_loop_is_frozen():
    assert hashlib.sha256(CLASSIC.read_bytes()).hexdigest() == PINNED


def test_the_classic_loop_knows_nothing_of_the_runtime():
    tree = list(ast.walk(ast.parse(CLASSIC.read_text())))
    imported = [node.module or "" for node in tree if isinstance(node, ast.ImportFrom)]
    imported += [name.name for node in tree if isinstance(node, ast.Import) for name in node.names]
    assert [name for name in imported if name.startswith("penstock")] == ["penstock.bench"], "of which reference_kernels alone"


# ---------------------------------------------------------------- delays and the model


@pytest.mark.parametrize(
    ("variance", "m1", "ma", "gain"), [(0.0625, 1.49, 1.04, 1.43), (1.0, 3.39, 1.16, 2.91), (10.0, 8.94, 1.55, 5.78)]
)
def test_costs_are_those_of_the_published_table(variance: float, m1: float, ma: float, gain: float):
    found = delays.case_of(variance, 1.0)
    assert (found.m1, found.ma) == pytest.approx((m1, ma), rel=0.01)
    assert hts_speedup(found.m1, found.ma, 0.0) == pytest.approx(gain, rel=0.01)
    assert found.wait_s == pytest.approx(ma * 128 * 0.005, rel=0.01), "learning as long as collecting"


def test_a_lane_in_a_run_draws_the_delays_that_are_simulated():
    for lane, stream in enumerate(delays.streams(2.0, seed=7)):
        environment = make_endless(MEAN_S, 2.0)
        assert isinstance(environment, Latency)
        environment.reset(seed=episode_seed(7, lane, 0))  # as envs/lane.py does
        assert [environment.next_delay_s() for _ in range(150)] == list(islice(stream, 150))


def test_m1_of_drawn_delays_is_the_mean_of_each_steps_slowest():
    lanes = [list(islice(stream, 3)) for stream in delays.streams(1.0, seed=3)]
    slowest = [max(lane[step] for lane in lanes) for step in range(3)]
    assert delays.drawn_m1(1.0, 3, 3) == pytest.approx(sum(slowest) / 3 / 0.005)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_the_simulation_of_even_environments_is_known(layout: Any):
    """Hardly any variance: sync takes collecting and learning, overlap the longer of both."""
    even = Case(1e-9, 1.0, 1.0, 0.5)
    found = {
        schedule: delays.simulated_sps(even, schedule, layout, seed=1, batches=10, train_s=even.wait_s)  # type: ignore[arg-type]
        for schedule in ("sync", "overlap", "async")
    }
    assert found["sync"] == pytest.approx(ROWS / (1.5 * ROUND_S), rel=1e-3)
    assert found["overlap"] == pytest.approx(ROWS / ROUND_S, rel=1e-3)
    assert found["async"] == pytest.approx(ROWS / ROUND_S, rel=1e-3)


def test_lengths_of_runs():
    case = Case(1.0, 3.0, 1.0, 1.0)  # collects for 0.64 s, learns as long; the classic loop steps for 1.92 s
    assert (case.batches("overlap", 8.0), case.batches("sync", 8.0)) == (13, 7)  # 8 / 0.64 and 8 / 1.28, rounded up
    assert case.rollouts(8.0) == 4  # 8 / 2.56, rounded up
    assert (case.batches("sync", 0.1), case.rollouts(0.1)) == (5, 2)


# ---------------------------------------------------------------- children


def test_the_classic_loop_waits_for_the_slowest_of_every_step():
    settings = {"environment": children.ENVIRONMENT, "arguments": {"mean_s": 0.005, "variance": 1.0}, "ppo": None}
    settings |= {"seeds": delays.lane_seeds(5), "steps": 5, "rollouts": 2, "wait_s": 0.03}
    took = classic.measure(settings)
    slowest_s = 10 * 0.005 * delays.drawn_m1(1.0, 5, 10)
    in_turn_s = sum(sum(islice(stream, 10)) for stream in delays.streams(1.0, 5))
    assert slowest_s <= took["rollout_s"] < in_turn_s
    assert took["learn_s"] >= 2 * 0.03


def test_the_classic_loop_can_really_learn():
    ppo = {"batch_size": 64, "n_epochs": 2, "inputs": 4, "outputs": 2}
    settings = {"environment": children.ENVIRONMENT, "arguments": {"mean_s": 0.0, "variance": 1.0}, "ppo": ppo}
    assert classic.measure({**settings, "seeds": [1, 2], "steps": 64, "rollouts": 1, "wait_s": 0.0})["learn_s"] > 0


@pytest.mark.parametrize("share", [0.5, None])
def test_penstock_accepts_what_it_is_told(share: float | None):
    from penstock.cli.commands import Train
    from penstock.cli.parser import parse
    from penstock.cli.train import built_from

    arguments = children.train_arguments(Case(4.0, 6.2, 1.3, share), "async", LAYOUTS["16x1"], seed=3, batches=6)
    job = built_from(parse(Train, "train", arguments[1:])).job
    assert (job.env.n_envs, job.env.n_blocks, job.learner.n_steps, job.run.workers) == (16, 16, 128, 2)
    assert (job.env.stepping, job.env.parallel, job.env.arguments) == ("drift", "threads", {"mean_s": 0.005, "variance": 4.0})
    assert (job.run.steps, job.run.seed, job.flow.schedule) == (6 * 2048, 3, "async")
    assert job.algorithm.endswith("TimedWait" if share is not None else "PPO")


@pytest.mark.processes
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_small_run_is_measured(layout: Any, monkeypatch: pytest.MonkeyPatch):
    """8 steps of 1 ms and a learner of 50 ms, so the learner sets the pace: 128 rows every 50 ms."""
    for name, value in {"STEPS": 8, "ROWS": 8 * LANES, "MEAN_S": 0.001}.items():
        monkeypatch.setattr(children, name, value)
    case = Case(0.25, 2.0, 1.1, 0.05 / 1.1 / ROUND_S)
    run = children.penstock(case, "overlap", layout, seed=1, batches=10)
    assert 0.05 <= run.train_s < 0.2
    assert 0.2 * 128 / 0.05 < run.sps <= 128 / 0.05
    assert (run.facts["env_steps"], run.facts["short_segments"]) == (1280, 0)


def test_the_learners_time_is_that_of_the_steady_part(tmp_path: Path):
    """Busy for 0.5 of 4 s by the second version, 3.5 of 10 s by the fifth: 3 s for three batches."""
    records = [
        {"version": 1, "env_steps": 10, "learner_busy": 0.9, "sps": 10},
        {"version": 2, "env_steps": 20, "learner_busy": 0.125, "sps": 5},
        {"version": 5, "env_steps": 100, "learner_busy": 0.35, "sps": 10},
    ]
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))
    assert children.steady_train_s(path) == pytest.approx(1.0)


# ---------------------------------------------------------------- the command


def pretend(monkeypatch: pytest.MonkeyPatch, *, share_of_law: float = 0.95, cost: float = 1.01) -> list[str]:
    """Runs that take no time: each reaches this share of what the law allows, the classic loop this much over its delays."""
    ran: list[str] = []

    def run_classic(case: Case, *, seed: int, rollouts: int) -> children.ClassicRun:
        ran.append(f"classic {case.label} {seed}")
        drawn = delays.drawn_m1(case.variance, seed, rollouts * STEPS)
        learning = 0.2 if case.share is None else case.wait_s / ROUND_S
        return children.ClassicRun((drawn + learning) * cost - learning, learning)

    def run_penstock(case: Case, schedule: Any, layout: Any, *, seed: int, batches: int) -> children.PenstockRun:
        ran.append(f"{schedule} {layout.name} {case.label} {seed}")
        train_s = 0.1 if case.share is None else case.wait_s
        allowed = delays.simulated_sps(case, schedule, layout, seed=seed, batches=batches, train_s=train_s)
        return children.PenstockRun(share_of_law * allowed, train_s, 1.0, {})

    monkeypatch.setattr(children, "classic", run_classic)
    monkeypatch.setattr(children, "penstock", run_penstock)
    return ran


SMALL = ["--variance", "1", "--share", "0.5", "--schedule", "overlap", "--layout", "16x1", "--seconds", "2"]


def test_each_round_runs_everybody_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    ran = pretend(monkeypatch)
    assert command.main(["overlap", *SMALL, "--rounds", "2", "--json"]) == 0
    timed, real = "variance 1, L = 0.5 of collecting", "variance 1, PPO"
    each = ["classic {} {}", "overlap 16x1 {} {}"]
    assert ran == [line.format(case, seed) for case in (timed, real) for seed in (1, 2) for line in each]
    said = capsys.readouterr()
    found = json.loads(said.out)
    row, ppo = found["rows"]
    assert row["results"][0]["fraction"] == pytest.approx(0.95)
    assert row["classic"]["off"] == pytest.approx(0.01)
    assert row["results"][0]["speedup"] == pytest.approx(row["hts_speedup"], rel=0.25)
    assert (ppo["learner"], ppo["share"], ppo["learning"]) == ("ppo", None, pytest.approx(0.2))
    assert "run 8 of 8: variance 1, PPO: overlap 16x1:" in said.err
    assert "variance 0.25 up: everywhere" in said.err


def test_by_default_all_is_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    ran = pretend(monkeypatch)
    monkeypatch.setattr(delays, "simulated_sps", lambda *_, **__: 3000.0)
    assert command.main(["overlap", "--json"]) == 0
    assert len(ran) == len(set(ran)) == (6 * 3 + 1) * 7
    said = re.search(r"133 runs, about (\d+) min", capsys.readouterr().err)
    assert said is not None
    assert int(said[1]) < 25, "as docs/benchmarks.md promises"


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"share_of_law": 0.89}, "variance 0.25 up: missed by variance 1, L = 0.5 ma, overlap 16x1: 89.0%"),
        ({"cost": 1.06}, "classic within 5% of m1 + L: missed by variance 1, L = 0.5 ma: +6.0%"),
    ],
)
def test_what_is_missed_is_said(
    trouble: dict[str, float], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pretend(monkeypatch, **trouble)
    command.main(["overlap", *SMALL, "--learner", "wait"])
    assert said in capsys.readouterr().out


def test_what_was_measured_can_be_shown_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    pretend(monkeypatch)
    command.main(["overlap", *SMALL, "--json"])
    said = capsys.readouterr()
    path = tmp_path / "overlap.json"
    path.write_text(said.out)
    monkeypatch.setattr(children, "classic", None)
    assert command.main(["overlap", "--show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert shown in said.err
    assert "16x1" in shown


@pytest.mark.parametrize("text", ["", "{", "[]", '{"bench": "limits"}'])
def test_what_is_no_result_is_refused(text: str, tmp_path: Path):
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(Refused, match=r"--show .*found\.json: it "):
        command.main(["overlap", "--show", str(path)])


def test_a_picture_without_matplotlib_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    ran = pretend(monkeypatch)
    monkeypatch.setattr(plot, "find_spec", lambda _: None)
    with pytest.raises(MissingExtra, match=r"--plot needs the extra 'sweep'"):
        command.main(["overlap", *SMALL, "--plot", str(tmp_path / "overlap.png")])
    assert ran == []


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is None, reason="needs the extra sweep")
def test_the_picture_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    pretend(monkeypatch)
    path = tmp_path / "overlap.png"
    assert command.main(["overlap", *SMALL, "--variance", "2", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")


def test_only_what_is_promised_is_judged():
    """sync is no overlap, and variance 0.0625 leaves too little to gain."""
    rows = [
        {"variance": variance, "share": 0.0, "classic": {"off": 0.0}, "results": [{**low, "schedule": schedule}]}
        for low in [{"layout": "1x16", "fraction": 0.5}]
        for variance, schedule in ((0.0625, "overlap"), (1.0, "sync"))
    ]
    assert tables.verdict(rows).count("everywhere") == 2
