"""Times a kernel on this thread. Knows nothing of what it computes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from penstock.bench.figures import Spread

SAMPLES = 9
SHORTEST_SAMPLE_S = 1e-3


def rate(kernel: Callable[[], int], seconds: float) -> Spread:
    """Units a second, over samples that together take about this long; what a first call sets up is not counted."""
    calls = _calls_for(kernel, max(seconds / SAMPLES, SHORTEST_SAMPLE_S))
    return Spread.of([_sample(kernel, calls) for _ in range(SAMPLES)])


def _calls_for(kernel: Callable[[], int], sample_s: float) -> int:
    """How many calls fill a sample: doubled until a trial is long enough to tell."""
    kernel()
    calls = 1
    while (took_s := _seconds_of(kernel, calls)) < sample_s / 4:
        calls *= 2
    return max(1, round(calls * sample_s / took_s))


def _seconds_of(kernel: Callable[[], int], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        kernel()
    return time.perf_counter() - start


def _sample(kernel: Callable[[], int], calls: int) -> float:
    units = 0
    start = time.perf_counter()
    for _ in range(calls):
        units += kernel()
    return units / (time.perf_counter() - start)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch and the BLAS of NumPy on one thread each, as they were afterwards."""
    import torch
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
