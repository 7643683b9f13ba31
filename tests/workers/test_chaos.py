"""Trouble on request: what can be asked for, what is refused, and that it is trouble."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from worker_plans import ENVIRONMENTS, MAKER, SEED, SPEC

from penstock.core.errors import Refused
from penstock.core.protocols import ALL
from penstock.envs.opening import open_block
from penstock.workers import chaos
from penstock.workers.chaos import DEFAULT_DELAY_MS, ChaosPlan, Delays, SlowBlock, SlowEnvironment


@pytest.mark.parametrize(
    ("text", "delay_ms", "slow"),
    [
        (None, 0, {}),
        ("", 0, {}),
        ("delays", DEFAULT_DELAY_MS, {}),
        ("delays:0.5", 0.5, {}),
        ("slow:1=2.5", 0, {1: 2.5}),
        ("slow:0=4, delays:2 ,slow:3=1", 2, {0: 4, 3: 1}),
    ],
)
def test_what_can_be_asked_for(text, delay_ms, slow):
    assert ChaosPlan.parse(text) == ChaosPlan(delay_ms, slow)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kill:0.1", "kill"),
        ("earthquake", r"knows delays\[:ms\] and slow:WORKER=FACTOR, not 'earthquake'"),
        ("delays:soon", "not of the form"),
        ("slow:1", "not of the form"),
        ("slow:one=2", "not of the form"),
        ("delays:-1", "0 ms or more"),
        ("slow:1=0.5", "1 or more"),
        ("delays:nan", "0 ms or more"),
        ("delays:inf", "0 ms or more"),
        ("slow:1=nan", "1 or more"),
        ("slow:1=inf", "1 or more"),
        ("slow:-1=2", "not of the form|1 or more"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(Refused, match=message):
        ChaosPlan.parse(text)


@pytest.fixture
def slept(monkeypatch) -> list[float]:
    naps: list[float] = []
    monkeypatch.setattr(chaos.time, "sleep", naps.append)
    return naps


def test_delays_come_every_other_time_and_are_counted(slept):
    delays = Delays(3.0)
    for _ in range(2000):
        delays.maybe()
    assert 800 < len(slept) < 1200
    assert 0.0025 < np.mean(slept) < 0.0035
    assert delays.take_events() == len(slept)
    assert delays.take_events() == 0


def test_no_delays_unless_asked_for(slept):
    delays = Delays(0)
    for _ in range(100):
        delays.maybe()
    assert slept == []
    assert delays.take_events() == 0


class Ticking:
    """A clock that moves on by one at every look."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


def test_a_slow_block_is_the_same_block_only_slower(slept, monkeypatch):
    plain = open_block(MAKER, SPEC, ENVIRONMENTS, SEED, 1, "serial")
    slow = SlowBlock(open_block(MAKER, SPEC, ENVIRONMENTS, SEED, 1, "serial"), 3.0)
    monkeypatch.setattr(chaos.time, "perf_counter", Ticking())
    for block in (plain, slow):
        block.reset()
        for _ in range(10):
            block.send(ALL, np.ones(block.num_lanes, np.int64))
            block.receive(None)
    for name in ("observation", "reward", "terminated", "truncated", "valid"):
        assert np.array_equal(getattr(plain, name), getattr(slow, name))
    assert slept == [2.0] * 10  # a step of 1 is made one of 3
    assert (slow.fileno(), slow.num_lanes, slow.spec) == (plain.fileno(), plain.num_lanes, plain.spec)
    assert slow.position(2) == plain.position(2)
    slow.close()


def test_a_slow_environment_is_the_same_environment_only_slower(slept, monkeypatch):
    class Environment:
        def step(self, action: Any) -> Any:
            return "outcome of", action

    slow: Any = SlowEnvironment(4.0)(Environment())
    monkeypatch.setattr(chaos.time, "perf_counter", Ticking())
    assert slow.step(7) == ("outcome of", 7)
    assert slept == [3.0]
