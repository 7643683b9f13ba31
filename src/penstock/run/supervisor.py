"""The supervisor: what happens becomes an event for the law; what the law commands becomes a message.

    STARTING --learner ready, blocks up--> RUNNING --stop rule, signal, fault--> SAVING --saved--> STOPPED

It owns no process, no memory and no file: a World does what it says, a Recorder writes down what it hears. The simulated
world drives this very class, with a clock that jumps. It waits in one place, `World.wait`.
"""

from __future__ import annotations

import enum
import errno
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core import errors
from penstock.core.errors import PenstockError, Refused, RunFailed
from penstock.core.protocols import Ended, Happening, Interrupted, Said, World
from penstock.flow.events import (
    BatchTrained,
    BlockUp,
    Event,
    HandIn,
    KillWorker,
    Law,
    LeaseExpired,
    RunEnding,
    SegmentDone,
    StartSegment,
    TrainBatch,
    WorkerDead,
    WriteOff,
    WriteOffAcknowledged,
)
from penstock.run.leases import Answering, Lease, Leases, LettingGo, Opening, Running, Training
from penstock.run.obituary import obituary
from penstock.run.recorder import Recorder
from penstock.run.roster import Role, Roster, Worker, share_out
from penstock.run.settings import RunSettings
from penstock.transport import messages

SAVE_GRACE_S = 30.0
"""How long the last checkpoint may take before the run ends without it."""
UPDATE_GRACE_S = 60.0
"""How long the update before it may take; twice the longest so far, if that is more."""
FULL = (errno.ENOSPC, errno.EDQUOT)


class Phase(enum.Enum):
    """Where the run stands."""

    STARTING = "starting"
    RUNNING = "training"
    SAVING = "saving"
    STOPPED = "stopped"


@dataclass
class Ending:
    """Why the run ended."""

    reason: str
    error: PenstockError | None = None
    signal: int | None = None


