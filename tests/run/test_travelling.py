"""What cannot be handed to other processes is refused by name, before anything starts. A class of a test's own is local to its
function, so that it travels by value, as one of a script does."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from penstock.core.errors import Refused
from penstock.envs.making import EnvironmentMaker
from penstock.run.travelling import check_travels

SMALL: dict[str, Any] = {"preset": "none", "steps": 200, "n_envs": 4, "n_blocks": 2, "n_steps": 16, "batch_size": 32}


def still_class(**attributes: Any) -> Any:
    """An environment in which nothing happens, with these class attributes."""

    class Still(gymnasium.Env[Any, Any]):
        observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)
        action_space = gymnasium.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
            return np.zeros(2, np.float32), {}

        def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
            return np.zeros(2, np.float32), 1.0, False, False, {}

    for name, value in attributes.items():
        setattr(Still, name, value)
    return Still


def registered(name: str, entry_point: Any) -> str:
    gymnasium.register(id=name, entry_point=entry_point)
    return name


def locked_model() -> Any:
    class Locked(torch.nn.Module):
        lock = threading.Lock()

        def forward(self, observation: torch.Tensor) -> torch.Tensor:
            return observation

    return Locked


class Stubborn:
    """Says in its own words that it stays."""

    def __reduce__(self) -> Any:
        raise RuntimeError("not\nwithout my licence")

    def __call__(self) -> Any:
        return still_class()()


def factories() -> list[Any]:
    locked, lock = still_class(lock=threading.Lock()), threading.Lock()
    return [
        (locked, ["environment 'Still'", "cannot pickle '_thread.lock' object", "(in lock)"]),
        (lambda: locked(), ["environment 'lambda'", "(in locked.lock)"]),
        (partial(lambda held: still_class()(), lock), ["environment 'partial'", "'_thread.lock'"]),
        (Stubborn(), ["environment 'Stubborn'", "RuntimeError: not without my licence"]),
    ]


@pytest.mark.processes
@pytest.mark.parametrize(("environment", "words"), factories())
def test_an_environment_that_does_not_travel_is_refused_and_leaves_nothing(run_training, tmp_path, environment, words):
    with pytest.raises(Refused) as refusal:
        run_training(environment, **SMALL, workers=1)
    message = str(refusal.value)
    assert [word for word in words if word not in message] == [], message
    assert "workers=0" in message
    assert "\n" not in message
    assert "Traceback" in refusal.value.details
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
def test_nor_does_a_model(run_training, tmp_path):
    with pytest.raises(Refused, match=r"model cannot be handed to worker processes: .*lock.* \(in lock\); make that"):
        run_training("CartPole-v1", **SMALL, workers=1, model=locked_model())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.processes
def test_in_one_process_nothing_has_to_travel(run_training):
    outcome = run_training(still_class(lock=threading.Lock()), **SMALL, workers=0)
    assert outcome.error is None


def test_a_registration_of_the_scripts_own_is_named_by_its_id():
    name = registered("Locked-v0", still_class(lock=threading.Lock()))
    with pytest.raises(Refused, match="environment 'Locked-v0' cannot be handed"):
        check_travels(EnvironmentMaker(name), None)


def test_wrappers_and_arguments_are_named():
    def wrapped(environment: Any, lock: Any = threading.Lock()) -> Any:  # noqa: B008 the mistake that is tested
        return environment

    with pytest.raises(Refused, match=r"wrapper 'test_wrappers.*wrapped' cannot be handed"):
        check_travels(EnvironmentMaker("CartPole-v1", wrappers=(wrapped,)), None)
    with pytest.raises(Refused, match="argument 'door' of environment 'CartPole-v1' cannot be handed"):
        check_travels(EnvironmentMaker("CartPole-v1", {"door": threading.Lock()}), None)


def test_what_travels_passes():
    check_travels(EnvironmentMaker(still_class(rows=np.zeros(3))), torch.nn.Linear)
    check_travels(EnvironmentMaker("CartPole-v1"), None)
