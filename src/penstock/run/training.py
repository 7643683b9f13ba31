"""From a job to a finished run.

    check everything that can be checked -> run directory -> world -> supervisor -> summary

Nothing is left behind by what is refused: the directory is made last, and removed again if it stayed empty.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from penstock.checkpoint import files
from penstock.core.clock import SystemClock
from penstock.core.errors import BadCheckpoint, PenstockError, Refused
from penstock.core.protocols import Sink, World
from penstock.envs.making import EnvironmentMaker
from penstock.envs.probing import probe
from penstock.metrics.panel import open_panel
from penstock.metrics.settings import MetricsSettings
from penstock.metrics.sinks import JsonLines
from penstock.metrics.tensorboard import EventFile
from penstock.run.directory import JOURNAL, Journal, RunDirectory, check_recordable
from penstock.run.inline_world import InlineWorld
from penstock.run.job import Job
from penstock.run.process_world import ProcessWorld
from penstock.run.recorder import Callback, Recorder
from penstock.run.resources import check_resources
from penstock.run.signals import StopSignals
from penstock.run.summary import summarise
from penstock.run.supervisor import Ending, Supervisor
from penstock.run.telemetry import Telemetry
from penstock.run.travelling import check_travels
from penstock.run.wiring import Wiring, num_cores
from penstock.workers.forkserver import ForkServer

STOP_GRACE_S = 5.0


def _working_directory() -> Path:
    """Where relative paths begin. One that has been deleted is said by whoever wants to write there."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path()


@dataclass(frozen=True)
class Request:
    """A job and what goes with it but is not settings: code, places, who listens."""

    job: Job
    config_toml: str
    config_digest: str
    out: Path | None = None
    init_from: Path | None = None
    environment: Any = None  # a class, factory or lambda of the person's own script
    model: Any = None  # a module class of the person's own script
    callback: Callback | None = None
    notes: tuple[str, ...] = ()  # what a person should hear before it starts
    quiet: bool = False
    started_s: float | None = None  # monotonic; when the process began
    here: Path = field(default_factory=_working_directory)
    """Where relative paths begin, looked up once: an environment or a callback may change the working directory."""

    @property
    def start(self) -> Path | None:
        """`init_from`, from wherever one looks."""
        return None if self.init_from is None else self.here / self.init_from


@dataclass(frozen=True)
class Outcome:
    """How a run ended."""

    run_dir: Path
    summary: dict[str, Any]
    error: PenstockError | None

    exit_code: int = 0


def train(request: Request, server: ForkServer | None = None) -> Outcome:
    """Carry out a run. Raises Refused if nothing was started; failures of a run under way are in the outcome.

    `server` is a fork server to use and leave running; without one the run has its own.
    """
    check_recordable(request.out, request.here)
    if server is not None or request.job.run.workers == 0:
        return _train(request, server)
    own = ForkServer()  # first of all: torch loads while the rest is checked
    try:
        return _train(request, own)
    finally:
        own.close()


def _train(request: Request, server: ForkServer | None) -> Outcome:
    job = request.job
    if request.start is not None:
        _check_start(request.start, shown=request.init_from)
    maker = EnvironmentMaker.of(job.env, request.environment)
    found = probe(maker, job.env)
    job.model.check_for(found.spec)
    if job.run.workers != 0:
        check_travels(maker, request.model)
    with closing(StopSignals()) as signals:  # from here on there is something to tidy up
        directory = RunDirectory.create(request.out, env_id=job.env.id, algo=job.algo, seed=job.run.seed, here=request.here)
        wiring = Wiring(
            job=job,
            maker=maker,
            probe=found,
            run_dir=directory.path,
            settings_digest=request.config_digest,
            custom_model=request.model,
            initial_weights=request.start,
        )
        try:
            check_resources(wiring)
            with suppress(BrokenPipeError):  # nobody listens
                for note in () if request.quiet else request.notes:
                    print(f"penstock: {note}", file=sys.stderr, flush=True)
            return _run(request, wiring, directory, _world_of(wiring, server, signals), signals)
        except BaseException:
            directory.discard()  # unless something was trained: a callback may raise anything
            raise


