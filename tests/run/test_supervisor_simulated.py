"""The real supervisor, law and recorder in a world whose clock jumps: whole runs, trouble, signals, leases, budgets."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.core.errors import EnvironmentFault, RunFailed, WorkerDied
from penstock.flow.settings import FlowSettings
from penstock.run.settings import RunSettings
from penstock.run.supervisor import SAVE_GRACE_S, UPDATE_GRACE_S
from penstock.testing.simulated_run import SimulatedRun, simulate
from penstock.testing.simulation import Script, Trouble
from penstock.transport import messages
from penstock.yardstick.pace import Pace, even

SCHEDULES = ("sync", "overlap", "async")
BATCH = 4 * 16 * 4  # blocks, steps, lanes
FOREVER = 10**9

Simulate = Callable[..., SimulatedRun]


@pytest.fixture
def run(tmp_path: Path) -> Simulate:
    """One simulated run: 4 blocks on 2 workers, 16 steps of 4 lanes, unless told otherwise."""

    def simulate_one(schedule: str, seed: int = 0, *troubles: Trouble, **wishes: Any) -> SimulatedRun:
        settings = {name: wishes.pop(name) for name in ("steps", "minutes", "lease_s") if name in wishes}
        flow = {name: wishes.pop(name) for name in ("staleness", "depth", "segments_per_batch") if name in wishes}
        around = {
            name: wishes.pop(name)
            for name in ("num_blocks", "num_workers", "checkpoint_every", "callback_s", "inference_server")
            if name in wishes
        }
        wishes.setdefault("pace", Pace(seed=seed))
        script = Script(seed=seed, troubles=troubles, **wishes)
        flow_settings = FlowSettings(schedule=schedule, **flow)  # type: ignore[arg-type]  # a word of SCHEDULES
        return simulate(script, flow=flow_settings, run=RunSettings(**settings), directory=tmp_path, **around)

    return simulate_one


def check_books(done: SimulatedRun) -> None:
    """What holds of every run, however it ended."""
    assert (done.telemetry.staleness_max or 0) <= done.telemetry.staleness_bound
    stopping = [position for position, entry in enumerate(done.journal) if entry["event"] == "stopping"]
    assert len(stopping) == 1, "a run ends once"
    assert not any(entry["event"] == "batch" for entry in done.journal[stopping[0] :]), "a batch was taken after the end"
    trained = [entry["version"] for entry in done.told("trained")]
    assert trained == list(range(1, len(trained) + 1))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_full_runs_reach_the_budget_within_the_bound(run: Simulate, schedule: str) -> None:
    for seed in range(40):
        done = run(schedule, seed, steps=12 * BATCH)
        check_books(done)
        assert (done.ending.reason, done.ending.error) == ("steps", None)
        assert 12 * BATCH <= done.telemetry.env_steps < 13 * BATCH
        if schedule != "async":
            assert done.telemetry.version == 12
        assert [e["version"] for e in done.told("checkpoint")] == [0, done.telemetry.version]


def test_the_bound_is_reached_as_well_as_held(run: Simulate) -> None:
    highest = [max(run(s, seed, steps=12 * BATCH).telemetry.staleness_max or 0 for seed in range(10)) for s in SCHEDULES]
    assert highest == [0, 1, 2]


def test_checkpoints_are_as_many_as_were_asked_for(run: Simulate) -> None:
    """Versions 0, 4, 8 and the last, 10; where the last is one of them it is written once."""
    done = run("overlap", steps=10 * BATCH, checkpoint_every=4)
    assert [e["version"] for e in done.told("checkpoint")] == [0, 4, 8, 10]
    done = run("overlap", steps=8 * BATCH, checkpoint_every=4)
    assert [e["version"] for e in done.told("checkpoint")] == [0, 4, 8]


# ---------------------------------------------------------------- trouble


@pytest.mark.parametrize(("schedule", "what"), itertools.product(SCHEDULES, ("die", "fault")))
def test_a_workers_end_is_the_runs_end_after_a_last_save(run: Simulate, schedule: str, what: Any) -> None:
    for seed in range(25):
        number = signal.SIGSEGV if what == "die" else signal.SIGINT
        done = run(schedule, seed, Trouble(1.0 + 0.037 * seed, "sampler-1", what, number), steps=FOREVER)
        check_books(done)
        assert done.ending.reason == "error"
        kind, said = (
            (WorkerDied, "sampler-1 (blocks [2, 3]) was ended by SIGSEGV") if what == "die" else (EnvironmentFault, "broke")
        )
        assert isinstance(done.ending.error, kind)
        assert said in str(done.ending.error)
        assert done.told("checkpoint")[-1]["version"] == done.telemetry.version > 0, "the newest version is saved"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_learners_death_ends_the_run_at_once(run: Simulate, schedule: str) -> None:
    for seed in range(15):
        done = run(schedule, seed, Trouble(1.5, "learner", "die", signal.SIGKILL), steps=FOREVER)
        check_books(done)
        assert isinstance(done.ending.error, WorkerDied)
        assert "learner was ended by SIGKILL" in str(done.ending.error)
        assert done.world.clock.now() < 1.6


def test_a_death_before_the_first_segment_is_named(run: Simulate) -> None:
    for who in ("learner", "sampler-0"):
        done = run("overlap", 0, Trouble(0.21 if who == "sampler-0" else 0.1, who, "die", signal.SIGKILL), steps=FOREVER)
        assert who in str(done.ending.error)
        assert done.telemetry.version == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_signal_lets_the_update_finish_and_saves(run: Simulate, schedule: str) -> None:
    for seed in range(25):
        moment_s = 1.0 + 0.037 * seed
        done = run(schedule, seed, Trouble(moment_s, "run", "signal", signal.SIGTERM), steps=FOREVER)
        check_books(done)
        assert (done.ending.reason, done.ending.signal, done.ending.error) == ("signal", signal.SIGTERM, None)
        assert len(done.told("batch")) == len(done.told("trained")), "the update under way was finished"
        assert done.told("checkpoint")[-1]["version"] == done.telemetry.version


def test_a_second_signal_stops_at_once(run: Simulate) -> None:
    signals = [Trouble(moment_s, "run", "signal") for moment_s in (2.0, 2.1)]
    done = run("overlap", 0, *signals, steps=FOREVER, train_s=lambda generator: 5.0)
    assert done.ending.signal == signal.SIGINT
    assert done.world.clock.now() == pytest.approx(2.1)
    assert len(done.told("batch")) == len(done.told("trained")) + 1, "the update was left where it was"


def test_a_second_signal_while_a_finished_run_is_saved_is_no_good_end(run: Simulate) -> None:
    """The budget was reached, but its last version is not on disk: who asks for it must not be told that all is well."""
    end_s = run("sync", 0, steps=3 * BATCH, save_s=5.0).world.clock.now()
    signals = [Trouble(end_s - after_s, "run", "signal") for after_s in (3.0, 2.0)]
    done = run("sync", 0, *signals, steps=3 * BATCH, save_s=5.0)
    assert (done.ending.reason, done.ending.signal) == ("signal", signal.SIGINT)
    assert done.world.clock.now() == pytest.approx(end_s - 2.0)


def test_a_signal_before_anything_runs_ends_at_once(run: Simulate) -> None:
    done = run("overlap", 0, Trouble(0.1, "run", "signal"), steps=FOREVER)
    assert done.ending.reason == "signal"
    assert done.world.clock.now() == pytest.approx(0.1)


def test_a_learner_that_hangs_in_its_last_update_is_not_waited_for_for_ever(run: Simulate) -> None:
    troubles = Trouble(1.5, "learner", "hang"), Trouble(2.0, "run", "signal")
    done = run("sync", 0, *troubles, steps=FOREVER)
    assert done.world.clock.now() == pytest.approx(2.0 + UPDATE_GRACE_S)
    assert isinstance(done.ending.error, RunFailed)
    assert "the update under way did not end" in str(done.ending.error), "a run that is not saved did not end well"


def test_a_learner_that_hangs_in_its_last_save_is_not_waited_for_for_ever(run: Simulate) -> None:
    end_s = run("sync", 0, steps=3 * BATCH, save_s=1.0).world.clock.now()
    done = run("sync", 0, Trouble(end_s - 0.5, "learner", "hang"), steps=3 * BATCH, save_s=1.0)
    assert done.world.clock.now() == pytest.approx(end_s - 1.0 + SAVE_GRACE_S, abs=0.1)
    assert "the last checkpoint was not written" in str(done.ending.error)


def test_a_long_update_may_finish_after_a_signal(run: Simulate) -> None:
    """Updates of 100 s: what they have shown to take is what the last one gets, and then the save has its own time."""
    done = run("overlap", 0, Trouble(250.0, "run", "signal"), steps=FOREVER, train_s=lambda generator: 100.0, save_s=20.0)
    check_books(done)
    assert (done.ending.reason, done.ending.error) == ("signal", None)
    assert done.told("checkpoint")[-1]["version"] == done.telemetry.version == 3


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_learner_that_hangs_while_training_is_ended_and_named(run: Simulate, schedule: str) -> None:
    done = run(schedule, 0, Trouble(1.5, "learner", "hang"), steps=FOREVER, lease_s=3.0)
    assert isinstance(done.ending.error, WorkerDied)
    assert "learner was killed: it took longer than its lease (run.lease_s = 3 s)" in str(done.ending.error)
    assert 3.0 < done.world.clock.now() < 6.0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_slow_callback_costs_nobody_their_lease(run: Simulate, schedule: str) -> None:
    """While it runs nobody listens: what was done in time meanwhile is heard before anybody is judged."""
    done = run(schedule, 0, steps=8 * BATCH, lease_s=3.0, callback_s=20.0, pace=Pace(draw=even(0.01)))
    check_books(done)
    assert (done.ending.reason, done.ending.error) == ("steps", None)
    assert done.telemetry.dropped_segments == 0
    assert done.told("lease_expired") == []
    assert done.world.clock.now() > 8 * 20


def test_what_dies_with_a_worker_is_counted_to_the_end(run: Simulate) -> None:
    lost = [run("async", seed, Trouble(1.0 + 0.05 * seed, "sampler-1", "die", 9), steps=FOREVER) for seed in range(20)]
    assert [done.telemetry.dropped_segments for done in lost] == [done.law.dropped_segments for done in lost]
    assert max(done.law.dropped_segments for done in lost) > 0


def test_a_learner_that_breaks_in_the_last_save_spoils_the_ending(run: Simulate) -> None:
    """All steps are trained, but the last checkpoint is not on disk: that is a failure, and it is named."""
    end_s = run("sync", 0, steps=3 * BATCH, save_s=1.0).world.clock.now()
    done = run("sync", 0, Trouble(end_s - 0.5, "learner", "fault"), steps=3 * BATCH, save_s=1.0)
    assert done.telemetry.env_steps >= 3 * BATCH
    assert isinstance(done.ending.error, EnvironmentFault)
    assert done.ending.reason == "error"


# ---------------------------------------------------------------- leases and budgets


def test_async_writes_off_a_hung_worker_and_goes_on(run: Simulate) -> None:
    done = run("async", 0, Trouble(1.0, "sampler-1", "hang"), steps=40 * BATCH, lease_s=3.0)
    check_books(done)
    assert (done.ending.reason, done.ending.error) == ("steps", None)
    assert [e["segment"] for e in done.told("write_off")] == sorted({e["segment"] for e in done.told("write_off")})
    assert done.telemetry.dropped_segments == len(done.told("write_off")) == 2, "both blocks of the worker"
    assert all(e["worker"] == 2 for e in done.told("write_off")), "the learner is 0, sampler-1 is 2"
    assert [(e["worker"], e["blocks"]) for e in done.told("worker_lost")] == [(2, [2, 3])], "it never let go: it was ended"


def test_async_goes_on_where_a_hung_worker_holds_slots_that_a_batch_needs(run: Simulate) -> None:
    """D = 0: every batch needs all four slots, and the hung worker holds two until it is dead."""
    done = run("async", 0, Trouble(1.0, "sampler-1", "hang"), steps=40 * BATCH, lease_s=3.0, depth=0)
    check_books(done)
    assert (done.ending.reason, done.ending.error) == ("steps", None)
    assert {m.block for moment_s, _, m in done.sent(messages.Start) if moment_s > 20} == {0, 1}


def test_async_ends_once_no_worker_is_left(run: Simulate) -> None:
    hung = [Trouble(1.0, f"sampler-{index}", "hang") for index in (0, 1)]
    done = run("async", 0, *hung, steps=FOREVER, lease_s=3.0)
    check_books(done)
    assert isinstance(done.ending.error, WorkerDied)
    assert done.told("checkpoint")[-1]["version"] == done.telemetry.version > 0
    assert done.world.clock.now() < 20


def test_async_takes_back_a_worker_that_was_only_late(run: Simulate) -> None:
    """A step of block 0 takes 3 s now and then: the lease ends, the worker lets go after that step, and is used again.

    The worker hosts two blocks: 2 s for a segment, 2 s more to let go of it.
    """

    def draw(generator: Any, block: int, steps: int) -> Any:
        seconds = even(0.01)(generator, block, steps)
        seconds[3] += 3.0 * (block == 0 and generator.random() < 0.1)
        return seconds

    done = run("async", 3, steps=60 * BATCH, lease_s=1.0, pace=Pace(draw=draw))
    check_books(done)
    assert done.ending.reason == "steps"
    first_write_off = done.told("write_off")[0]["segment"]
    again = [m for _, who, m in done.sent(messages.Start) if m.block == 0 and m.segment > first_write_off]
    assert len(done.sent(messages.WriteOff)) == len(done.told("write_off")), "the worker was told"
    assert again, "block 0 ran again after its worker had let go"


@pytest.mark.parametrize("schedule", ["sync", "overlap"])
def test_pinned_flow_kills_the_worker_and_the_run_names_it(run: Simulate, schedule: str) -> None:
    done = run(schedule, 0, Trouble(1.0, "sampler-1", "hang"), steps=FOREVER, lease_s=3.0)
    check_books(done)
    assert isinstance(done.ending.error, WorkerDied)
    assert "sampler-1 (blocks [2, 3]) was killed: it took longer than its lease (run.lease_s = 3 s" in str(done.ending.error)
    assert done.telemetry.dropped_segments == 0
    assert done.told("checkpoint")[-1]["version"] == done.telemetry.version
    assert 6.0 < done.world.clock.now() < 9.0, "3 s for each of its two blocks"


# ---------------------------------------------------------------- with an inference server


SERVER = "inference server"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_with_a_server_runs_reach_the_budget_all_the_same(run: Simulate, schedule: str) -> None:
    done = run(schedule, 0, steps=12 * BATCH, inference_server=True)
    check_books(done)
    assert (done.ending.reason, done.ending.error) == ("steps", None)
    assert [e["title"] for e in done.told("worker_started")] == ["learner", SERVER, "sampler-0", "sampler-1"]
    assert done.sent(messages.Ping) == []


@pytest.mark.parametrize(("schedule", "what"), itertools.product(SCHEDULES, ("die", "fault")))
def test_the_servers_end_is_the_runs_end_and_it_is_named(run: Simulate, schedule: str, what: Any) -> None:
    for seed in range(15):
        trouble = Trouble(1.0 + 0.037 * seed, SERVER, what, signal.SIGSEGV)
        done = run(schedule, seed, trouble, steps=FOREVER, inference_server=True)
        check_books(done)
        said = f"{SERVER} was ended by SIGSEGV" if what == "die" else f"{SERVER} broke"
        assert said in str(done.ending.error)
        assert done.told("checkpoint")[-1]["version"] == done.telemetry.version > 0, "the newest version is saved"


def test_a_server_that_ends_before_the_first_segment_is_named(run: Simulate) -> None:
    done = run("overlap", 0, Trouble(0.21, SERVER, "die", signal.SIGKILL), steps=FOREVER, inference_server=True)
    assert f"{SERVER} was ended by SIGKILL" in str(done.ending.error)
    assert done.telemetry.version == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_server_that_hangs_is_ended_and_named_not_those_who_wait_for_it(run: Simulate, schedule: str) -> None:
    """A lease of 3 s for each of a worker's two blocks, then 3 s in which the server may say that it is there."""
    done = run(schedule, 0, Trouble(1.0, SERVER, "hang"), steps=FOREVER, lease_s=3.0, inference_server=True)
    check_books(done)
    assert isinstance(done.ending.error, WorkerDied)
    assert f"{SERVER} was killed: it took longer than its lease (run.lease_s = 3 s)" in str(done.ending.error)
    assert len(done.sent(messages.Ping)) == 1
    assert done.told("worker_lost") == []
    assert done.telemetry.dropped_segments == (0 if schedule != "async" else done.law.dropped_segments)
    assert 9.0 < done.world.clock.now() < 12.0


