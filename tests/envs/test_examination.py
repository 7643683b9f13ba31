"""The examination passes sound environments and finds what is wrong with broken ones."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from penstock.cli.main import main
from penstock.envs.examination import Finding, examine
from penstock.envs.making import EnvironmentMaker
from penstock.envs.settings import EnvSettings


def findings(source: Any, **arguments: Any) -> dict[str, Finding]:
    return {finding.what: finding for finding in examine(EnvironmentMaker(source, arguments), EnvSettings())}


@pytest.mark.parametrize("name", ["CartPole-v1", "FrozenLake-v1", "penstock/Mixed-v0", "penstock/Masked-v0"])
def test_sound_environments_pass(name: str) -> None:
    found = findings(name)
    assert {finding.status for finding in found.values()} == {"ok"}, found
    assert found["restoring"].found.startswith("exact")


def _raise() -> None:
    raise RuntimeError("out of\npaint")


class Walk(gymnasium.Env[Any, Any]):
    """A random walk of ten steps, broken in a way on request, in some ways from the seventh step of episode 3 on."""

    BROKEN = {  # noqa: RUF012 it is never changed
        "raises": lambda walk: _raise(),
        "shape": lambda walk: (np.zeros(3, np.float32), 0.0, False, False, {}),
        "not_finite": lambda walk: (np.array([np.inf], np.float32), 0.0, False, False, {}),
        "no_reward": lambda walk: (walk._seen(), float("nan"), False, False, {}),
        "leaves": lambda walk: sys.exit(3),
    }

    def __init__(self, way: str = "none") -> None:
        self.observation_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._way, self._lasting, self._episode = way, 0.0, 0
        self._unseeded = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._at, self._step = self._lasting, 0
        self._episode += 1
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        random = self._unseeded if self._way == "unseeded" else self.np_random
        self._at += float(random.normal()) * 0.01
        self._step += 1
        if self._step == 7 and self._episode > 2 and self._way in self.BROKEN:
            return self.BROKEN[self._way](self)
        if self._way == "lasting":
            self._lasting += 0.001
        return self._seen(), 0.0, self._step == 10 and self._way != "endless", False, {}

    def _seen(self) -> Any:
        return np.array([self._at + (5.0 if self._way == "bounds" and self._step else 0.0)], np.float32)


@pytest.mark.parametrize(
    ("way", "what", "status", "says"),
    [
        ("unseeded", "seeding", "fail", "the same seed and actions gave another episode"),
        ("lasting", "restoring", "warn", "does not come to the same state"),
        ("bounds", "bounds", "warn", "not in the observation space"),
        ("raises", "stepping", "fail", "RuntimeError: out of paint (in step 7 of the episode with seed"),
        ("shape", "stepping", "fail", "ValueError: observation of shape (3,), expected (1,) (in step 7"),
        ("not_finite", "stepping", "fail", "ValueError: observation is NaN or infinite (in step 7"),
        ("no_reward", "stepping", "fail", "ValueError: reward is nan (in step 7"),
        ("leaves", "stepping", "fail", "SystemExit: 3 (in step 7"),
        ("endless", "episodes", "warn", "no episode ended in 3000 random steps; no time limit known"),
        ("none", "episodes", "ok", "ended, 0 of them truncated; 10 to 10 steps"),
    ],
)
def test_what_is_wrong_is_found(way: str, what: str, status: str, says: str) -> None:
    found = findings(Walk, way=way)[what]
    assert (found.status, says in found.found) == (status, True), found


def test_steps_that_take_their_time_are_described() -> None:
    found = findings("penstock/Latency-v0", mean_s=0.02, variance=0.0)["step time"].found
    assert "mean 2" in found  # 20 ms, and what a busy machine adds
    assert "threads, drift" in found


def test_the_report_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    """Advice that would make a line too long stands under it."""
    arguments = ["doctor", "--env", f"{Walk.__module__}:Walk", "--env-arg", "way=unseeded"]
    assert main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 14
    assert max(map(len, lines)) <= 150
    assert any(line.strip().startswith("-> draw random numbers from self.np_random only") for line in lines)
    assert lines[-1] == "Not ready: see seeding above."


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--env", "CartPole-v1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "Ready: penstock train CartPole-v1"
    assert main(["doctor", "--env", "Nowhere-v7"]) == 2
    assert main(["doctor", "--env-arg", "a=1"]) == 2
