"""The simulated world itself: time, cuts, and that it notices what a real learner would notice."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.protocols import Ended, Said
from penstock.flow import free
from penstock.flow.settings import FlowSettings
from penstock.run.settings import RunSettings
from penstock.testing.clock import JumpingClock
from penstock.testing.simulated_run import simulate
from penstock.testing.simulation import Script, SimulatedWorld
from penstock.transport import messages


def test_time_jumps_forward_only() -> None:
    clock = JumpingClock()
    clock.jump_to(5.0)
    clock.jump_to(3.0)
    assert clock.now() == 5.0


def test_wait_returns_at_its_timeout_or_with_what_comes_first() -> None:
    world = SimulatedWorld(Script(start_s=1.0, latency_s=0.0))
    world.start_learner(0)
    assert world.wait(0.25) == []
    assert world.clock.now() == 0.25
    (said,) = world.wait(None)
    assert isinstance(said, Said)
    assert isinstance(said.message, messages.Ready)
    assert world.clock.now() == 1.0
    with pytest.raises(AssertionError, match="everybody waits for ever; simulation seed 0"):
        world.wait(None)


def test_a_run_that_never_ends_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="the run does not end; simulation seed 5"):
        simulate(Script(seed=5, limit_s=9.0), flow=FlowSettings(), run=RunSettings(steps=10**9), directory=tmp_path)


def test_a_killed_worker_says_nothing_more_and_is_reported_dead() -> None:
    world = SimulatedWorld(Script(start_s=1.0))
    world.start_learner(0)
    world.kill(0)
    assert world.wait(None) == [Ended(0, -9)]
    assert world.wait(5.0) == []


def test_a_law_that_shares_slots_is_noticed_and_the_seed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real run, a broken law with its check silenced: the learner finds another segment in the slot."""

    def issue_into_slot_0(self: free.FreeLaw) -> list[free.Command]:
        commands = issue(self)
        return [messages_to_slot_0(command) for command in commands]

    def messages_to_slot_0(command: free.Command) -> free.Command:
        assert isinstance(command, free.StartSegment)
        return free.StartSegment(command.segment, command.block, command.worker, 0, command.version)

    issue = free.FreeLaw._issue
    monkeypatch.setattr(free.FreeLaw, "_issue", issue_into_slot_0)
    monkeypatch.setattr(free.FreeLaw, "check", lambda self: None)
    with pytest.raises((AssertionError, KeyError)) as caught:
        simulate(Script(seed=41), flow=FlowSettings(schedule="async"), run=RunSettings(steps=9999), directory=tmp_path)
    assert "simulation seed 41" in caught.value.__notes__[0]