def _check_start(source: Path, *, shown: Path | None) -> None:
    """Where other weights are to come from there must be a whole checkpoint. Whether they fit is the learner's to see."""
    if not source.exists():
        raise Refused(f"--init-from {shown} does not exist; name a run's directory or a checkpoint in it")
    try:
        files.load(files.newest(source) if (source / "checkpoints").is_dir() else source)
    except BadCheckpoint as error:
        raise Refused(f"--init-from {shown}: {error}") from error


def _world_of(wiring: Wiring, server: ForkServer | None, signals: StopSignals) -> World:
    """One process for `--workers 0`, else the processes that the server starts."""
    if wiring.job.run.workers == 0 or server is None:
        return InlineWorld(wiring, signals)
    return ProcessWorld(wiring, server, signals)


def _run(request: Request, wiring: Wiring, directory: RunDirectory, world: World, signals: StopSignals) -> Outcome:
    with ExitStack() as left:
        left.callback(world.close, STOP_GRACE_S)
        world.open()  # takes shared memory, or refuses; only then is anything written
        directory.write_text("config.toml", request.config_toml)
        recorder = _recorder(request, wiring, directory, signals)
        left.push(lambda kind, *_: recorder.close() if kind else None)  # the terminal is given back whatever goes wrong
        ending = _supervisor(wiring, world, recorder).run()
    outcome = _finish(request, wiring, directory, recorder, ending)
    if recorder.raised is not None:
        raise recorder.raised  # the callback's own error belongs to who passed the callback
    if isinstance(ending.error, Refused):  # a worker found what could not be seen from here: a network that does not fit
        raise ending.error
    return outcome


def _supervisor(wiring: Wiring, world: World, recorder: Recorder) -> Supervisor:
    job = wiring.job
    return Supervisor(
        settings=job.run,
        law=wiring.open_law(),
        world=world,
        recorder=recorder,
        num_blocks=job.env.n_blocks,
        num_workers=wiring.num_workers,
        inference_server=wiring.has_server,
        checkpoint_every=wiring.checkpoint_every,
        debug=job.run.debug,
    )


def _recorder(request: Request, wiring: Wiring, directory: RunDirectory, signals: StopSignals) -> Recorder:
    job, spec = request.job, wiring.probe.spec
    clock = SystemClock()
    journal = Journal(directory.path / JOURNAL)
    journal.write("run_started", env_id=job.env.id, algo=job.algo, schedule=job.flow.schedule, seed=job.run.seed)
    return Recorder(
        job,
        clock=clock,
        started_s=clock.now() if request.started_s is None else request.started_s,
        telemetry=Telemetry(staleness_bound=job.flow.bound, frame_skip=spec.frame_skip, inline=job.run.workers == 0),
        journal=journal,
        sinks=_sinks(directory.path, job.metrics),
        panel=open_panel(quiet=request.quiet, lines_every_s=job.metrics.lines_every_s),
        callback=request.callback,
        run_dir=directory.shown,
        threshold=spec.reward_threshold if job.run.until_return is None else job.run.until_return,
        cores=num_cores(),
        interruptible=signals.second_one_interrupts,
    )


def _sinks(path: Path, settings: MetricsSettings) -> list[Sink]:
    sinks: list[Sink] = [JsonLines(path / "metrics.jsonl")]
    if settings.tensorboard:
        sinks.append(EventFile(path / "events", every_s=settings.every_s))
    return sinks


def _finish(request: Request, wiring: Wiring, directory: RunDirectory, recorder: Recorder, ending: Ending) -> Outcome:
    recorder.event("run_ended", reason=ending.reason, version=recorder.telemetry.version)
    recorder.close()
    workers = 0 if request.job.run.workers == 0 else wiring.num_workers
    summary = summarise(wiring, recorder, ending, wall_s=recorder.elapsed_s(), num_workers=workers)
    directory.write_text("summary.json", msgspec.json.format(msgspec.json.encode(summary), indent=2).decode() + "\n")
    return Outcome(directory.path, summary, ending.error, _exit_code(ending))


def _exit_code(ending: Ending) -> int:
    if ending.error is not None:
        return 1
    return 0 if ending.signal is None else 128 + ending.signal
