"""What goes wrong in a run is named, once, and everything ends. Real processes."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
import pytest
import torch
from script_environments import Troublesome

from penstock.core.errors import EnvironmentFault, Refused, WorkerDied
from penstock.metrics.names import METRICS

pytestmark = pytest.mark.processes

SMALL: dict[str, Any] = {"preset": "none", "steps": 20_000, "n_envs": 4, "n_blocks": 2, "n_steps": 16, "batch_size": 32}


def journal(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (run_dir / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("parallel", ["serial", "threads"])
def test_an_environment_that_raises_is_named_with_place_and_cause(run_training, workers, parallel):
    outcome = run_training(Troublesome, **SMALL, workers=workers, parallel=parallel, envs={"arguments": {"trouble": "raise"}})
    assert isinstance(outcome.error, EnvironmentFault)
    assert outcome.exit_code == 1
    message = str(outcome.error)
    for part in ("a gear broke", "lane", "seed", "episode 5", "step 3", "action"):
        assert part in message
    assert "Traceback" in outcome.error.details
    assert outcome.summary["stop_reason"] == "error"
    faults = [entry for entry in journal(outcome.run_dir) if entry["event"] == "fault"]
    told = [fault["message"] for fault in faults]
    assert len(told) == len(set(told)) <= max(1, workers)  # both workers' first lanes break; neither is told twice


def test_an_environment_that_returns_nan_is_named(run_training):
    outcome = run_training(Troublesome, **SMALL, workers=1, envs={"arguments": {"trouble": "nan"}})
    assert isinstance(outcome.error, EnvironmentFault)
    assert "nan" in str(outcome.error).lower() or "finite" in str(outcome.error)


def test_a_worker_that_dies_without_a_word_is_named_with_its_exit_code(run_training):
    outcome = run_training(Troublesome, **SMALL, workers=2, envs={"arguments": {"trouble": "exit"}})
    assert isinstance(outcome.error, WorkerDied)
    assert "sampler-" in str(outcome.error)
    assert "exit code 3" in str(outcome.error)
    assert "segment_started" in outcome.error.details, "its story is told"
    assert (outcome.run_dir / "summary.json").exists()
    assert any(entry["event"] == "checkpoint" for entry in journal(outcome.run_dir))


AT_WORK = r"while environment '\S*Troublesome' was in step \(lane [0-3], seed \d+, episode 5, step 3, last action [01]\)"


@pytest.mark.parametrize("parallel", ["serial", "threads"])
@pytest.mark.parametrize(("trouble", "how"), [("exit", "ended with exit code 3"), ("segfault", "was ended by SIGSEGV")])
def test_a_worker_that_dies_is_told_with_what_its_environment_was_at(run_training, parallel, trouble, how):
    outcome = run_training(Troublesome, **SMALL, workers=2, parallel=parallel, envs={"arguments": {"trouble": trouble}})
    assert isinstance(outcome.error, WorkerDied)
    told = str(outcome.error) + outcome.error.details  # of several lanes at work the first is in the message
    assert re.search(AT_WORK.removeprefix("while "), told), told
    assert f"{how} without a word while environment" in str(outcome.error)
    assert ("in step" in outcome.error.details and "Fatal Python error" in outcome.error.details) == (trouble == "segfault")


def test_a_lane_that_dies_in_its_own_process_leaves_its_traceback(run_training):
    arguments = {"arguments": {"trouble": "segfault"}}
    outcome = run_training(Troublesome, **SMALL, workers=1, parallel="processes", envs=arguments)
    assert isinstance(outcome.error, EnvironmentFault)
    assert re.search(
        r"failed in step \(lane [0-3], .*episode 5, step 3, .*: its process was ended by SIGSEGV", str(outcome.error)
    )
    assert "script_environments.py" in outcome.error.details, "where it was, as Python's fault handler tells it"


def test_a_worker_that_is_killed_from_outside_is_told_with_what_its_vector_environment_was_at(run_training):
    def kill_at_three(record: dict[str, Any]) -> None:
        if record["version"] == 3:
            samplers = [process for process in psutil.Process().children(recursive=True) if ours_or_orphaned(process)]
            samplers[0].kill()

    outcome = run_training("CartPole-v1", **SMALL, workers=1, callback=kill_at_three)
    at_work = r"environment 'CartPole-v1' was in step \(lanes \d to \d, seed \d+, episode \d+, step \d+, last action [01]\)"
    assert re.search(rf"was ended by SIGKILL .* while ({at_work}|none of its environments was at work)", str(outcome.error))


def ours_or_orphaned(process: psutil.Process) -> bool:
    """A sampler of this test's run, not of another run on the same machine."""
    try:
        return "penstock-smp" in process.name() and (process.ppid() == 1 or psutil.Process() in process.parents())
    except psutil.NoSuchProcess:
        return False


