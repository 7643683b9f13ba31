"""How runs end from outside: signals, SIGKILL, refusals. Each test is a process of its own, as a person starts it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

pytestmark = pytest.mark.processes

SLOW = ["--preset", "none", "--steps", "1e9", "--set", "n_envs=8", "--set", "n_steps=32", "--set", "batch_size=64"]


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "penstock", "train", *arguments]
    return subprocess.Popen(command, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for_version(run_dir: Path, version: int, timeout_s: float = 30.0) -> None:
    """Until the run has trained so many batches."""
    deadline = time.monotonic() + timeout_s
    metrics = run_dir / "metrics.jsonl"
    while not metrics.exists() or metrics.read_text().count("\n") < version:
        assert time.monotonic() < deadline, "the run did not get going"
        time.sleep(0.05)


def wait_for(happened: Callable[[], bool], timeout_s: float = 30.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return psutil.Process(process.pid).children(recursive=True)


def left_of(family: list[psutil.Process], within_s: float = 2.0) -> list[psutil.Process]:
    """Who still runs after that time. One that is dead and waits for init to take note, which can take it a while, does not."""
    deadline = time.monotonic() + within_s
    while (left := [member for member in family if _runs(member)]) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_update_saves_and_says_so(tmp_path, number, code):
    run = tmp_path / "run"
    process = start("CartPole-v1", *SLOW, "--out", str(run), "--json", "--quiet", cwd=tmp_path)
    wait_for_version(run, 3)
    family = descendants(process)
    process.send_signal(number)
    output, _ = process.communicate(timeout=10)
    assert process.returncode == code
    summary = json.loads(output.splitlines()[-1])
    assert summary["stop_reason"] == "signal"
    assert summary == json.loads((run / "summary.json").read_text())
    assert (run / "checkpoints" / str(summary["version"])).is_dir()
    assert psutil.wait_procs(family, timeout=2)[1] == []


def test_sigterm_for_every_process_there_is_still_saves(tmp_path):
    """As a scheduler or a service manager ends a job: all of it at once."""
    run = tmp_path / "run"
    process = start("CartPole-v1", *SLOW, "--workers", "2", "--out", str(run), "--json", "--quiet", cwd=tmp_path)
    wait_for_version(run, 3)
    family = descendants(process)
    for member in family:
        member.terminate()
    process.terminate()
    output, errors = process.communicate(timeout=10)
    assert process.returncode == 143, errors
    summary = json.loads(output.splitlines()[-1])
    assert (run / "checkpoints" / str(summary["version"])).is_dir()
    assert psutil.wait_procs(family, timeout=2)[1] == []


def test_a_second_signal_stops_now(tmp_path):
    """The update under way takes many seconds more: it is not waited for, and its version not saved."""
    run = tmp_path / "run"
    long_update = ["--set", "n_epochs=20000", "--set", "checkpoint.every=1"]
    process = start("CartPole-v1", *SLOW, *long_update, "--out", str(run), "--quiet", cwd=tmp_path)
    wait_for((run / "checkpoints" / "0").exists)
    time.sleep(1.0)  # the first batch takes a moment; its update a minute
    process.send_signal(signal.SIGINT)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert [path.name for path in (run / "checkpoints").iterdir()] == ["0"]
    assert json.loads((run / "summary.json").read_text())["version"] == 0


HANGING = """
import gymnasium, time

class Hangs(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        self.steps += 1
        if self.steps == 30:  # past what the first look at it takes
            open("hung", "w").close()
            time.sleep(3600)
        return self.observation_space.low, 0.0, False, False, {}
"""


@pytest.mark.parametrize("many", [["--workers", "0"], ["--workers", "1", "--set", "n_blocks=1024", "--set", "n_envs=1024"]])
def test_two_signals_end_a_run_whose_environment_hangs(tmp_path, many):
    """In one process nobody else could end it; with very many blocks the worker's channel is full by then."""
    (tmp_path / "hanging.py").write_text(HANGING)
    sizes = ["--preset", "none", "--set", "n_steps=64", "--set", "batch_size=64", "--set", "parallel=serial"]
    process = start("hanging:Hangs", *sizes, *many, "--out", "run", "--quiet", cwd=tmp_path)
    wait_for((tmp_path / "hung").exists)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=15)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors


