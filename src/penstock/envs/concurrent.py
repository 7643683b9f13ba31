"""A block whose lanes are stepped at the same time, each in a thread or a process of its own.

Nothing polls: an answer makes its connection readable, and so the block's own descriptor. A lane whose process ends
without a word is an end of file on its connection. Knows not how a lane is hosted.
"""

from __future__ import annotations

import selectors
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.core.errors import EnvironmentFault
from penstock.core.protocols import ALL, Lanes
from penstock.core.specs import Array, EnvironmentSpec, LanePosition
from penstock.envs.faults import environment_fault, unpacked_fault
from penstock.envs.hosting import CLOSE, START, STEP, Host, ProcessHost, ThreadHost
from penstock.envs.lane import Lane
from penstock.envs.rows import allocate_rows
from penstock.envs.serial import NO_LANES
from penstock.envs.standing import Standing

CLOSE_WITHIN_S = 1.0


class ConcurrentBlock:
    """Each lane goes on as soon as it is sent; `receive` answers with those that are done."""

    def __init__(
        self,
        maker: Callable[[], Any],
        spec: EnvironmentSpec,
        *,
        num_lanes: int,
        block: int,
        seed: int,
        processes: bool,
        standing: Standing | None = None,
    ) -> None:
        self.spec, self.num_lanes = spec, num_lanes
        self._first_lane, self._seed = block * num_lanes, seed
        self._rows = rows = allocate_rows(spec, num_lanes, shared=processes, standing=standing)
        self.observation, self.reward, self.valid = rows.observation, rows.reward, rows.valid
        self.terminated, self.truncated, self.ended = rows.terminated, rows.truncated, rows.ended
        self._selector = selectors.DefaultSelector()
        self._hosts: list[Host] = []
        host: Callable[..., Host] = ProcessHost if processes else ThreadHost
        for row in range(num_lanes):
            lane = Lane(maker, spec, rows, row, lane=self._first_lane + row, seed=seed)
            self._hosts.append(host(lane, [other.connection for other in self._hosts]))
            self._selector.register(self._hosts[row].connection, selectors.EVENT_READ, row)
        self._under_way = np.zeros(num_lanes, np.bool_)
        self._closed = False

    def reset(self) -> None:
        while self._under_way.any():  # an answer to an older question would be taken for the first observation
            self.receive()
        self._ask(range(self.num_lanes), START)
        while self._under_way.any():
            self.receive()

    def send(self, lanes: Lanes, actions: Array) -> None:
        self._rows.action[lanes] = actions[lanes]
        self._ask(range(self.num_lanes)[lanes] if isinstance(lanes, slice) else lanes.tolist(), STEP)

    def receive(self, timeout_s: float | None = None) -> Lanes:
        if not self._under_way.any():
            return NO_LANES
        ready = sorted(key.data for key, _ in self._selector.select(timeout_s))
        for row in ready:
            self._hear(row)
        return ALL if len(ready) == self.num_lanes else np.asarray(ready, np.int64)

    def fileno(self) -> int:
        return self._selector.fileno()

    def position(self, lane: int) -> LanePosition:
        return self._rows.standing.position(lane, lane=self._first_lane + lane, seed=self._seed)

    def close(self) -> None:
        """Ask every lane to close; what has not within a second is hung, and is killed or left behind."""
        if self._closed:
            return
        self._closed = True
        for host in self._hosts:
            _tell(host, CLOSE)
        deadline = time.monotonic() + CLOSE_WITHIN_S
        while self._selector.get_map() and (left_s := deadline - time.monotonic()) > 0:
            for key, _ in self._selector.select(left_s):
                if not _still_there(self._hosts[key.data]):
                    self._selector.unregister(key.fileobj)
        self._selector.close()
        for host in self._hosts:
            host.release()

    def _ask(self, rows: Any, command: bytes) -> None:
        for row in rows:
            if self._under_way[row]:
                raise ValueError(f"lane {row} was sent a step and has not been received")
            self._under_way[row] = True
            if not _tell(self._hosts[row], command):
                raise self._died(row)

    def _hear(self, row: int) -> None:
        try:
            answer = self._hosts[row].connection.recv_bytes()
        except (EOFError, OSError):
            raise self._died(row) from None
        self._under_way[row] = False
        if answer:
            raise unpacked_fault(answer)

    def _died(self, row: int) -> EnvironmentFault:
        if row in (key.data for key in self._selector.get_map().values()):
            self._selector.unregister(self._hosts[row].connection)
        self._under_way[row] = False
        how = self._hosts[row].release()
        return environment_fault(self.spec.id, self._rows.standing.doing_of(row), f"{how} without a word", self.position(row))


def _tell(host: Host, command: bytes) -> bool:
    try:
        host.connection.send_bytes(command)
    except OSError:  # nobody listens any more
        return False
    return True


def _still_there(host: Host) -> bool:
    """Whether the far end is open, an answer to an older question aside."""
    try:
        host.connection.recv_bytes()
    except (EOFError, OSError):
        return False
    return True
