"""The delays of every lane, by the very code with which the environments draw them, and what follows from them.

No episode of a measured run ends, so a lane's delays are one stream: that of its episode 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np

from penstock.bench.figures import steady_rate
from penstock.bench.overlap.cases import LANES, MEAN_S, ROWS, STEPS, Case, Layout
from penstock.core.seeds import episode_seed
from penstock.envs.known.latency import delays_s
from penstock.flow.settings import FlowSettings, Schedule
from penstock.yardstick.law_speed import simulate_law
from penstock.yardstick.pace import Streams

_DRAWS = 100_000


def lane_seeds(seed: int) -> list[int]:
    """What each lane's episode 0 is reset with in a run of this seed."""
    return [episode_seed(seed, lane, 0) for lane in range(LANES)]


def streams(variance: float, seed: int) -> list[Iterator[float]]:
    """Each lane's delays in seconds, without end."""
    return [delays_s(lane_seed, MEAN_S, variance) for lane_seed in lane_seeds(seed)]


def drawn_m1(variance: float, seed: int, steps: int) -> float:
    """m1 of the first so many delays of every lane: the mean, over steps, of the slowest lane's."""
    drawn = np.array([list(islice(lane, steps)) for lane in streams(variance, seed)])
    return float(drawn.max(0).mean() / MEAN_S)


def expected_m1(variance: float) -> float:
    """m1 of endlessly many steps: the mean of the greatest of sixteen."""
    return _mean_of_slowest(1.0 / variance, variance)


def expected_ma(variance: float) -> float:
    """The same where only every 128th step waits; a sum of Gamma draws is a Gamma draw."""
    return _mean_of_slowest(STEPS / variance, variance) / STEPS


def _mean_of_slowest(shape: float, scale: float) -> float:
    draws = np.random.default_rng(0).gamma(shape, scale, (_DRAWS, LANES))
    return float(draws.max(1).mean())


def case_of(variance: float, share: float | None) -> Case:
    """With the costs that L is a share of."""
    return Case(variance, expected_m1(variance), expected_ma(variance), share)


def simulated_sps(case: Case, schedule: Schedule, layout: Layout, *, seed: int, batches: int, train_s: float) -> float:
    """Steady steps a second that the law allows for these very delays, over the same part of a run of the same length."""
    pace = Streams(streams(case.variance, seed), lanes_per_block=layout.lanes_per_block, steps=STEPS)
    flow = FlowSettings(schedule=schedule)
    speed = simulate_law(flow, num_blocks=layout.blocks, pace=pace, train_s=train_s, rows=batches * ROWS)
    rate = steady_rate(speed.marks)
    assert rate is not None  # there are five batches at least
    return rate
