"""Has every case measured, one run at a time, and puts beside each what the law's simulation gives for the same delays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from penstock.bench.overlap import children, delays
from penstock.bench.overlap.cases import ROUND_S, STEPS, Case, Layout, hts_speedup
from penstock.flow.settings import Schedule

START_S = 2.5
"""About what starting and ending a run takes."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be measured, and for how long each."""

    cases: tuple[Case, ...]
    schedules: tuple[Schedule, ...]
    layouts: tuple[Layout, ...]
    rounds: int
    seconds: float

    @property
    def contenders(self) -> list[tuple[Schedule, Layout]]:
        return [(schedule, layout) for layout in self.layouts for schedule in self.schedules]

    @property
    def num_runs(self) -> int:
        return len(self.cases) * self.rounds * (1 + len(self.contenders))

    @property
    def expected_s(self) -> float:
        """About how long it all takes."""
        return self.rounds * sum(self._case_s(case) for case in self.cases)

    def _case_s(self, case: Case) -> float:
        collect_s = case.ma * ROUND_S
        seconds = START_S + case.rollouts(self.seconds) * (case.m1 * ROUND_S + case.wait_s)
        for schedule, _ in self.contenders:
            batch_s = collect_s + case.wait_s if schedule == "sync" else max(collect_s, case.wait_s)
            seconds += START_S + case.batches(schedule, self.seconds) * batch_s
        return seconds


def measure(plan: Plan, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """A row for every case, as plain data. Round k has seed k for everybody, hence the same delays."""
    say(f"{plan.num_runs} runs, about {plan.expected_s / 60:.0f} min")
    count = 0

    def progress(case: Case, text: str) -> None:
        nonlocal count
        count += 1
        say(f"run {count} of {plan.num_runs}: {case.label}: {text}")

    return [_row(plan, case, progress) for case in plan.cases]


Progress = Callable[[Case, str], None]


def _row(plan: Plan, case: Case, progress: Progress) -> dict[str, Any]:
    classic: list[dict[str, float]] = []
    runs: dict[tuple[Schedule, Layout], list[dict[str, Any]]] = {contender: [] for contender in plan.contenders}
    for seed in range(1, plan.rounds + 1):
        classic.append(_classic(plan, case, seed))
        progress(case, f"classic: {classic[-1]['sps']:,.0f} steps/s, {classic[-1]['off']:+.1%} off m1 + L")
        for (schedule, layout), done in runs.items():
            done.append(_penstock(plan, case, schedule, layout, seed, classic[-1]["sps"]))
            found = done[-1]
            said = f"{found['sps']:,.0f} steps/s, {found['fraction']:.1%} of what the law allows"
            progress(case, f"{schedule} {layout.name}: {said}")
    learning = median(run["learning"] for run in classic) if case.share is None else case.wait_s / ROUND_S
    return {
        "variance": case.variance,
        "learner": case.learner,
        "share": case.share,
        "m1": case.m1,
        "ma": case.ma,
        "learning": learning,
        "hts_speedup": hts_speedup(case.m1, case.ma, learning),
        "classic": {**_medians(classic, ("cost", "expected", "off", "sps")), "runs": classic},
        "results": [_result(schedule, layout, done) for (schedule, layout), done in runs.items()],
    }


def _classic(plan: Plan, case: Case, seed: int) -> dict[str, float]:
    """What it took beside m1 of the very delays that it drew, plus L: as stated, or as long as the real learner took."""
    rollouts = case.rollouts(plan.seconds)
    run = children.classic(case, seed=seed, rollouts=rollouts)
    learning = run.learning if case.share is None else case.wait_s / ROUND_S
    expected = delays.drawn_m1(case.variance, seed, rollouts * STEPS) + learning
    return {**asdict(run), "cost": run.cost, "sps": run.sps, "expected": expected, "off": run.cost / expected - 1}


def _penstock(plan: Plan, case: Case, schedule: Schedule, layout: Layout, seed: int, classic_sps: float) -> dict[str, Any]:
    batches = case.batches(schedule, plan.seconds)
    run = children.penstock(case, schedule, layout, seed=seed, batches=batches)
    train_s = run.train_s if case.share is None else case.wait_s
    allowed = delays.simulated_sps(case, schedule, layout, seed=seed, batches=batches, train_s=train_s)
    ratios = {"simulated_sps": allowed, "fraction": run.sps / allowed}
    ratios |= {"speedup": run.sps / classic_sps, "simulated_speedup": allowed / classic_sps}
    return {**asdict(run), "batches": batches, **ratios}


def _result(schedule: str, layout: Layout, runs: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("sps", "simulated_sps", "fraction", "speedup", "simulated_speedup")
    return {"schedule": schedule, "layout": layout.name, **_medians(runs, names), "runs": runs}


def _medians(runs: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, float]:
    return {name: median(run[name] for run in runs) for name in names}