@pytest.mark.parametrize("schedule", ["sync", "overlap"])
def test_a_sampler_that_hangs_beside_a_server_that_answers_is_named(run: Simulate, schedule: str) -> None:
    done = run(schedule, 0, Trouble(1.0, "sampler-1", "hang"), steps=FOREVER, lease_s=3.0, inference_server=True)
    check_books(done)
    assert "sampler-1 (blocks [2, 3]) was killed" in str(done.ending.error)


def test_async_beside_a_server_gives_a_hung_worker_up_and_goes_on(run: Simulate) -> None:
    done = run("async", 0, Trouble(1.0, "sampler-1", "hang"), steps=40 * BATCH, lease_s=3.0, inference_server=True)
    check_books(done)
    assert (done.ending.reason, done.ending.error) == ("steps", None)
    assert done.telemetry.dropped_segments == 2


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_minutes_end_at_the_first_version_boundary(run: Simulate, schedule: str) -> None:
    done = run(schedule, steps=FOREVER, minutes=0.1, save_s=0.0)
    check_books(done)
    assert done.ending.reason == "minutes"
    assert 6.0 <= done.world.clock.now() < 7.5
    assert len(done.told("batch")) == len(done.told("trained"))


def test_minutes_end_a_run_that_stands_still(run: Simulate) -> None:
    done = run("async", 0, Trouble(1.0, "sampler-0", "hang"), Trouble(1.0, "sampler-1", "hang"), steps=FOREVER, minutes=1.0)
    assert done.ending.reason == "minutes"
    assert done.world.clock.now() == pytest.approx(60, abs=1)


