"""Who is at work: every start of a worker has a number of its own, and every block has one host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Role = Literal["learner", "inference", "sampler"]


@dataclass(frozen=True)
class Worker:
    """One start of one worker."""

    incarnation: int
    role: Role
    index: int
    blocks: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return {"learner": "learner", "inference": "inference server"}.get(self.role, f"sampler-{self.index}")


class Roster:
    """Workers by incarnation."""

    def __init__(self) -> None:
        self._next = 0
        self._alive: dict[int, Worker] = {}

    def enlist(self, role: Role, index: int, blocks: tuple[int, ...] = ()) -> Worker:
        """A worker that is about to be started."""
        worker = Worker(self._next, role, index, blocks)
        self._next += 1
        self._alive[worker.incarnation] = worker
        return worker

    def bury(self, incarnation: int) -> Worker | None:
        """It is dead; None if it was not known to live."""
        return self._alive.pop(incarnation, None)

    def find(self, incarnation: int) -> Worker | None:
        return self._alive.get(incarnation)

    @property
    def learner(self) -> Worker | None:
        return next((worker for worker in self._alive.values() if worker.role == "learner"), None)

    @property
    def server(self) -> Worker | None:
        """The inference server, where there is one."""
        return next((worker for worker in self._alive.values() if worker.role == "inference"), None)

    @property
    def samplers(self) -> list[Worker]:
        return [worker for worker in self._alive.values() if worker.role == "sampler"]


def share_out(num_blocks: int, num_workers: int) -> list[tuple[int, ...]]:
    """Neighbouring blocks to each worker, as evenly as possible; a worker without a block is not started."""
    workers = max(1, min(num_workers, num_blocks))
    each, more = divmod(num_blocks, workers)
    shares, first = [], 0
    for index in range(workers):
        count = each + (index < more)
        shares.append(tuple(range(first, first + count)))
        first += count
    return shares