HUNG_CALLBACK = """
import penstock, time

def callback(record):
    open("called", "w").close()
    time.sleep(3600)

penstock.train("CartPole-v1", steps=10**9, out="run", quiet=True, callback=callback)
"""


def test_two_signals_end_a_run_whose_callback_hangs(tmp_path):
    (tmp_path / "script.py").write_text(HUNG_CALLBACK)
    process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    wait_for((tmp_path / "called").exists)
    for _ in range(2):
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["version"] == 1


def test_in_one_process_a_signal_is_heard_between_two_steps(tmp_path):
    """A segment takes minutes here, and what it would bring is not trained any more."""
    slow = ["--preset", "none", "--set", "n_envs=1", "--set", "n_blocks=1", "--set", "n_steps=2000", "--set", "batch_size=2000"]
    arguments = ["--env-arg", "mean_s=0.1", "--env-arg", "variance=0.0", "--set", "parallel=serial", "--workers", "0"]
    process = start("penstock/Latency-v0", *slow, *arguments, "--out", "run", "--quiet", cwd=tmp_path)
    wait_for((tmp_path / "run" / "checkpoints" / "0").exists)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=10)
    assert process.returncode == 130
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["stop_reason"] == "signal"


def test_a_reader_that_leaves_costs_nothing_of_the_run(tmp_path):
    """As `penstock train ... 2>&1 | head -1`: the panel's lines have nowhere to go any more."""
    lines = ["--set", "metrics.lines_every_s=0.05", "--steps", "60000"]
    process = start("CartPole-v1", *SLOW, *lines, "--out", "run", cwd=tmp_path)
    assert process.stderr is not None
    process.stderr.readline()
    process.stderr.close()
    process.wait(timeout=60)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert (summary["stop_reason"], summary["env_steps"] >= 60_000) == ("steps", True)


@pytest.mark.parametrize(("inference", "members"), [("local", 4), ("server", 5)])
def test_when_the_supervisor_is_killed_nothing_is_left_after_two_seconds(tmp_path, inference, members):
    run = tmp_path / "run"
    where = ["--workers", "2", "--inference", inference, "--out", str(run)]
    process = start("CartPole-v1", *SLOW, *where, "--quiet", cwd=tmp_path)
    wait_for_version(run, 2)
    family = descendants(process)
    assert len(family) == members  # fork server, learner, two samplers, an inference server
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    assert left_of(family) == []


FORKING = """
import ctypes, multiprocessing, os, time
import gymnasium, penstock

class HoldsTheInterpreter(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    steps = 0

    def reset(self, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        self.steps += 1
        if self.steps == 100 and os.path.exists("holding"):
            ctypes.PyDLL(None).sleep(600)  # unlike time.sleep, with the GIL
        return self.observation_space.low, 0.0, False, False, {}

def callback(record):
    if record["version"] == 1:
        open("holding", "w").close()
        helper = multiprocessing.get_context("fork").Process(target=time.sleep, args=(60,))
        helper.start()
        open("helper", "w").write(str(helper.pid))

sizes = dict(n_envs=2, n_blocks=2, n_steps=16, batch_size=16, parallel="serial", workers=2)
penstock.train(HoldsTheInterpreter, preset="none", steps=10**9, out="run", quiet=True, callback=callback, **sizes)
"""


def test_nor_where_a_callbacks_helper_lives_on_and_an_environment_holds_the_interpreter(tmp_path):
    """What the supervisor has forked holds copies of its sockets, so that no end of file tells of its death."""
    (tmp_path / "script.py").write_text(FORKING)
    process = subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    told = tmp_path / "helper"
    wait_for(lambda: told.exists() and bool(told.read_text()))
    time.sleep(0.5)  # until both samplers are in their hundredth step
    family = descendants(process)
    helper = next(member for member in family if member.pid == int(told.read_text()))
    others = [member for member in family if member != helper]
    assert len(others) == 4  # fork server, learner, two samplers
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=10)
    left = left_of(others)
    assert helper.is_running()
    helper.kill()
    assert left == []


