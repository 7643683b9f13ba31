"""Whole runs in simulated time: settings and a script in, an ending and its books out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from penstock.algorithms.settings import PPOSettings
from penstock.envs.settings import EnvSettings
from penstock.flow.events import Law
from penstock.flow.opening import open_law
from penstock.flow.settings import FlowSettings
from penstock.metrics.panel import Silence
from penstock.run.directory import Journal
from penstock.run.job import Job
from penstock.run.recorder import Callback, Recorder
from penstock.run.settings import RunSettings
from penstock.run.supervisor import Ending, Supervisor
from penstock.run.telemetry import Telemetry
from penstock.testing.simulation import Script, SimulatedWorld


@dataclass(frozen=True)
class SimulatedRun:
    """How a simulated run went."""

    ending: Ending
    recorder: Recorder
    world: SimulatedWorld
    law: Law
    journal: list[dict[str, Any]]

    @property
    def telemetry(self) -> Telemetry:
        return self.recorder.telemetry

    def sent(self, kind: type) -> list[tuple[float, str, Any]]:
        """(moment, to whom, message) of every message of this kind."""
        return [entry for entry in self.world.sent if isinstance(entry[2], kind)]

    def told(self, event: str) -> list[dict[str, Any]]:
        """The journal's lines of this event."""
        return [entry for entry in self.journal if entry["event"] == event]


def simulate(
    script: Script,
    *,
    flow: FlowSettings,
    run: RunSettings,
    directory: Path,
    num_blocks: int = 4,
    num_workers: int = 2,
    inference_server: bool = False,
    checkpoint_every: int = 0,
    callback: Callback | None = None,
    callback_s: float = 0.0,
) -> SimulatedRun:
    """One run under the real supervisor. The law's `check` runs after every event; what fails carries the seed."""
    world = SimulatedWorld(script)
    law = open_law(flow, num_blocks, steps=run.steps, segment_rows=script.pace.steps * script.pace.lanes)
    path = directory / "journal.jsonl"
    path.unlink(missing_ok=True)
    if callback_s:
        callback = _taking(callback_s, world)
    recorder = _recorder(script, flow, run, world, num_blocks, path, callback)
    supervisor = Supervisor(
        settings=run,
        law=law,
        world=world,
        recorder=recorder,
        num_blocks=num_blocks,
        num_workers=num_workers,
        inference_server=inference_server,
        checkpoint_every=checkpoint_every,
        debug=True,
    )
    try:
        world.open()
        ending = supervisor.run()
    except BaseException as error:
        error.add_note(f"simulation seed {script.seed}, {flow}, {num_blocks} blocks on {num_workers} workers")
        raise
    finally:
        world.close(0)
        recorder.close()
    journal = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    return SimulatedRun(ending, recorder, world, law, journal)


def _taking(seconds: float, world: SimulatedWorld) -> Callback:
    """A callback that takes so long."""

    def callback(record: dict[str, Any]) -> None:
        del record
        world.clock.jump_to(world.clock.now() + seconds)

    return callback


def _recorder(
    script: Script, flow: FlowSettings, run: RunSettings, world: SimulatedWorld, blocks: int, journal: Path, callback: Any
) -> Recorder:
    job = Job(
        algo="ppo",
        algorithm="nothing:Nothing",
        env=EnvSettings(id="Simulated-v0", n_envs=blocks * script.pace.lanes, n_blocks=blocks),
        learner=PPOSettings(n_steps=script.pace.steps),
        flow=flow,
        run=run,
    )
    return Recorder(
        job,
        clock=world.clock,
        started_s=world.clock.now(),
        telemetry=Telemetry(staleness_bound=flow.bound, frame_skip=1),
        journal=Journal(journal),
        sinks=(),
        panel=Silence(),
        callback=callback,
        run_dir=str(journal.parent),
        threshold=None,
        cores=64,
    )