class Supervisor:
    """Drives one run from the first worker's start to the last one's end."""

    def __init__(
        self,
        *,
        settings: RunSettings,
        law: Law,
        world: World,
        recorder: Recorder,
        num_blocks: int,
        num_workers: int,
        inference_server: bool = False,
        checkpoint_every: int = 0,
        debug: bool = False,
    ) -> None:
        self._settings, self._law, self._world, self._recorder = settings, law, world, recorder
        self._shares = share_out(num_blocks, num_workers)
        self._inference_server, self._checkpoint_every = inference_server, checkpoint_every
        self._debug = debug
        self._roster = Roster()
        self._leases = Leases()
        self._overran: set[int] = set()  # workers that were killed for a lost lease
        self._doubted: list[int] = []  # segments past their lease, until the inference server has answered
        self._learner_busy = False
        self._longest_update_s = 0.0
        self._saves_under_way = 0
        self._last_words_until = (0.0, "")  # while saving: until when, and what is then given up
        self._num_signals = 0
        self.phase = Phase.STARTING
        self.ending: Ending | None = None

    def run(self) -> Ending:
        """The whole run. Failures are in the ending, not raised: there is still a summary to write."""
        learner = self._enlist("learner", 0, ())
        self._world.start_learner(learner.incarnation)
        self._lease(Opening(learner.incarnation), learner.incarnation)
        while self.phase is not Phase.STOPPED:
            self._recorder.supervisor_waits()
            try:
                happened = self._world.wait(self._timeout_s())
                self._recorder.supervisor_wakes()
                for happening in happened:
                    self._on(happening)
                self._on_time()
            except RunFailed as error:  # the world itself is broken: nobody is left to save anything
                self._fail(error, "error")
                self._end_unsaved(error)
                self.phase = Phase.STOPPED
            if (lost := self._recorder.lost) is not None:
                reason = "disk" if lost.errno in FULL else "error"
                self._fail(RunFailed(f"the run's records cannot be written: {lost.strerror or lost}"), reason)
        assert self.ending is not None
        return self.ending

    # ---------------------------------------------------------------- what happens

    def _on(self, happening: Happening) -> None:
        if self.phase is Phase.STOPPED:
            return
        match happening:
            case Said(worker, message):
                if (speaker := self._roster.find(worker)) is not None:
                    self._on_message(speaker, message)
            case Ended():
                self._on_ended(happening)
            case Interrupted(number):
                self._on_signal(number)

    def _on_message(self, worker: Worker, message: messages.Anything) -> None:
        match message:
            case messages.Ready():
                self._leases.take_back(Opening(worker.incarnation))
                self._on_ready(message)
            case messages.Up(blocks):
                self.phase = Phase.RUNNING if self.phase is Phase.STARTING else self.phase
                self._leases.take_back(Opening(worker.incarnation))
                for block in blocks:
                    self._tell_law(BlockUp(block, worker.incarnation))
            case messages.Done():
                self._recorder.segment_done(worker, message)
                self._leases.take_back(Running(message.segment))
                self._leases.take_back(LettingGo(message.segment, worker.incarnation))
                self._tell_law(SegmentDone(message.segment, worker.incarnation, message.steps, message.rows))
            case messages.LetGo(segment):
                self._leases.take_back(LettingGo(segment, worker.incarnation))
                self._tell_law(WriteOffAcknowledged(segment, worker.incarnation))
            case messages.Episodes(returns, lengths):
                self._recorder.episodes(returns, lengths)
            case messages.Trained():
                self._leases.take_back(Training(worker.incarnation))
                self._on_trained(message)
            case messages.Saved():
                self._recorder.saved(message)
                self._saves_under_way -= 1
                if self.phase is Phase.SAVING and not self._learner_busy and not self._saves_under_way:
                    self.phase = Phase.STOPPED
            case messages.Pong():
                self._leases.take_back(Answering(worker.incarnation))
                self._judge_doubted()
            case messages.Fault():
                self._on_fault(worker, message)
            case _:
                raise RunFailed(f"{worker.title} said {type(message).__name__}, which only the supervisor says")

    def _on_ready(self, message: messages.Ready) -> None:
        self._recorder.learner_ready(message)
        self._save()
        if self._inference_server:
            server = self._enlist("inference", 0, ())
            self._world.start_inference(server.incarnation)
            self._lease(Opening(server.incarnation), server.incarnation)
        for index, blocks in enumerate(self._shares):
            sampler = self._enlist("sampler", index, blocks)
            self._world.start_sampler(sampler.incarnation, index, blocks)
            self._lease(Opening(sampler.incarnation), sampler.incarnation)
        self._tell_law(BatchTrained(0))

    def _on_trained(self, message: messages.Trained) -> None:
        self._learner_busy = False
        self._longest_update_s = max(self._longest_update_s, message.busy_s)
        reason = self._recorder.batch_trained(message)
        if self.phase is Phase.SAVING:
            self._save()  # the update that was under way when the run was told to end
        elif (raised := self._recorder.raised) is not None:
            what = f"the callback raised {type(raised).__name__}: {raised}"
            self._fail(RunFailed(what, details="".join(traceback.format_exception(raised))), "error")
        elif reason is not None:
            self._end(Ending(reason))
        elif self._checkpoint_every and message.version % self._checkpoint_every == 0:
            self._save()
        self._tell_law(BatchTrained(message.version))

    def _on_fault(self, worker: Worker, message: messages.Fault) -> None:
        kind = getattr(errors, message.kind, RunFailed)
        error: PenstockError = RunFailed(f"{worker.title}: {message.message}", details=message.details)
        if kind in RunFailed.__subclasses__() or kind is Refused:
            error = kind(message.message, details=message.details)
        if self._law.version < 0 or (issubclass(kind, Refused) and self._law.version == 0):
            error = Refused(str(error), details=message.details)  # nothing was begun: it is as if it was never asked for
        self._bury(worker)
        self._fail(error, "nonfinite" if message.kind == "NonFinite" else "error")

    def _on_ended(self, ended: Ended) -> None:
        incarnation = ended.worker
        worker = self._roster.find(incarnation)
        if worker is None:
            return  # it had already said why
        self._bury(worker)
        dispensable = worker.role == "sampler" and not self._law.pinned and bool(self._roster.samplers)
        if incarnation in self._overran and dispensable:
            at_work = list(ended.under_way or ())
            self._recorder.event("worker_lost", worker=incarnation, blocks=list(worker.blocks), under_way=at_work)
            return  # its segments were written off, its slots are free again: free flow goes on with the other blocks
        overran_s = self._settings.lease_s if incarnation in self._overran else None
        self._fail(obituary(worker, ended, overran_s=overran_s, story=self._recorder.story_of(worker)), "error")

    def _bury(self, worker: Worker) -> None:
        self._roster.bury(worker.incarnation)
        if worker.role == "learner":
            self._learner_busy = False
            if self.phase is Phase.SAVING:
                self.phase = Phase.STOPPED
        self._tell_law(WorkerDead(worker.incarnation))

    def _on_signal(self, number: int) -> None:
        self._num_signals += 1
        self._end(Ending("signal", signal=number))
        if self._num_signals > 1:  # the second one: stop now
            if self.ending is not None and self.phase is Phase.SAVING:
                self.ending = Ending("signal", error=self.ending.error, signal=number)  # without its last checkpoint
            self.phase = Phase.STOPPED

    # ---------------------------------------------------------------- time

    def _timeout_s(self) -> float | None:
        due = [self._recorder.next_refresh_s]
        if self.phase is Phase.SAVING:
            due.append(self._last_words_until[0])
        due.append(self._leases.next_end_s)
        times = [moment for moment in due if moment is not None]
        return max(0.0, min(times) - self._world.clock.now()) if times else None

    def _on_time(self) -> None:
        now = self._world.clock.now()
        if (end_s := self._leases.next_end_s) is not None and end_s <= now:
            for happening in self._world.wait(0):  # it may have been done while nobody listened: a callback can take long
                self._on(happening)
        for lease in self._leases.expired(now):
            self._on_expired(lease)
        until_s, what = self._last_words_until
        if self.phase is Phase.SAVING and now >= until_s:
            self._end_unsaved(RunFailed(f"{what}; use an earlier checkpoint"))
            self.phase = Phase.STOPPED
        if self.phase is Phase.RUNNING and not self._learner_busy and self._recorder.out_of_time():
            self._end(Ending("minutes"))
        self._recorder.refresh(self.phase.value, self._law.waiting_for())

    def _lease(self, lease: Lease, worker: int) -> None:
        """Worker by worker, since blocks of one worker may have to wait for one another."""
        hosted = self._roster.find(worker)
        num_blocks = max(1, len(hosted.blocks)) if hosted is not None else 1
        self._leases.give(lease, self._world.clock.now() + self._settings.lease_s * num_blocks)

    def _on_expired(self, lease: object) -> None:
        match lease:
            case Running(segment):
                self._doubt(segment)
            case LettingGo(_, worker) | Opening(worker) | Training(worker) | Answering(worker):
                self._kill_overrunning(worker)

    def _doubt(self, segment: int) -> None:
        """A segment past its lease. Where an inference server acts for it, its worker may not be to blame: first that is asked
        whether it answers at all."""
        self._doubted.append(segment)
        server = self._roster.server
        if server is None:
            self._judge_doubted()
        elif len(self._doubted) == 1:
            self._lease(Answering(server.incarnation), server.incarnation)
            self._world.send(server.incarnation, messages.Ping())

    def _judge_doubted(self) -> None:
        doubted, self._doubted = self._doubted, []
        for segment in doubted:
            self._tell_law(LeaseExpired(segment))

    def _kill_overrunning(self, worker: int) -> None:
        """Its end will be heard of like any other, and then says why."""
        if self._roster.find(worker) is None or worker in self._overran:
            return
        self._recorder.event("lease_expired", worker=worker, lease_s=self._settings.lease_s)
        self._overran.add(worker)
        self._world.kill(worker)

    # ---------------------------------------------------------------- the law

    def _tell_law(self, event: Event) -> None:
        self._recorder.waits(self._law.waiting_for())
        for command in self._law.handle(event):
            self._obey(command)
        self._recorder.telemetry.dropped_segments = self._law.dropped_segments
        if self._debug:
            self._law.check()

    def _obey(self, command: object) -> None:
        match command:
            case StartSegment():
                self._recorder.segment_started(command)
                self._lease(Running(command.segment), command.worker)
                start = messages.Start(command.segment, command.block, command.slot, command.version)
                self._world.send(command.worker, start)
            case HandIn(segment, worker):
                self._recorder.event("hand_in", segment=segment, worker=worker)
                self._world.send(worker, messages.HandIn(segment))
            case TrainBatch():
                self._train(command)
            case WriteOff(segment, worker):
                self._lease(LettingGo(segment, worker), worker)
                self._recorder.event("write_off", segment=segment, worker=worker, lease_s=self._settings.lease_s)
                self._world.send(worker, messages.WriteOff(segment))
            case KillWorker(worker):
                self._kill_overrunning(worker)

    def _train(self, command: TrainBatch) -> None:
        learner = self._roster.learner
        if learner is None:
            return
        self._learner_busy = True
        self._lease(Training(learner.incarnation), learner.incarnation)
        self._recorder.batch_taken(command)
        slots = tuple(messages.Slot(m.slot, m.segment, m.version) for m in command.members)
        self._world.send(learner.incarnation, messages.Train(command.version, slots, self._recorder.progress))

    # ---------------------------------------------------------------- starting and ending

    def _enlist(self, role: Role, index: int, blocks: Sequence[int]) -> Worker:
        worker = self._roster.enlist(role, index, tuple(blocks))
        self._recorder.event("worker_started", worker=worker.incarnation, title=worker.title, blocks=list(blocks))
        return worker

    def _save(self) -> None:
        if (learner := self._roster.learner) is not None:
            self._saves_under_way += 1
            self._wait_for(SAVE_GRACE_S, "the last checkpoint was not written")
            self._world.send(learner.incarnation, messages.Save(self._recorder.state()))

    def _fail(self, error: PenstockError, reason: str) -> None:
        if self.ending is not None and self.ending.error is not None and str(self.ending.error) == str(error):
            return  # it is known
        self._recorder.event("fault", kind=type(error).__name__, message=str(error), details=error.details)
        if self.ending is not None and self._roster.learner is None:
            self._end_unsaved(error)
        self._end(Ending(reason, error=error))

    def _end_unsaved(self, error: PenstockError) -> None:
        """An ending whose last checkpoint is missing is not a good one, whatever it began as."""
        if self.ending is not None and self.ending.error is None:
            self.ending = Ending("error", error=error, signal=self.ending.signal)

    def _end(self, ending: Ending) -> None:
        """The first reason counts. An update under way is finished; then everything is saved."""
        if self.ending is not None:
            return
        self.ending = ending
        self._recorder.event("stopping", reason=ending.reason, version=self._recorder.telemetry.version)
        self._tell_law(RunEnding())
        if self._roster.learner is None or self.phase is Phase.STARTING:
            self.phase = Phase.STOPPED
            return
        self.phase = Phase.SAVING
        if self._learner_busy:
            self._wait_for(max(UPDATE_GRACE_S, 2 * self._longest_update_s), "the update under way did not end")
        else:
            self._save()

    def _wait_for(self, grace_s: float, what: str) -> None:
        """From now on the end of the run waits so long for this, and no longer."""
        self._last_words_until = self._world.clock.now() + grace_s, f"{what} within {grace_s:g} s"
