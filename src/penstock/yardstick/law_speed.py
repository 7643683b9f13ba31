"""The law of a run, driven with given delays where messages cost nothing and every lane has a core of its own."""

from __future__ import annotations

import heapq
import itertools
from dataclasses import dataclass

from penstock.flow.events import BatchTrained, BlockUp, Event, HandIn, SegmentDone, StartSegment, TrainBatch
from penstock.flow.opening import open_law
from penstock.flow.settings import FlowSettings
from penstock.yardstick.pace import Begins, Underway


@dataclass(frozen=True)
class LawSpeed:
    """What a law allows at best: (rows trained, seconds) after every batch."""

    marks: tuple[tuple[int, float], ...]

    @property
    def rows(self) -> int:
        return self.marks[-1][0]

    @property
    def seconds(self) -> float:
        return self.marks[-1][1]

    @property
    def rows_per_s(self) -> float:
        return self.rows / self.seconds


def simulate_law(
    flow: FlowSettings, *, num_blocks: int, pace: Begins, train_s: float, versions: int = 1, rows: int = 1
) -> LawSpeed:
    """Until so many versions and so many rows are trained: the yardstick for a real run of that length."""
    law = open_law(flow, num_blocks)
    agenda: list[tuple[float, int, Event]] = []
    order = itertools.count()
    running: dict[int, Underway] = {}
    done_rows: dict[int, int] = {}
    marks: list[tuple[int, float]] = []
    in_training = trained = 0
    now_s = 0.0

    def obey(event: Event) -> None:
        nonlocal in_training
        for command in law.handle(event):
            match command:
                case StartSegment(segment, block, worker):
                    running[segment] = pace.begin(block, segment, now_s)
                    later(running[segment].end_s, SegmentDone(segment, worker, running[segment].steps))
                case HandIn(segment, worker) if segment in running:
                    running[segment].cut(now_s)
                    later(running[segment].end_s, SegmentDone(segment, worker, running[segment].steps))
                case TrainBatch(version, members):
                    in_training = sum(done_rows.pop(member.segment) for member in members)
                    later(now_s + train_s, BatchTrained(version + 1))

    def later(moment_s: float, event: Event) -> None:
        heapq.heappush(agenda, (moment_s, next(order), event))

    obey(BatchTrained(0))
    for block in range(num_blocks):
        obey(BlockUp(block, block))
    while law.version < versions or trained < rows:
        now_s, _, event = heapq.heappop(agenda)
        match event:
            case SegmentDone(segment):
                if segment not in running:
                    continue  # it was cut before
                done_rows[segment] = running.pop(segment).rows
            case BatchTrained():
                trained += in_training
                marks.append((trained, now_s))
        obey(event)
    return LawSpeed(tuple(marks))