def test_the_callers_wish_to_stop_is_heard(run: Simulate, tmp_path: Path) -> None:
    done = simulate(
        Script(),
        flow=FlowSettings(),
        run=RunSettings(steps=FOREVER),
        directory=tmp_path,
        callback=lambda record: record["version"] == 3,
    )
    assert (done.ending.reason, done.telemetry.version) == ("signal", 3)


def test_pinned_runs_train_the_same_segments_whatever_the_workers_and_delays(run: Simulate) -> None:
    told = []
    for seed, num_workers in ((1, 1), (2, 2), (3, 4)):
        done = run("overlap", seed, steps=15 * BATCH, num_workers=num_workers)
        told.append([[(s.slot, s.segment, s.version) for s in m.slots] for _, _, m in done.sent(messages.Train)])
        trained = {segment for batch in told[-1] for _, segment, _ in batch}
        assert {m.segment for _, _, m in done.sent(messages.Start)} == trained, "nothing is collected that nobody trains"
    assert told[0] == told[1] == told[2]
    assert len(told[0]) == 15


# ---------------------------------------------------------------- long


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_thousands_of_runs_with_trouble_at_any_moment(run: Simulate) -> None:
    for seed in range(1500):
        who = ("learner", "sampler-0", "sampler-1", "run", SERVER)[seed % 5]
        what: Any = "signal" if who == "run" else ("die", "fault", "hang")[seed // 5 % 3]
        trouble = Trouble((seed * 0.618) % 5, who, what, signal.SIGTERM)
        minutes = 1.0
        around = {"minutes": minutes, "inference_server": who == SERVER or seed % 2 == 0}
        done = run(SCHEDULES[seed % 3], seed, trouble, steps=80 * BATCH, lease_s=3.0, **around)
        check_books(done)
