"""One block running one segment after another: observe, act, step, write the row.

    together   all lanes take step t at the same time; one forward a step
    drift      each lane goes on as soon as its own environment is ready, in a forward of the block's full shape in which
               the rows that are not ready are carried along and ignored

Draws belong to (lane, step) and a row of a forward depends on that row alone, so both write the same segment to the bit.
A block waits for two things: for its environments (`awaiting`), and for an answer on how to act (`asked`), which an actor at
hand gives at once and the inference server after a while. This file knows nothing of versions or messages: it is handed
what acts, and a slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.protocols import ALL, Acted, BlockEnvironment, Lanes
from penstock.core.specs import Array
from penstock.store.slots import Segment
from penstock.workers.acting import Acting
from penstock.workers.episodes import EpisodeTotals
from penstock.workers.hours import Hours


@dataclass(frozen=True)
class Finished:
    """A segment that is complete in its slot."""

    segment: int
    block: int
    steps: int
    rows: int
    short: bool


class BlockRun:
    """A block and the segment that it is running, if any."""

    def __init__(
        self,
        block: int,
        environment: BlockEnvironment,
        *,
        drift: bool,
        return_gamma: float | None,
        hours: Hours | None = None,
    ) -> None:
        self.block = block
        self.environment = environment
        self.number: int | None = None
        self.awaiting = False  # steps were sent and not all have come back
        self.asked = False  # it was asked how to act, and the answer has not been taken
        self.abandoned = False  # the segment was written off, and its slot is let go of once nothing is awaited
        self._drift = drift
        self._lanes = environment.num_lanes
        self._totals = EpisodeTotals(self._lanes, return_gamma)
        self._ended = np.zeros(self._lanes, np.bool_)  # the lane's next step is its reset
        self._cut = False
        self._closing = False  # what was asked for are the values at the segment's end
        self._step = 0  # together: the row that all lanes are at
        self._steps = np.zeros(self._lanes, np.int64)  # the row that each lane is at
        self._in_flight = np.zeros(self._lanes, np.bool_)
        self._hours = hours or Hours()

    def begin(self, number: int, segment: Segment, acting: Acting) -> None:
        """Start a segment where the block stands."""
        self._hours.begin_segment()
        self.number, self._segment, self._acting = number, segment, acting
        self._length = segment.reward.shape[0]
        segment.observation[0] = self.environment.observation
        segment.starts_with_reset[...] = self._ended
        segment.return_accumulator[...] = self._totals.discounted
        self._step, self._cut, self._closing = 0, False, False
        self._steps[:] = 0
        self._waiting = np.ones(self._lanes, np.bool_)  # drift: lanes to act for next

    @property
    def is_ready(self) -> bool:
        """Whether it has a segment and can go on with it now."""
        return self.number is not None and not self.awaiting and not self.asked

    def cut(self) -> None:
        """Finish after the steps that are under way or asked for; at least one is taken."""
        self._cut = True

    def abandon(self) -> bool:
        """Let go of the segment; true once nobody is at work on it. The block goes on from where it stands."""
        if self.awaiting:
            self._collect(timeout_s=0)
        if self.asked:
            self.asked = self._acting.answer() is None
        self.abandoned = self.awaiting or self.asked
        if self.abandoned:
            return False
        self._totals.forget()
        self._ended = self.environment.ended.copy()
        self.number = None
        self._hours.end_segment()
        return True

    def advance(self) -> Finished | None:
        """Take what has come back, and go on with every lane that can, without waiting for one that cannot: one step where
        the answer is at hand. The segment if it is done."""
        if self.awaiting:
            self._collect(timeout_s=0)
        if self.asked:
            acted = self._acting.answer()
            if acted is None:
                return None
            finished = self._act(acted)
            if finished is not None:
                return finished
        return self._ask()

    def _ask(self) -> Finished | None:
        """How to act for every lane that waits to be acted for, at the end what the segment is bootstrapped with; and act, if
        that is known at once."""
        acting = self._acting
        if self._is_done():
            self._closing = self.asked = True
            acted = acting.ask(self.environment.observation, self._steps, closing=True)
        elif self._drift:
            self.asked = self._find_waiting_lanes()
            acted = acting.ask(self.environment.observation, self._steps) if self.asked else None
        elif not self.awaiting:
            self.asked = True
            acted = acting.ask(self._segment.observation[self._step], self._step)
        else:
            return None
        return None if acted is None else self._act(acted)

    def _act(self, acted: Acted) -> Finished | None:
        """As it was answered. The segment, if that was the last answer to it."""
        self.asked = False
        if self._closing:
            return self._finish(acted.value)
        if self._drift:
            self._act_drifting(acted)
        else:
            self._act_together(acted)
        return None

    def _is_done(self) -> bool:
        if self._drift:
            over = (self._steps == self._length) | (self._cut and bool(self._steps.any()))
            return not self.awaiting and bool(over.all())
        return not self.awaiting and (self._step == self._length or (self._cut and self._step > 0))

    # ---------------------------------------------------------------- together

    def _act_together(self, acted: Acted) -> None:
        step, segment = self._step, self._segment
        segment.action[step] = acted.action
        segment.log_prob[step] = acted.log_prob
        segment.value[step] = acted.value
        self._missing = self._lanes
        self._send(ALL, self._acting.to_environment(acted.action))

    def _write_together(self, lanes: Lanes) -> None:
        environment, segment, step = self.environment, self._segment, self._step
        segment.observation[step + 1, lanes] = environment.observation[lanes]
        segment.reward[step, lanes] = environment.reward[lanes]
        segment.terminated[step, lanes] = environment.terminated[lanes]
        segment.truncated[step, lanes] = environment.truncated[lanes]
        segment.ended[step, lanes] = environment.ended[lanes]
        segment.valid[step, lanes] = environment.valid[lanes]
        self._missing -= self._lanes if isinstance(lanes, slice) else len(lanes)
        if self._missing == 0:
            self._step += 1
            self._steps[:] = self._step
            self._rest()

    # ---------------------------------------------------------------- drift

    def _find_waiting_lanes(self) -> bool:
        """Note for which lanes it is asked; whether there is one."""
        if self._cut and self._steps.any():
            self._waiting[:] = False
        self._asked_lanes = np.flatnonzero(self._waiting & (self._steps < self._length))
        return len(self._asked_lanes) > 0

    def _act_drifting(self, acted: Acted) -> None:
        segment, lanes = self._segment, self._asked_lanes
        rows = self._steps[lanes]
        segment.action[rows, lanes] = acted.action[lanes]
        segment.log_prob[rows, lanes] = acted.log_prob[lanes]
        segment.value[rows, lanes] = acted.value[lanes]
        self._waiting[lanes], self._in_flight[lanes] = False, True
        self._send(lanes if len(lanes) < self._lanes else ALL, self._acting.to_environment(acted.action))

    def _write_drifting(self, lanes: Lanes) -> None:
        environment, segment = self.environment, self._segment
        arrived = np.arange(self._lanes)[lanes]
        rows = self._steps[arrived]
        segment.observation[rows + 1, arrived] = environment.observation[arrived]
        segment.reward[rows, arrived] = environment.reward[arrived]
        segment.terminated[rows, arrived] = environment.terminated[arrived]
        segment.truncated[rows, arrived] = environment.truncated[arrived]
        segment.ended[rows, arrived] = environment.ended[arrived]
        segment.valid[rows, arrived] = environment.valid[arrived]
        self._steps[arrived] += 1
        self._in_flight[arrived], self._waiting[arrived] = False, True
        if not self._in_flight.any():
            self._rest()

    # ---------------------------------------------------------------- both

    def _send(self, lanes: Lanes, actions: Array) -> None:
        """Start the lanes' steps; what steps when it is asked is collected at once."""
        if not self.awaiting:
            self._hours.begin_stepping()
        self.environment.send(lanes, actions)
        self.awaiting = True
        if self.environment.fileno() < 0:
            self._collect(timeout_s=None)

    def _collect(self, timeout_s: float | None) -> None:
        """Take what has come back; with timeout None, until everything has."""
        while self.awaiting:
            lanes = self.environment.receive(timeout_s)
            if not isinstance(lanes, slice) and not len(lanes):
                return
            if self._drift:
                self._write_drifting(lanes)
            else:
                self._write_together(lanes)
            if timeout_s is not None:
                return

    def _rest(self) -> None:
        """All that was sent has come back."""
        self.awaiting = False
        self._hours.end_stepping()

    def _finish(self, bootstrap: Array) -> Finished:
        """Bootstrap every lane at its last row, mask what a cut left open, close the books on episodes."""
        segment, steps = self._segment, self._steps
        lanes = np.arange(self._lanes)
        segment.value[steps, lanes] = bootstrap
        segment.steps_done[...] = steps
        short = bool((steps < self._length).any())
        if short:
            self._mask_open_rows()
        self._totals.close(segment)
        self._ended = self.environment.ended.copy()
        number = self.number
        assert number is not None
        self.number = None
        self._hours.end_segment()
        rows = int(np.count_nonzero(segment.valid))
        return Finished(number, self.block, int(steps.max()), rows, short)

    def _mask_open_rows(self) -> None:
        open_rows = np.arange(self._length)[:, None] >= self._steps[None, :]
        segment = self._segment
        for flags in (segment.valid, segment.terminated, segment.truncated, segment.ended):
            flags[open_rows] = False
        segment.reward[open_rows] = 0
        segment.log_prob[open_rows] = 0
        segment.action[open_rows] = 0
