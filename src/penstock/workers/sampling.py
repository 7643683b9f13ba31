"""One block running one segment after another: observe, act, step, write the row.

    together   all lanes take step t at the same time; one forward a step
    drift      each lane goes on as soon as its own environment is ready, in a forward of the block's full shape in which
               the rows that are not ready are carried along and ignored

Draws belong to (lane, step) and a row of a forward depends on that row alone, so both write the same segment to the bit.
This file knows nothing of versions or messages: it is handed an actor and a slot.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.protocols import ALL, Actor, BlockEnvironment, Lanes
from penstock.core.seeds import Purpose, stream
from penstock.core.specs import Array
from penstock.store.slots import Segment
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
        seed: int,
        drift: bool,
        return_gamma: float | None,
        hours: Hours | None = None,
    ) -> None:
        self.block = block
        self.environment = environment
        self.number: int | None = None
        self.awaiting = False  # steps were sent and not all have come back
        self.abandoned = False  # the segment was written off, and its slot is let go of once nothing is awaited
        self._seed = seed
        self._drift = drift
        self._lanes = environment.num_lanes
        self._totals = EpisodeTotals(self._lanes, return_gamma)
        self._ended = np.zeros(self._lanes, np.bool_)  # the lane's next step is its reset
        self._cut = False
        self._step = 0  # together: the row that all lanes are at
        self._steps = np.zeros(self._lanes, np.int64)  # drift: the row that each lane is at
        self._in_flight = np.zeros(self._lanes, np.bool_)
        self._hours = hours or Hours()

    def begin(self, number: int, segment: Segment, actor: Actor) -> None:
        """Start a segment: its numbers are drawn now, by (block, segment), so they belong to (lane, step)."""
        self._hours.begin_segment()
        self.number, self._segment, self._actor = number, segment, actor
        self._length = segment.reward.shape[0]
        generator = stream(self._seed, Purpose.ACTION, self.block, number)
        self._noise = actor.noise(generator, self._length, self._lanes)
        segment.observation[0] = self.environment.observation
        segment.starts_with_reset[...] = self._ended
        segment.return_accumulator[...] = self._totals.discounted
        self._step, self._cut = 0, False
        self._steps[:] = 0
        self._waiting = np.ones(self._lanes, np.bool_)  # drift: lanes to act for next

    def cut(self) -> None:
        """Finish after the steps that are under way; at least one is taken."""
        self._cut = True

    def abandon(self) -> bool:
        """Let go of the segment; true once no environment is at work on it. The block goes on from where it stands."""
        if self.awaiting:
            self._collect(timeout_s=0)
        self.abandoned = self.awaiting
        if self.abandoned:
            return False
        self._totals.forget()
        self._ended = self.environment.ended.copy()
        self.number = None
        self._hours.end_segment()
        return True

    def advance(self) -> Finished | None:
        """Take one step with every lane that can, without waiting for a lane that cannot; the segment if it is done."""
        if self.awaiting:
            self._collect(timeout_s=0)
        if self._is_done():
            return self._finish()
        if self._drift:
            self._act_for_waiting_lanes()
        elif not self.awaiting:
            self._act_together()
        return None

    def _is_done(self) -> bool:
        if self._drift:
            over = (self._steps == self._length) | (self._cut and bool(self._steps.any()))
            return not self.awaiting and bool(over.all())
        return not self.awaiting and (self._step == self._length or (self._cut and self._step > 0))

    # ---------------------------------------------------------------- together

    def _act_together(self) -> None:
        step, segment = self._step, self._segment
        self._hours.begin_acting()
        acted = self._actor.act(segment.observation[step], self._noise[step])
        segment.action[step] = acted.action
        segment.log_prob[step] = acted.log_prob
        segment.value[step] = acted.value
        actions = self._actor.to_environment(acted.action)
        self._missing = self._lanes
        self._send(ALL, actions)

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

    def _act_for_waiting_lanes(self) -> None:
        if self._cut and self._steps.any():
            self._waiting[:] = False
        lanes = np.flatnonzero(self._waiting & (self._steps < self._length))
        if not len(lanes):
            return
        self._hours.begin_acting()
        segment, rows = self._segment, self._steps[lanes]
        noise = self._noise[np.minimum(self._steps, self._length - 1), np.arange(self._lanes)]
        acted = self._actor.act(self.environment.observation, noise)
        segment.action[rows, lanes] = acted.action[lanes]
        segment.log_prob[rows, lanes] = acted.log_prob[lanes]
        segment.value[rows, lanes] = acted.value[lanes]
        actions = self._actor.to_environment(acted.action)
        self._waiting[lanes], self._in_flight[lanes] = False, True
        self._send(lanes if len(lanes) < self._lanes else ALL, actions)

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
        self._hours.end_acting()
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

    def _finish(self) -> Finished:
        """Bootstrap every lane at its last row, mask what a cut left open, close the books on episodes."""
        segment, steps = self._segment, self._steps
        lanes = np.arange(self._lanes)
        segment.value[steps, lanes] = self._actor.value(self.environment.observation)
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
