"""Settings that are each legal but do not go together, refused by name with the nearest that do.

What one section can judge alone, its settings class refuses itself; what one room can judge alone (the flow), that room.
"""

from __future__ import annotations

import math

from penstock.algorithms.settings import CATALOGUE
from penstock.core.errors import Refused
from penstock.core.fit import check_fit
from penstock.flow.opening import batch_segments, check_flow, guarantee
from penstock.run.job import Job
from penstock.workers.chaos import ChaosPlan


def check_job(job: Job) -> None:
    """Refuse a job that could not run or would silently be another."""
    if not job.env.id:
        raise Refused("no environment is named; say penstock train CartPole-v1, for example")
    lanes = job.env.lanes_per_block
    check_flow(job.flow, job.env.n_blocks)
    _check_minibatch(job, lanes)
    _check_workers(job)
    _check_chaos(job)
    if job.algo in CATALOGUE:  # an algorithm of a person's own states its demands when it is loaded
        demands, correction = CATALOGUE[job.algo].demands, job.learner.correction_name
        check_fit(job.algo, correction, demands, guarantee(job.flow), experiment=job.run.experiment)


def batch_rows(job: Job) -> int:
    """Rows of one batch: M segments of T steps of B lanes."""
    return batch_segments(job.flow, job.env.n_blocks) * job.env.lanes_per_block * job.learner.n_steps


def _check_minibatch(job: Job, lanes: int) -> None:
    rows, size = batch_rows(job), job.learner.minibatch_rows
    if size is None or (1 <= size <= rows and rows % size == 0):
        return
    near = nearest_divisors(rows, size)
    raise Refused(
        f"learner.batch_size {size} does not divide the {rows} rows of a batch ({rows // (lanes * job.learner.n_steps)} "
        f"segments of {lanes} lanes by {job.learner.n_steps} steps); nearest legal: {' or '.join(map(str, near))}"
    )


def nearest_divisors(total: int, wanted: int) -> list[int]:
    """The divisors of `total` next below and next above `wanted`."""
    small = [number for number in range(1, math.isqrt(total) + 1) if total % number == 0]
    divisors = sorted({*small, *(total // number for number in small)})
    below = [number for number in divisors if number <= wanted]
    above = [number for number in divisors if number > wanted]
    return below[-1:] + above[:1]


def _check_workers(job: Job) -> None:
    workers = job.run.workers
    if workers is None:
        return
    if workers == 0 and job.flow.schedule == "async":
        raise Refused("schedule 'async' needs a process to sample in; use --workers 1 or more, or --schedule overlap")
    if workers > job.env.n_blocks:
        raise Refused(
            f"--workers {workers} is more than the {job.env.n_blocks} blocks there are to host; "
            f"use --workers {job.env.n_blocks}, or more blocks (--set envs.n_blocks={workers})"
        )


def _check_chaos(job: Job) -> None:
    slow, workers = ChaosPlan.parse(job.run.chaos).slow, job.run.workers
    if slow and workers is None:
        raise Refused("--chaos slow:WORKER=FACTOR needs --workers, which says how many there are")
    last = max(1, workers or 1) - 1
    for worker in slow:
        if worker > last:
            raise Refused(f"--chaos slow:{worker}=... names a worker that is not there; workers count from 0 to {last}")