def test_a_worker_that_dies_is_noticed_although_a_helper_of_its_environment_lives_on(run_training):
    """The helper holds a copy of the worker's channel, so its end of file would never come; and the helper goes too."""
    before = {process.pid for process in psutil.process_iter()}
    start = time.monotonic()
    outcome = run_training(Troublesome, **SMALL, workers=2, envs={"arguments": {"trouble": "helper"}})
    assert time.monotonic() - start < 20
    assert isinstance(outcome.error, WorkerDied)
    assert "SIGKILL" in str(outcome.error)
    assert "segment_started" in outcome.error.details, "its story is told"
    left = [process for process in psutil.process_iter() if process.pid not in before and ours_or_orphaned(process)]
    assert psutil.wait_procs(left, timeout=2)[1] == []


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_calls_exit_has_failed(run_training, workers):
    outcome = run_training(Troublesome, **SMALL, workers=workers, envs={"arguments": {"trouble": "leave"}})
    assert isinstance(outcome.error, EnvironmentFault)
    assert "episode 5, step 3" in str(outcome.error)
    assert outcome.exit_code == 1


@pytest.mark.parametrize(("workers", "parallel"), [(0, "serial"), (0, "threads"), (1, "serial"), (1, "processes")])
def test_a_keyboard_interrupt_of_an_environments_own_is_its_fault(run_training, workers, parallel):
    arguments = {"arguments": {"trouble": "interrupt"}}
    outcome = run_training(Troublesome, **SMALL, workers=workers, parallel=parallel, envs=arguments)
    assert isinstance(outcome.error, EnvironmentFault)
    assert "episode 5, step 3" in str(outcome.error)
    assert "KeyboardInterrupt: the emergency stop" in str(outcome.error)
    assert outcome.exit_code == 1


class CannotConnect(torch.nn.Module):
    """Fails with an error that could be mistaken for the supervisor's end."""

    def __init__(self) -> None:
        super().__init__()
        raise ConnectionRefusedError("the weights server is down")

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        return observation


def test_an_error_of_a_persons_own_code_is_never_taken_for_the_end_of_the_run(run_training):
    with pytest.raises(Refused, match=r"learner: ConnectionRefusedError: the weights server is down \(.*test_failures\.py"):
        run_training("CartPole-v1", **SMALL, workers=1, model=CannotConnect)


class FiveChoices(torch.nn.Module):
    def forward(self, observation: torch.Tensor, memory: None) -> Any:
        return torch.zeros(len(observation), 5), torch.zeros(len(observation)), None


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model": FiveChoices}, r"parameters of shape \(2, 2\) and 2 values for CartPole-v1, not \(2, 5\)"),
        ({"model": torch.nn.Linear(4, 8)}, r"an instance of Linear; pass the class, or .* lambda: Linear"),
        ({"model": dict}, "learner: ValueError: no signature found"),
        (
            {"device": "cuda" if not torch.cuda.is_available() else "cuda:99"},
            "^--device cuda.* cannot be used here: .*CUDA.*; use --device cpu, or see penstock doctor$",
        ),
        (
            {"algo": "script_environments:Wanders"},
            r"is no algorithm: it is not made of \(policy, settings, seed\).*docs/algorithms",
        ),
        ({"algo": "script_environments:Troublesome"}, "is no algorithm: it has no flat, update, state"),
        ({"algo": "script_environments:Nobody"}, "has no 'Nobody'"),
        ({"hidden_sizes": (1_000_000, 1_000_000)}, "memory"),
    ],
)
def test_what_only_the_learner_can_see_is_refused_and_leaves_nothing(run_training, tmp_path, settings, words):
    with pytest.raises(Refused, match=words) as refusal:
        run_training("CartPole-v1", **SMALL, workers=1, **settings)
    assert "\n" not in str(refusal.value)
    assert list(tmp_path.iterdir()) == []


def test_an_environment_that_cannot_reset_is_refused_and_leaves_nothing(run_training, tmp_path):
    with pytest.raises(Refused, match="the reset button is stuck"):
        run_training(Troublesome, **SMALL, workers=1, envs={"arguments": {"trouble": "reset"}})
    assert list(tmp_path.iterdir()) == []


