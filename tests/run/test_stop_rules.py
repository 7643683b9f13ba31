"""When a run is over, asked at every version boundary; and what the recorder remembers of it."""

from __future__ import annotations

import errno
import json
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from penstock.algorithms.settings import PPOSettings
from penstock.envs.settings import EnvSettings
from penstock.flow.events import Member, TrainBatch
from penstock.flow.settings import FlowSettings
from penstock.metrics.panel import PanelView, Silence
from penstock.run.directory import Journal
from penstock.run.job import Job
from penstock.run.recorder import Recorder
from penstock.run.roster import Worker
from penstock.run.settings import RunSettings
from penstock.run.telemetry import Telemetry
from penstock.transport.messages import Done, Trained

ROWS = 100


class Clock:
    def __init__(self) -> None:
        self.time = 50.0

    def now(self) -> float:
        return self.time


class Kept:
    """A sink that keeps."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.closed = False

    def write(self, record: Any) -> None:
        self.records.append(dict(record))

    def close(self) -> None:
        self.closed = True


class Desk:
    """A recorder that is told of one version after another, of 100 rows and some episodes each."""

    def __init__(self, directory: Any, *, callback: Any = None, threshold: float | None = None, **run: Any) -> None:
        settings = RunSettings(**run)
        self.clock, self.sink, self.path = Clock(), Kept(), directory / "journal.jsonl"
        job = Job(
            algo="ppo",
            algorithm="nothing:Nothing",
            env=EnvSettings(id="Test-v0"),
            learner=PPOSettings(),
            flow=FlowSettings(),
            run=settings,
        )
        self.recorder = Recorder(
            job,
            clock=self.clock,
            started_s=self.clock.now(),
            telemetry=Telemetry(staleness_bound=0, frame_skip=1),
            journal=Journal(self.path),
            sinks=[self.sink],
            panel=Silence(),
            callback=callback,
            run_dir=str(directory),
            threshold=threshold,
        )
        self.version = 0

    def train(self, *returns: float) -> str | None:
        self.version += 1
        self.clock.time += 1.0
        message = Trained(
            version=self.version,
            rows=ROWS,
            masked_rows=3,
            samples=4 * ROWS,
            updates=8,
            staleness=(60, 40),
            episode_returns=returns,
            episode_lengths=(5,) * len(returns),
            metrics={"policy_loss": 0.5},
            busy_s=0.5,
            digest=f"d{self.version}",
            chaos_events=0,
        )
        return self.recorder.batch_trained(message)

    def journal(self) -> list[dict[str, Any]]:
        self.recorder.close()
        return [json.loads(line) for line in self.path.read_text().splitlines()]


@pytest.mark.parametrize(("steps", "versions"), [(1, 1), (100, 1), (101, 2), (250, 3)])
def test_the_step_budget_is_reached_with_the_first_batch_at_or_past_it(tmp_path, steps, versions):
    desk = Desk(tmp_path, steps=steps)
    reasons = [desk.train() for _ in range(versions)]
    assert reasons == [None] * (versions - 1) + ["steps"]


def test_the_journal_has_a_version_on_disk_before_metrics_have_it(tmp_path, monkeypatch):
    """Whatever ends the run with SIGKILL: a version that metrics.jsonl names has its batch and digest in the journal."""
    desk = Desk(tmp_path)
    seen: list[list[str]] = []
    monkeypatch.setattr(desk.sink, "write", lambda record: seen.append(desk.path.read_text().splitlines()))
    for version in (0, 1):
        desk.recorder.batch_taken(TrainBatch(version, (Member(version, 0, 1, 0, 0, 5),)))
        desk.train()
    for count, lines in enumerate(seen, 1):
        assert [json.loads(line)["event"] for line in lines] == ["batch", "trained"] * count
        assert json.loads(lines[-1])["digest"] == f"d{count}"


def test_a_target_return_needs_a_full_window(tmp_path):
    desk = Desk(tmp_path, until_return=10.0)
    assert desk.train(*[50.0] * 99) is None
    assert desk.train(10.0) == "return"


def test_a_target_return_is_met_by_the_mean_not_by_luck(tmp_path):
    desk = Desk(tmp_path, until_return=10.0)
    assert desk.train(*[9.9] * 100) is None
    assert desk.train(*[10.1] * 49) is None
    assert desk.train(10.2) == "return"


def test_minutes_are_counted_from_the_start(tmp_path):
    desk = Desk(tmp_path, minutes=0.05)  # three seconds; a version takes one
    assert [desk.train(), desk.train(), desk.train()] == [None, None, "minutes"]
    assert desk.recorder.out_of_time()
    assert not Desk(tmp_path).recorder.out_of_time()


def test_what_was_achieved_counts_before_what_was_used_up(tmp_path):
    desk = Desk(tmp_path, until_return=1.0, steps=1, minutes=1e-9)
    assert desk.train(*[1.0] * 100) == "return"
    assert Desk(tmp_path, steps=1, minutes=1e-9).train() == "steps"


@pytest.mark.parametrize(("answer", "reason"), [(True, "signal"), (1, None), (None, None), ("yes", None)])
def test_a_callback_stops_by_returning_true_and_by_nothing_else(tmp_path, answer, reason):
    assert Desk(tmp_path, callback=lambda record: answer).train() == reason


def test_a_callback_cannot_change_what_is_written(tmp_path):
    desk = Desk(tmp_path, callback=lambda record: record.clear())
    desk.train(3.0)
    assert desk.sink.records[0]["return_mean"] == 3.0


def test_solved_is_noted_once_and_ends_nothing(tmp_path):
    desk = Desk(tmp_path, threshold=5.0)
    assert desk.train(*[4.0] * 100) is None
    assert desk.recorder.solved_at is None
    assert desk.train(*[6.0] * 100) is None
    assert desk.train(*[7.0] * 100) is None
    assert desk.recorder.solved_at == (200, 2.0)


def test_progress_is_the_share_of_the_budget_and_never_more(tmp_path):
    desk = Desk(tmp_path, steps=250)
    shares = [desk.recorder.progress]
    for _ in range(3):
        desk.train()
        shares.append(desk.recorder.progress)
    assert shares == [0.0, 0.4, 0.8, 1.0]


def test_every_version_is_a_record_and_a_line_of_the_journal(tmp_path):
    desk = Desk(tmp_path)
    desk.train(1.0, 3.0)
    desk.train()
    assert [(r["version"], r["env_steps"], r["samples_consumed"], r["updates"]) for r in desk.sink.records] == [
        (1, 100, 400, 8),
        (2, 200, 800, 16),
    ]
    first = desk.sink.records[0]
    assert (first["return_mean"], first["return_std"], first["return_last"], first["episodes"]) == (2.0, 1.0, 3.0, 2)
    assert (first["staleness_mean"], first["staleness_max"], first["policy_loss"]) == (0.4, 1, 0.5)
    assert [(e["event"], e["version"], e["digest"]) for e in desk.journal()] == [("trained", 1, "d1"), ("trained", 2, "d2")]
    assert desk.sink.closed


def test_the_story_of_a_worker_is_its_own(tmp_path):
    desk = Desk(tmp_path)
    workers = [Worker(number, "sampler", number, (number,)) for number in (0, 1)]
    for worker in workers:
        desk.recorder.event("worker_started", worker=worker.incarnation)
    desk.recorder.event("hand_in", worker=1, segment=7)
    assert "hand_in" in desk.recorder.story_of(workers[1])
    assert "hand_in" not in desk.recorder.story_of(workers[0])


def test_shares_of_time_and_short_segments_are_added_up(tmp_path):
    desk = Desk(tmp_path)
    done = Done(0, 8, 20, True, 1.0, 2.0, 1.0, elapsed_s=4.0, cpu_s=0.75, chaos_events=5)
    for segment, short in ((0, True), (1, False)):
        desk.recorder.segment_done(Worker(1, "sampler", 0), replace_done(done, segment, short))
    telemetry = desk.recorder.telemetry
    assert (telemetry.env_steps_collected, telemetry.short_segments, telemetry.chaos_events) == (40, 1, 10)
    assert telemetry.sampler_busy == (0.75,)
    assert telemetry.sampler_cpu == 0.25
    assert telemetry.inference_share == pytest.approx(2 / 3)
    assert [(entry["event"], entry["segment"]) for entry in desk.journal()] == [("short", 0)]


def test_where_lanes_compute_in_processes_of_their_own_nobody_claims_that_they_sleep(tmp_path):
    desk = Desk(tmp_path)
    done = Done(0, 8, 20, False, 1.0, 2.0, 1.0, elapsed_s=4.0, cpu_s=0.75, chaos_events=0)
    for worker, cpu_s in ((0, 0.75), (1, None)):
        desk.recorder.segment_done(Worker(worker + 1, "sampler", worker), msgspec.structs.replace(done, cpu_s=cpu_s))
    assert desk.recorder.telemetry.sampler_cpu is None


class Full:
    """A disk with no room left."""

    def write(self, record: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    close = lambda self: self.write({})  # noqa: E731 it is as full then


def test_a_disk_that_is_full_is_remembered_and_costs_no_count(tmp_path):
    desk = Desk(tmp_path, steps=10 * ROWS)
    desk.recorder._sinks = [Full(), desk.sink]
    assert desk.train() is None
    assert desk.recorder.lost is not None
    assert desk.recorder.lost.errno == errno.ENOSPC
    assert len(desk.sink.records) == 1, "who can still write does"
    desk.recorder.close()
    desk.recorder.close()


class Gone(Silence):
    """A terminal whose reader has left."""

    def __init__(self) -> None:
        self.shown = 0

    def show(self, view: PanelView) -> None:
        self.shown += 1
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def test_who_looks_on_may_leave(tmp_path):
    desk = Desk(tmp_path)
    panel = Gone()
    desk.recorder._panel = panel
    for _ in range(3):
        desk.clock.time += 10.0
        desk.recorder.refresh("training", [])
    desk.recorder.close()
    assert panel.shown == 1
    assert desk.recorder.lost is None


def replace_done(done: Done, segment: int, short: bool) -> Done:
    fields = {name: getattr(done, name) for name in done.__struct_fields__}
    return Done(**{**fields, "segment": segment, "short": short})


def test_before_anything_was_trained_nothing_is_claimed(tmp_path):
    desk = Desk(tmp_path)
    assert desk.recorder.bottleneck() == "Nothing has been trained yet."
    telemetry = desk.recorder.telemetry
    assert (telemetry.sps, telemetry.staleness_max, telemetry.staleness_mean, telemetry.returns.mean) == (None,) * 4
    assert replace(telemetry, env_steps=5).env_steps == 5
