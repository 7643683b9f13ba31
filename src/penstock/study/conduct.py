"""A study from its start to its last run: what is missing is run, looked at, and kept. Knows no statistics."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.errors import Refused, RunFailed
from penstock.metrics.wording import duration, short_number
from penstock.run.signals import StopSignals
from penstock.study.ages import inexact
from penstock.study.cells import Cell, Plan
from penstock.study.children import Children, Ended
from penstock.study.directory import StudyDirectory

LEGITIMATE_ENDS = ("steps", "nonfinite")
"""A run uses up its budget; or its numbers stop being finite, which is an answer to what was asked."""

CURVE = ("version", "env_steps", "episodes", "return_mean", "staleness_histogram")
"""What is kept of every record."""

SUMMARY = (
    "stop_reason",
    "env_steps",
    "version",
    "return_mean",
    "episodes",
    "digest",
    "config_digest",
    "version_info",
    "wall_s",
)
"""What is kept of a summary on the first level, beside the whole."""


@dataclass(frozen=True)
class Conducted:
    """What a study came to: everything that is kept of its runs, or the signal that stopped it."""

    kept: tuple[Mapping[str, Any], ...]
    missing: int
    signal: int | None


class Conductor:
    """Runs what a plan asks for and a directory lacks. Made before the directory: it refuses what no run could be told."""

    def __init__(self, plan: Plan, *, jobs: int, say: Callable[[str], None]) -> None:
        self._jobs, self._say = jobs, say
        self._cells = {cell.name: cell for cell in plan.cells()}
        self._digests = {name: cell.config_digest() for name, cell in self._cells.items()}
        self._kept: dict[str, Mapping[str, Any]] = {}

    def conduct(self, directory: StudyDirectory) -> Conducted:
        """All runs that are missing; ends early, and leaves none under way, at a signal or an error."""
        missing = self._missing(directory)
        self._say(announcement(len(self._cells), missing, self._jobs))
        heard = None
        if missing:
            with closing(StopSignals()) as signals, Children(signals) as children:
                heard = self._run(directory, missing, children, signals)
        in_order = tuple(self._kept[name] for name in self._cells if name in self._kept)
        return Conducted(in_order, len(self._cells) - len(in_order), heard)

    def _missing(self, directory: StudyDirectory) -> list[Cell]:
        for name, cell in self._cells.items():
            found = directory.kept(cell, self._digests[name])
            if found is not None:
                self._kept[name] = found
        return [cell for name, cell in self._cells.items() if name not in self._kept]

    def _run(self, directory: StudyDirectory, missing: Sequence[Cell], children: Children, signals: StopSignals) -> int | None:
        waiting, start_s = list(missing), time.monotonic()
        whole_s = left_s = sum(cell.cost_s() for cell in missing)
        while waiting or len(children):
            while waiting and len(children) < self._jobs:
                cell = waiting.pop(0)
                children.start(cell.name, cell.arguments(str(directory.run_dir(cell))))
            for ended in children.wait():
                left_s -= self._cells[ended.name].cost_s()
                kept = self._keep(directory, ended)
                remaining_s = (time.monotonic() - start_s) * left_s / (whole_s - left_s)
                self._say(self._progress(ended, kept, remaining_s))
            if signals.pending and (waiting or len(children)):
                return signals.take()[0].signal
        return None

    def _keep(self, directory: StudyDirectory, ended: Ended) -> Mapping[str, Any]:
        cell = self._cells[ended.name]
        kept = looked_at(cell, ended, directory.run_dir(cell), self._digests[ended.name])
        directory.keep(cell, kept)
        self._kept[ended.name] = kept
        return kept

    def _progress(self, ended: Ended, kept: Mapping[str, Any], remaining_s: float) -> str:
        came_to = f"return {short_number(kept['return_mean'])}"
        if kept["stop_reason"] == "nonfinite":
            came_to += f", not finite after {kept['env_steps']:,} steps"
        done = f"run {len(self._kept)} of {len(self._cells)}"
        return f"{done}: {ended.name}: {came_to} ({ended.wall_s:.1f} s); {duration(remaining_s)} left"


def announcement(runs: int, missing: Sequence[Cell], jobs: int) -> str:
    """What is about to be done, and about how long it takes."""
    done = f", {runs - len(missing)} of them done" if len(missing) < runs else ""
    if not missing:
        return f"{runs} runs{done}"
    minutes = estimate_s(missing, jobs, num_cores()) / 60
    about = f"about {minutes:.0f} min" if minutes >= 1.5 else "about a minute" if minutes > 0.5 else "less than a minute"
    return f"{runs} runs{done}, {jobs} side by side: {about}"


def estimate_s(missing: Sequence[Cell], jobs: int, cores: int) -> float:
    """Wall time, where so many runs share so many cores."""
    return sum(cell.cost_s() for cell in missing) / min(jobs, cores, len(missing))


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def looked_at(cell: Cell, ended: Ended, run_dir: Path, config_digest: str) -> dict[str, Any]:
    """What is kept of a run that ended; raises for one that failed, or that did not do what was asked."""
    summary = _summary(ended)
    if summary["stop_reason"] not in LEGITIMATE_ENDS:
        raise RunFailed(f"{ended.name} ended by '{summary['stop_reason']}': {_last_words(ended)}", details=ended.errors)
    if summary["config_digest"] != config_digest:
        raise RunFailed(f"{ended.name} ran with other settings than it was told; was Penstock changed meanwhile?")
    records = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text("utf-8").splitlines()]
    finite = summary["stop_reason"] == "steps"
    wrong = inexact(records, cell.staleness) if records or finite else None
    if wrong is not None:
        raise RunFailed(f"{ended.name} does not count: {wrong}; its files are in {run_dir}")
    return {
        "task": cell.task.name,
        "env_id": cell.task.env_id,
        "staleness": cell.staleness,
        "correction": cell.correction,
        "seed": cell.seed,
        **{name: summary[name] for name in SUMMARY},
        "exact_staleness": True,
        "summary": summary,
        "curve": {name: [record[name] for record in records] for name in CURVE},
    }


def _summary(ended: Ended) -> dict[str, Any]:
    """The last line of output. A run that was refused is refused here; one without a summary has failed."""
    if ended.exit_code == Refused.exit_code:
        raise Refused(f"{ended.name}: {_last_words(ended)}")
    try:
        summary = json.loads(ended.output.splitlines()[-1])
    except (IndexError, ValueError) as error:
        said = _last_words(ended)
        raise RunFailed(f"{ended.name} failed with exit code {ended.exit_code}: {said}", details=ended.errors) from error
    if not isinstance(summary, dict):
        raise RunFailed(f"{ended.name} did not end with a summary", details=ended.output)
    return summary


def _last_words(ended: Ended) -> str:
    return (ended.errors.strip().splitlines() or ["it said nothing"])[-1].removeprefix("penstock: ")