def test_a_callback_stops_the_run_at_a_version_boundary(run_training):
    seen: list[dict[str, Any]] = []

    def stop_at_three(record: dict[str, Any]) -> bool:
        seen.append(record)
        return record["version"] == 3

    outcome = run_training("CartPole-v1", **SMALL, workers=1, callback=stop_at_three)
    assert outcome.summary["version"] == 3
    assert [record["version"] for record in seen] == [1, 2, 3]
    assert (outcome.run_dir / "checkpoints" / "3").is_dir()


def test_records_hold_every_name_of_the_dictionary_and_no_other(run_training):
    outcome = run_training("CartPole-v1", **SMALL | {"steps": 200}, workers=2)
    records = [json.loads(line) for line in (outcome.run_dir / "metrics.jsonl").read_text().splitlines()]
    assert all(set(record) == set(METRICS) for record in records)
    assert len(records[-1]["sampler_busy"]) == 2
    inline = run_training("CartPole-v1", **SMALL | {"steps": 200}, workers=0)
    last = json.loads((inline.run_dir / "metrics.jsonl").read_text().splitlines()[-1])
    assert last["sampler_busy"] is None


class Cents(gymnasium.Env[Any, Any]):
    """A hundred steps of 0.01 each, which float32 cannot hold."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._step = 0
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._step += 1
        return np.zeros(2, np.float32), 0.01, self._step == 100, False, {}


def test_returns_are_sums_of_what_the_environment_gave(run_training):
    outcome = run_training(Cents, **SMALL | {"steps": 2000, "n_steps": 64}, workers=1)
    assert outcome.summary["return_mean"] == pytest.approx(1.0, abs=1e-12)


def test_a_sleeping_environment_is_called_one(run_training):
    arguments = {"arguments": {"mean_s": 0.01, "variance": 0.0}, "parallel": "threads"}
    outcome = run_training("penstock/Latency-v0", **SMALL | {"steps": 800}, workers=1, envs=arguments)
    assert outcome.summary["bottleneck"].startswith("Environments that sleep")


HANGS: dict[str, Any] = {**SMALL, "lease_s": 0.5, "n_blocks": 4, "workers": 2}


def test_under_async_a_hung_worker_is_killed_past_its_lease_and_the_run_goes_on(run_training, tmp_path):
    arguments = {"trouble": "hang", "marker": str(tmp_path / "hung")}
    outcome = run_training(Troublesome, **HANGS, schedule="async", envs={"arguments": arguments})
    assert outcome.error is None
    assert outcome.summary["env_steps"] >= SMALL["steps"]
    assert outcome.summary["dropped_segments"] >= 1
    told = [entry["event"] for entry in journal(outcome.run_dir)]
    for event in ("write_off", "lease_expired", "worker_lost"):
        assert event in told
    (lost,) = [entry for entry in journal(outcome.run_dir) if entry["event"] == "worker_lost"]
    assert re.search(AT_WORK.removeprefix("while "), lost["under_way"][0])


def test_under_overlap_a_hung_worker_is_killed_past_its_lease_and_named(run_training, tmp_path):
    arguments = {"trouble": "hang", "marker": str(tmp_path / "hung")}
    outcome = run_training(Troublesome, **HANGS, schedule="overlap", envs={"arguments": arguments})
    assert isinstance(outcome.error, WorkerDied)
    assert re.search(rf"took longer than its lease \(.*\) {AT_WORK}", str(outcome.error))


@pytest.mark.parametrize("parallel", ["threads", "processes"])
def test_of_concurrent_lanes_the_one_that_hangs_is_named(run_training, tmp_path, parallel):
    arguments = {"trouble": "hang", "marker": str(tmp_path / "hung")}
    many = {**HANGS, "lease_s": 1.0, "n_envs": 8}
    outcome = run_training(Troublesome, **many, schedule="overlap", parallel=parallel, envs={"arguments": arguments})
    assert re.search(rf"took longer than its lease \(.*\) {AT_WORK.replace('0-3', '0-7')}; see why", str(outcome.error))


def test_the_step_budget_ends_with_the_first_whole_batch_past_it(run_training):
    outcome = run_training("CartPole-v1", **{**SMALL, "steps": 100}, workers=1)
    assert 100 <= outcome.summary["env_steps"] < 100 + 4 * 16
    records = [json.loads(line) for line in (outcome.run_dir / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["env_steps"] == outcome.summary["env_steps"]
    assert outcome.summary["masked_steps"] + outcome.summary["env_steps"] == 64 * outcome.summary["version"]
    assert outcome.summary["samples_consumed"] == 4 * outcome.summary["env_steps"]


# ---------------------------------------------------------------- the inference server

SERVED: dict[str, Any] = {**SMALL, "inference": "server"}


def servers() -> list[psutil.Process]:
    return [process for process in psutil.Process().children(recursive=True) if process.name() == "penstock-infer"]


def test_a_server_that_is_killed_is_named_and_the_run_is_saved(run_training):
    killed: list[psutil.Process] = []

    def kill_at_three(record: dict[str, Any]) -> None:
        if record["version"] == 3:
            killed.extend(servers())
            for process in killed:
                process.kill()

    outcome = run_training("CartPole-v1", **SERVED, workers=2, callback=kill_at_three)
    assert len(killed) == 1
    assert isinstance(outcome.error, WorkerDied)
    assert "inference server was ended by SIGKILL" in str(outcome.error)
    assert outcome.exit_code == 1
    told = journal(outcome.run_dir)
    assert [entry["message"] for entry in told if entry["event"] == "fault"] == [str(outcome.error)], "nobody else is blamed"
    saved = [entry["version"] for entry in told if entry["event"] == "checkpoint"]
    assert saved[-1] == outcome.summary["version"] >= 3


class BreaksWhenActing(torch.nn.Module):
    """Its hundredth action is one too many; what the learner computes is well."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.acted = torch.nn.Linear(4, 8), 0

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        self.acted += not self.training
        if self.acted == 100:
            self.break_down()
        return self.layer(observation)

    def break_down(self) -> None:
        raise ValueError("a cog is missing")


