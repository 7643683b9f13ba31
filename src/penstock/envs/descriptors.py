"""How many file descriptors lanes take, and how many a process may have. Knows no lane."""

from __future__ import annotations

import resource

from penstock.envs.settings import Parallel

OF_A_LANE = {"threads": 2, "processes": 1}
"""The ends of its connection that stay in the worker."""
OF_ANYTHING_ELSE = 128
"""Arenas, channels, what libraries and an environment's own files take."""


def descriptors_of(parallel: Parallel, lanes: int) -> int:
    """What a worker with so many lanes has open."""
    return OF_A_LANE.get(parallel, 0) * lanes + OF_ANYTHING_ELSE


def most_descriptors() -> int:
    """What a process here may raise its limit to."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return hard if hard != resource.RLIM_INFINITY else 1 << 30


def allow_descriptors(needed: int) -> None:
    """Raise this process's limit if it is lower; whoever could not has been refused before."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(needed, most_descriptors()), hard))
