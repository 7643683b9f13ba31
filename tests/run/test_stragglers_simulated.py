"""One worker of eight is ten times slower. How much of the other seven's speed is left, in simulated time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.flow.settings import FlowSettings
from penstock.run.settings import RunSettings
from penstock.testing.simulated_run import SimulatedRun, simulate
from penstock.testing.simulation import Script
from penstock.yardstick.law_speed import simulate_law
from penstock.yardstick.pace import Pace, even, slowed

STEPS, LANES, STEP_S, WORKERS, SLOW = 128, 4, 0.01, 8, 3
COLLECT_S = STEPS * STEP_S
SEVEN = (WORKERS - 1) * LANES / STEP_S
"""Rows a second of the seven even workers alone."""
PACE = Pace(steps=STEPS, lanes=LANES, draw=slowed(even(STEP_S), {SLOW: 10.0}))
VERSIONS = 60


def straggle(tmp_path: Path, schedule: Any, learner: float, **flow: Any) -> SimulatedRun:
    script = Script(pace=PACE, train_s=lambda generator: learner * COLLECT_S)
    settings = RunSettings(steps=VERSIONS * WORKERS * STEPS * LANES)
    flow_settings = FlowSettings(schedule=schedule, **flow)
    return simulate(script, flow=flow_settings, run=settings, directory=tmp_path, num_blocks=WORKERS, num_workers=WORKERS)


@pytest.mark.parametrize(
    ("learner", "flow", "least"),
    [
        (0.5, {"staleness": 2}, 0.85),  # D = 1, the default: 16 places, of which the slow one may hold up a batch
        (0.9, {"staleness": 2}, 0.72),
        (0.5, {"staleness": 2, "depth": 2}, 0.98),
        (0.9, {"staleness": 2, "depth": 2}, 0.98),
        (0.9, {"staleness": 3, "depth": 2}, 0.98),
    ],
)
def test_async_keeps_the_speed_of_the_others(tmp_path: Path, learner: float, flow: dict[str, int], least: float) -> None:
    """Learner time is given as a share of what a segment of an even worker takes."""
    done = straggle(tmp_path, "async", learner, **flow)
    assert done.telemetry.sps is not None
    assert least <= done.telemetry.sps / SEVEN <= 1.02, "the slow worker itself adds a seventieth at most"
    assert done.telemetry.dropped_segments == 0
    assert (done.telemetry.staleness_max or 0) <= done.telemetry.staleness_bound


def test_overlap_waits_and_says_for_whom(tmp_path: Path) -> None:
    done = straggle(tmp_path, "overlap", 0.5)
    assert f"for block {SLOW} alone: try --schedule async" in done.recorder.bottleneck()
    assert done.telemetry.sps is not None
    assert done.telemetry.sps / SEVEN == pytest.approx(8 / 7 / 10, rel=0.02), "all eight at the pace of the slow one"


@pytest.mark.parametrize(("schedule", "learner"), [("sync", 0.5), ("overlap", 0.5), ("async", 0.5), ("async", 0.9)])
def test_the_bare_law_is_the_yardstick_of_the_run(tmp_path: Path, schedule: Any, learner: float) -> None:
    """Messages that take half a millisecond and the supervisor's order of things cost less than two percent."""
    done = straggle(tmp_path, schedule, learner)
    law = simulate_law(
        FlowSettings(schedule=schedule), num_blocks=WORKERS, pace=PACE, train_s=learner * COLLECT_S, versions=VERSIONS
    )
    assert done.telemetry.sps == pytest.approx(law.rows_per_s, rel=0.02)


@pytest.mark.parametrize("learner", [0.5, 2.0])
def test_the_yardstick_has_a_known_length(learner: float) -> None:
    """Even workers. sync: collect, then learn. overlap: the longer of the two, and one collection before the first batch."""
    pace, rows = Pace(steps=STEPS, lanes=LANES, draw=even(STEP_S)), WORKERS * STEPS * LANES
    wish = {"num_blocks": WORKERS, "pace": pace, "train_s": learner * COLLECT_S, "versions": 10}
    sync = simulate_law(FlowSettings(schedule="sync"), **wish)  # type: ignore[arg-type]  # as the signature says
    overlap = simulate_law(FlowSettings(schedule="overlap"), **wish)  # type: ignore[arg-type]  # as the signature says
    assert sync.rows == overlap.rows == 10 * rows
    assert sync.seconds == pytest.approx(10 * (1 + learner) * COLLECT_S)
    longer = max(1.0, learner)
    assert overlap.seconds == pytest.approx((1 + 9 * longer + learner) * COLLECT_S)