class HangsWhenActing(BreaksWhenActing):
    def break_down(self) -> None:
        time.sleep(3600)


class InterruptsWhenActing(BreaksWhenActing):
    def break_down(self) -> None:
        raise KeyboardInterrupt("by no person")


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(("inference", "who"), [("local", "sampler-0"), ("server", "inference server")])
def test_a_keyboard_interrupt_of_a_persons_own_code_is_told(run_training, workers, inference, who):
    outcome = run_training("CartPole-v1", **SMALL, inference=inference, workers=workers, model=InterruptsWhenActing)
    assert str(outcome.error).startswith(f"{who}: KeyboardInterrupt: by no person (")


@pytest.mark.parametrize("workers", [0, 2])
def test_what_breaks_in_the_server_is_named_with_place_and_cause(run_training, workers):
    outcome = run_training("CartPole-v1", **SERVED, workers=workers, model=BreaksWhenActing)
    message = str(outcome.error)
    assert message.startswith("inference server: ValueError: a cog is missing (")
    assert "test_failures.py, line" in message
    assert outcome.summary["stop_reason"] == "error"
    assert (outcome.run_dir / "summary.json").exists()


@pytest.mark.parametrize("schedule", ["overlap", "async"])
def test_a_server_that_hangs_is_killed_past_its_lease_and_named(run_training, schedule):
    outcome = run_training("CartPole-v1", **SERVED, schedule=schedule, lease_s=2.0, workers=2, model=HangsWhenActing)
    assert isinstance(outcome.error, WorkerDied)
    assert "inference server was killed: it took longer than its lease" in str(outcome.error)


def test_an_environment_that_raises_beside_a_server_is_named_all_the_same(run_training):
    outcome = run_training(Troublesome, **SERVED, workers=2, envs={"arguments": {"trouble": "raise"}})
    assert isinstance(outcome.error, EnvironmentFault)
    assert "a gear broke" in str(outcome.error)


def test_nothing_is_left_of_a_run_with_a_server(run_training):
    outcome = run_training("CartPole-v1", **SERVED | {"steps": 500}, workers=2)
    assert outcome.error is None
    assert psutil.wait_procs(servers(), timeout=2)[1] == []


class SlowWhenActing(BreaksWhenActing):
    """Every action takes its time; it is the device that is waited for, so to say."""

    def forward(self, observation: torch.Tensor) -> torch.Tensor:
        time.sleep(0.0 if self.training else 0.002)
        return self.layer(observation)


def test_a_slow_server_is_called_the_bottleneck(run_training):
    outcome = run_training("CartPole-v1", **SERVED | {"steps": 1000}, workers=2, model=SlowWhenActing)
    assert outcome.error is None
    assert outcome.summary["bottleneck"].startswith("The inference server is the bottleneck")
