"""What is measured: plain data. Starts nothing.

Sixteen lanes, 128 steps between synchronisations: the setting of HTS-RL's own figures. Times in units of the mean step are
called m1, ma and L as there; everything else is in seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

LANES, STEPS, MEAN_S = 16, 128, 0.005
ROWS = LANES * STEPS
ROUND_S = STEPS * MEAN_S
"""A lane's mean time for its part of a batch."""

VARIANCES = (0.0625, 0.25, 1.0, 2.0, 4.0, 10.0)
SHARES = (0.0, 0.5, 1.0)
SCHEDULES = ("sync", "overlap", "async")
LEARNERS = ("wait", "ppo")
FEWEST_BATCHES, FEWEST_ROLLOUTS = 5, 2

PPO = {"batch_size": 64, "n_epochs": 10}
"""Of the real learner: stable-baselines3's defaults, which keep a core busy for a good part of the collect time."""


WAIT_VARIABLE = "PENSTOCK_BENCH_WAIT_S"
"""How long an update of the timed learner takes. A variable of its process, since the section `learner` has no such setting."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lanes are grouped, and how many processes host them."""

    name: str
    blocks: int
    workers: int

    @property
    def lanes_per_block(self) -> int:
        return LANES // self.blocks


LAYOUTS = {layout.name: layout for layout in (Layout("1x16", 1, 1), Layout("16x1", 16, 2))}
"""Blocks x lanes. Sleeping lanes need no core each: sixteen blocks are divided among as many processes as there are cores
here, two, since what is left of a step (waking, acting, writing its row) costs some tenth of a millisecond of the sampler's."""


@dataclass(frozen=True, slots=True)
class Case:
    """Environments of one variance and a learner of one length."""

    variance: float
    m1: float
    ma: float
    share: float | None
    """L as a share of ma; None: a real learner, which takes what it takes."""

    @property
    def learner(self) -> str:
        return "ppo" if self.share is None else "wait"

    @property
    def wait_s(self) -> float:
        """L of a whole batch."""
        return (self.share or 0.0) * self.ma * ROUND_S

    @property
    def label(self) -> str:
        length = "PPO" if self.share is None else f"L = {self.share:g} of collecting"
        return f"variance {self.variance:g}, {length}"

    def batches(self, schedule: str, seconds: float) -> int:
        """How many batches of a schedule fill about so many seconds."""
        collect_s = self.ma * ROUND_S
        batch_s = collect_s + self.wait_s if schedule == "sync" else max(collect_s, self.wait_s)
        return max(FEWEST_BATCHES, math.ceil(seconds / batch_s))

    def rollouts(self, seconds: float) -> int:
        """The same for the classic loop."""
        return max(FEWEST_ROLLOUTS, math.ceil(seconds / (self.m1 * ROUND_S + self.wait_s)))


def hts_speedup(m1: float, ma: float, learning: float) -> float:
    """HTS-RL's barrier model of the gain, L in units of the mean step."""
    return (m1 + learning) / max(ma, learning)