HELPED = """
import gymnasium, os, subprocess, sys, time

class Helped(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self.program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        self.child = os.fork()
        if self.child == 0:
            time.sleep(600)
            os._exit(0)

    def reset(self, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, 0.0, False, False, {}

    def close(self):
        self.program.kill()
        self.program.wait()
        os.kill(self.child, 9)
        os.waitpid(self.child, 0)
"""


@pytest.mark.parametrize("parallel", ["serial", "processes"])
def test_nor_what_environments_have_started(tmp_path, parallel):
    (tmp_path / "helped.py").write_text(HELPED)
    run = tmp_path / "run"
    sizes = [*SLOW, "--set", "n_envs=4", "--set", f"parallel={parallel}", "--set", "batch_size=128"]
    process = start("helped:Helped", *sizes, "--workers", "2", "--out", str(run), "--quiet", cwd=tmp_path)
    wait_for_version(run, 1)
    family = descendants(process)
    assert len(family) >= 4 + 4 * 2  # a program and a child for each of four lanes
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    assert left_of(family) == []


UNFIT = """
import gymnasium
from gymnasium import spaces

class Env(gymnasium.Env):
    observation_space = spaces.{observation}
    action_space = spaces.{action}
    def reset(self, seed=None, options=None):
        return self.observation_space.sample(), {info}
    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {info}
"""
BOX = "Box(-1, 1, (2,))"


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"observation": "Text(9)", "action": "Discrete(2)"}, ["observation space Text", "supported:"]),
        (
            {"observation": "Dict(a=spaces.Discrete(2), b=spaces.Text(9))", "action": "Discrete(2)"},
            ["observation space Dict", "without_text"],
        ),
        ({"observation": BOX, "action": "Box(-float('inf'), 1, (2,))"}, ["unbounded action space"]),
        ({"observation": BOX, "action": "Discrete(2)", "info": "{'action_mask': [0, 0]}"}, ["allows no action"]),
        ({"observation": BOX, "action": "Discrete(2)", "info": "{'action_mask': [1, 1, 1]}"}, ["mask of 3 flags, expected 2"]),
        ({"observation": BOX, "action": BOX, "info": "{'action_mask': [1, 1]}"}, ["masks actions that are not Discrete"]),
    ],
)
def test_what_cannot_be_trained_on_is_one_line_and_exit_code_2(tmp_path, parts, words):
    (tmp_path / "unfit.py").write_text(UNFIT.format(**{"info": "{}", **parts}))
    process = start("unfit:Env", "--quiet", cwd=tmp_path)
    output, errors = process.communicate(timeout=30)
    assert (process.returncode, output, len(errors.splitlines())) == (2, "", 1), errors
    assert all(word in errors for word in words), errors
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["CartPole-v7"], ["CartPole-v7"]),
        (["CartPole-v1", "--algo", "pqo"], ["pqo", "ppo"]),
        (["CartPole-v1", "--set", "learning_rat=1"], ["learning_rat", "learning_rate"]),
        (["CartPole-v1", "--schedule", "sync", "--staleness", "2"], ["sync", "overlap"]),
        (["CartPole-v1", "--schedule", "async", "--workers", "0"], ["async", "--workers"]),
        (["CartPole-v1", "--inference", "remote"], ["remote", "local", "server"]),
        (["CartPole-v1", "--set", "batch_size=1000"], ["1000", "nearest legal"]),
        (["CartPole-v1", "--out", "full"], ["full", "not empty"]),
        (["CartPole-v1", "--out", "/proc/nowhere"], ["/proc/nowhere"]),
        (["nowhere.to.be.found:Env"], ["nowhere"]),
        (["CartPole-v1", "--resume", "full"], ["CartPole-v1"]),
        (["--resume", "full"], ["full"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, arguments, words):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "kept.txt").write_text("mine")
    process = start(*arguments, "--quiet", cwd=tmp_path)
    output, errors = process.communicate(timeout=20)
    assert process.returncode == 2
    assert output == ""
    assert len(errors.splitlines()) == 1, errors
    assert errors.startswith("penstock: ")
    for word in words:
        assert word in errors
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["full", "kept.txt"]
