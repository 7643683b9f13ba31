"""The recorder: hears what the supervisor hears, and writes it down: journal, metrics, panel, callback.

It also answers the one question that needs counts: whether the run is over. It sends no message and starts nothing.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from penstock.core.clock import Clock
from penstock.core.protocols import Sink
from penstock.flow.events import StartSegment, TrainBatch
from penstock.metrics.bottleneck import Shares, bottleneck
from penstock.metrics.panel import Panel, PanelView, Silence
from penstock.run.directory import Journal
from penstock.run.job import Job
from penstock.run.roster import Worker
from penstock.run.telemetry import Telemetry
from penstock.transport import messages

Callback = Callable[[dict[str, Any]], Any]

REFRESH_EVERY_S = 0.25
STORY_LENGTH = 12


class Recorder:
    """Everything that a run tells the outside."""

    def __init__(
        self,
        job: Job,
        *,
        clock: Clock,
        started_s: float,
        telemetry: Telemetry,
        journal: Journal,
        sinks: Sequence[Sink],
        panel: Panel,
        callback: Callback | None,
        run_dir: str,
        threshold: float | None,
        cores: int = 1,
        interruptible: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.telemetry = telemetry
        self.solved_at: tuple[int, float] | None = None
        self.next_refresh_s: float | None = started_s
        self._job, self._clock, self._started_s, self._cores = job, clock, started_s, cores
        self._journal, self._sinks, self._panel, self._callback = journal, sinks, panel, callback
        self._run_dir, self._threshold = run_dir, threshold
        self.raised: BaseException | None = None  # what the callback raised, for its caller
        self.lost: OSError | None = None  # why a line could not be written
        self._interruptible = interruptible  # in here a person's second Ctrl-C ends even what hangs
        self._stories: defaultdict[int, deque[str]] = defaultdict(lambda: deque(maxlen=STORY_LENGTH))  # by worker
        self._waited_s: defaultdict[int, float] = defaultdict(float)  # by block: the learner waited for it alone
        self._woken_s: float | None = None
        self._closed = False
        self._last_marked_s = started_s

    # ---------------------------------------------------------------- events

    def event(self, name: str, **facts: Any) -> None:
        """One line of the journal."""
        self._tell_story(name, facts)
        with self._keeping_on():
            self._journal.write(name, **facts)
            self._journal.flush()

    @contextmanager
    def _keeping_on(self) -> Iterator[None]:
        """A disk that takes no more must not cost what has been learned: the run ends, and says why."""
        try:
            yield
        except OSError as error:
            self.lost = error

    def _write(self, name: str, **facts: Any) -> None:
        with self._keeping_on():
            self._journal.write(name, **facts)

    def story_of(self, worker: Worker) -> str:
        """The last events in which this worker had a part."""
        return "\n".join(self._stories[worker.incarnation])

    def _tell_story(self, name: str, facts: Mapping[str, Any]) -> None:
        if "worker" in facts:
            moment = f"{self.elapsed_s():.3f} s {name}"
            others = " ".join(f"{key}={value}" for key, value in facts.items() if key != "worker")
            self._stories[facts["worker"]].append(f"{moment} {others}")

    def learner_ready(self, message: messages.Ready) -> None:
        self.telemetry.digest = message.digest
        self.event("learner_ready", version=0, digest=message.digest, num_weights=message.num_weights)

    def segment_started(self, command: StartSegment) -> None:
        if self.telemetry.first_issue_s is None:
            self.telemetry.first_issue_s = self._clock.now()
        where = {"segment": command.segment, "block": command.block, "slot": command.slot, "version": command.version}
        self._tell_story("segment_started", {"worker": command.worker, **where})

    def segment_done(self, worker: Worker, message: messages.Done) -> None:
        self.telemetry.segment_done(worker.index, message)
        self._tell_story("segment_done", {"worker": worker.incarnation, "segment": message.segment, "steps": message.steps})
        if message.short:
            self._write("short", segment=message.segment, worker=worker.incarnation, steps=message.steps)

    def batch_taken(self, command: TrainBatch) -> None:
        members = [[m.segment, m.block, m.worker, m.version] for m in command.members]
        self._write("batch", version=command.version, segments=members)

    def episodes(self, returns: Sequence[float], lengths: Sequence[int]) -> None:
        self.telemetry.episodes_finished(returns, lengths)

    def batch_trained(self, message: messages.Trained) -> str | None:
        """Write down a version; the reason to stop here, if there is one."""
        telemetry = self.telemetry
        telemetry.batch_trained(message, self._clock.now())
        self._write("trained", version=message.version, digest=message.digest)
        with self._keeping_on():
            self._journal.flush()  # once a version, before metrics.jsonl names it: no kill leaves a version without its digest
        record = telemetry.record(message, self.elapsed_s())
        for sink in self._sinks:
            with self._keeping_on():
                sink.write(record)
        if self.solved_at is None and telemetry.returns.reached(self._threshold):
            self.solved_at = telemetry.env_steps, self.elapsed_s()
        return "signal" if self._caller_stops(record) else self._stop_reason()

    def _caller_stops(self, record: dict[str, Any]) -> bool:
        """Whatever a callback raises is kept for its caller: the run still ends in order, with what it has learned saved."""
        if self._callback is None or self.raised is not None:
            return False
        try:
            with self._interruptible():
                answer = self._callback(dict(record))
            return isinstance(answer, bool | np.bool_) and bool(answer)
        except BaseException as error:
            self.raised = error
            return False

    def saved(self, message: messages.Saved) -> None:
        self.event("checkpoint", version=message.version, path=message.path)

    def waits(self, blocks: Sequence[int]) -> None:
        """For whom the learner has been waiting since this was last asked."""
        now = self._clock.now()
        if len(blocks) == 1:
            self._waited_s[blocks[0]] += now - self._last_marked_s
        self._last_marked_s = now

    def supervisor_wakes(self) -> None:
        """The supervisor has something to do, from now on."""
        self._woken_s = self._clock.now()

    def supervisor_waits(self) -> None:
        """It has nothing left to do. Only what it does while segments are collected and trained counts."""
        if self._woken_s is not None and self.telemetry.first_issue_s is not None:
            self.telemetry.supervisor_busy_s += self._clock.now() - self._woken_s

    # ---------------------------------------------------------------- questions

    @property
    def progress(self) -> float:
        """Share of the step budget that is used; what schedules of learning rate and the like go by."""
        return min(1.0, self.telemetry.env_steps / self._job.run.steps)

    def out_of_time(self) -> bool:
        minutes = self._job.run.minutes
        return minutes is not None and self.elapsed_s() >= minutes * 60

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps of the run beside the learner's own state."""
        telemetry = self.telemetry
        return {
            "env_steps": telemetry.env_steps,
            "env_steps_collected": telemetry.env_steps_collected,
            "samples_consumed": telemetry.samples_consumed,
            "updates": telemetry.updates,
            "episodes": telemetry.returns.episodes,
            "return_mean": telemetry.returns.mean,
        }

    def bottleneck(self) -> str:
        """One sentence on what holds the run up."""
        telemetry = self.telemetry
        if telemetry.train_wall_s is None:
            return "Nothing has been trained yet."
        block, waited_s = max(self._waited_s.items(), key=lambda item: item[1], default=(None, 0.0))
        return bottleneck(
            Shares(
                schedule=self._job.flow.schedule,
                staleness=self._job.flow.bound,
                learner_busy=telemetry.learner_busy or 0.0,
                sampler_busy=telemetry.sampler_busy,
                environment_share=telemetry.environment_share or 0.0,
                inference_share=telemetry.inference_share or 0.0,
                inference_server=self._job.compute.inference == "server",
                sampler_cpu=telemetry.sampler_cpu,
                supervisor_busy=telemetry.supervisor_busy or 0.0,
                slowest_block=block,
                slowest_block_wait=min(1.0, waited_s / telemetry.train_wall_s),
                cores=self._cores,
            )
        )

    # ---------------------------------------------------------------- the panel

    def refresh(self, phase: str, waiting_for: Sequence[int]) -> None:
        """Show how things stand, if it is time to."""
        now = self._clock.now()
        if self.next_refresh_s is None or now < self.next_refresh_s:
            return
        self.next_refresh_s = now + REFRESH_EVERY_S
        self.waits(waiting_for)
        self._show(phase)

    def _show(self, phase: str) -> None:
        """Whoever looked on may have gone, as `| head` does; that is no reason to stop training."""
        try:
            self._panel.show(self.view(phase))
        except OSError:
            self._panel = Silence()

    def view(self, phase: str) -> PanelView:
        job, telemetry = self._job, self.telemetry
        return PanelView(
            env_id=job.env.id,
            algo=job.algo,
            schedule=job.flow.schedule,
            seed=job.run.seed,
            run_dir=self._run_dir,
            elapsed_s=self.elapsed_s(),
            steps=telemetry.env_steps,
            total_steps=job.run.steps,
            limit_s=None if job.run.minutes is None else job.run.minutes * 60,
            version=telemetry.version,
            episodes=telemetry.returns.episodes,
            return_mean=telemetry.returns.mean,
            return_last=telemetry.returns.last,
            target_return=job.run.until_return,
            sps=telemetry.sps,
            staleness_bound=telemetry.staleness_bound,
            staleness_mean=telemetry.staleness_mean,
            staleness_max=telemetry.staleness_max,
            learner_busy=telemetry.learner_busy,
            learner_wait=None if telemetry.learner_busy is None else 1.0 - telemetry.learner_busy,
            sampler_busy=telemetry.sampler_busy,
            bottleneck=self.bottleneck() if telemetry.train_wall_s else "",
            phase=phase,
        )

    def close(self) -> None:
        """Show the end, flush everything, give the terminal back. Closing again does nothing."""
        if self._closed:
            return
        self._closed = True
        self._show("done")
        with suppress(OSError):  # as above
            self._panel.close()
        for end in (*(sink.close for sink in self._sinks), self._journal.close):
            with self._keeping_on():
                end()

    def elapsed_s(self) -> float:
        """Since the process began, as far as is known."""
        return self._clock.now() - self._started_s

    def _stop_reason(self) -> str | None:
        if self.telemetry.returns.reached(self._job.run.until_return):
            return "return"
        if self.telemetry.env_steps >= self._job.run.steps:
            return "steps"
        return "minutes" if self.out_of_time() else None
