"""The textbook loop, as the baseline: step all environments at the same time, wait for the slowest, and again; then learn.

Pinned by its SHA-256 in tests/bench: whoever changes this file moves the bar. No part of Penstock's runtime is in it: a
thread for each environment, woken by a lock of its own; what the learner waits is slept, a real one is the frozen reference
kernel. It gets what serves it best: with a timed learner it does not even compute actions.

Run as a module with one JSON argument; prints one line of JSON with the seconds that stepping and learning took.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
import time
from collections.abc import Callable
from typing import Any


class Lane(threading.Thread):
    """One environment in a thread of its own."""

    def __init__(self, environment: Any) -> None:
        super().__init__(daemon=True)
        self._environment = environment
        self._asked, self._done = threading.Lock(), threading.Lock()
        self._asked.acquire()
        self._done.acquire()

    def run(self) -> None:
        while True:
            self._asked.acquire()
            self._environment.step(0)
            self._done.release()

    def ask(self) -> None:
        """Begin a step."""
        self._asked.release()

    def wait(self) -> None:
        """Until the step is done."""
        self._done.acquire()


def measure(settings: dict[str, Any]) -> dict[str, float]:
    """Rollouts and updates in turns."""
    lanes = [Lane(environment) for environment in _environments(settings)]
    act, learn = _learner(settings, len(lanes))
    for lane in lanes:
        lane.start()
    rollout_s = learn_s = 0.0
    for _ in range(settings["rollouts"]):
        start = time.perf_counter()
        for _ in range(settings["steps"]):
            act()
            for lane in lanes:
                lane.ask()
            for lane in lanes:
                lane.wait()
        middle = time.perf_counter()
        learn()
        rollout_s += middle - start
        learn_s += time.perf_counter() - middle
    return {"rollout_s": rollout_s, "learn_s": learn_s}


def _environments(settings: dict[str, Any]) -> list[Any]:
    module, _, name = settings["environment"].partition(":")
    make: Callable[..., Any] = getattr(importlib.import_module(module), name)
    environments = [make(**settings["arguments"]) for _ in settings["seeds"]]
    for environment, seed in zip(environments, settings["seeds"], strict=True):
        environment.reset(seed=seed)
    return environments


def _learner(settings: dict[str, Any], lanes: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """What acts at every step, and what learns after the last."""
    if settings["ppo"] is None:
        return lambda: None, lambda: time.sleep(settings["wait_s"])
    import torch

    from penstock.bench import reference_kernels

    torch.set_num_threads(1)
    ppo = settings["ppo"]
    update = reference_kernels.ppo_update(ppo["inputs"], ppo["outputs"], ppo["batch_size"], discrete=True)
    update()  # what a first call sets up is not counted

    def learn() -> None:
        for _ in range(ppo["n_epochs"] * lanes * settings["steps"] // ppo["batch_size"]):
            update()

    return reference_kernels.numpy_forward(ppo["inputs"], ppo["outputs"], lanes), learn


if __name__ == "__main__":
    print(json.dumps(measure(json.loads(sys.argv[1]))))
