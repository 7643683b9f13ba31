"""`penstock study`. Reads flags, has a study conducted, prints what it found. Knows neither runs nor statistics."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from penstock.cli.commands import Study
from penstock.cli.summary import as_json
from penstock.config.values import checked
from penstock.core.errors import Refused, UnknownName
from penstock.study import figure
from penstock.study.cells import DEFAULT_TASKS, Plan, find_corrections, find_tasks
from penstock.study.conduct import Conducted, Conductor, num_cores
from penstock.study.directory import StudyDirectory
from penstock.study.findings import report
from penstock.study.tables import markdown

STUDIES = ("staleness",)
NO_FIGURE = "none"


def carry_out(command: Study) -> int:
    """Conduct the study, or what of it is missing; print the table, draw the figure."""
    if command.study is None:
        raise Refused(f"penstock study needs to know what to study: {' or '.join(STUDIES)}")
    if command.study not in STUDIES:
        raise UnknownName("study", command.study, STUDIES)
    plan, out = plan_of(command), Path(command.out or f"studies/{command.study}")
    jobs = num_cores() if command.jobs is None else _whole("--jobs", command.jobs, least=1)
    figures = figures_of(command, out)
    figure.require(figures)
    conductor = Conductor(plan, jobs=jobs, say=_say)
    with StudyDirectory(out, plan.described()) as directory:
        done = conductor.conduct(directory)
        if done.signal is not None:
            _say(f"stopped; {len(done.kept)} runs are kept in {out}, the same command goes on with the {done.missing} others")
            return 128 + done.signal
        _tell(command, plan, done, directory, figures)
    return 0


def plan_of(command: Study) -> Plan:
    """The runs that these flags ask for."""
    chosen: dict[str, Any] = {}
    if command.corrections is not None:
        chosen["corrections"] = find_corrections(_several("--corrections", command.corrections))
    if command.staleness is not None:
        chosen["staleness"] = _whole_numbers("--staleness", command.staleness)
    if command.seeds is not None:
        chosen["seeds"] = _whole_numbers("--seeds", command.seeds)
    tasks = find_tasks(DEFAULT_TASKS if command.tasks is None else _several("--tasks", command.tasks))
    if command.steps is not None:
        steps = _whole("--steps", command.steps, least=1)
        tasks = tuple(dataclasses.replace(task, steps=steps) for task in tasks)
    return Plan(tasks=tasks, sets=command.set, **chosen)


def figures_of(command: Study, out: Path) -> list[Path]:
    """Where the figure goes: into the study's directory unless told otherwise."""
    if NO_FIGURE in command.figure:
        if len(command.figure) > 1:
            raise Refused(f"--figure {NO_FIGURE} and --figure FILE contradict each other; leave one out")
        return []
    return [Path(name) for name in command.figure] or [out / "staleness.png", out / "staleness.pdf"]


def _tell(command: Study, plan: Plan, done: Conducted, directory: StudyDirectory, figures: list[Path]) -> None:
    found = report(plan.described(), done.kept)
    table = markdown(found)
    directory.write("table.md", table + "\n")
    directory.write("results.json", as_json(found) + "\n")
    print(table, file=sys.stderr if command.json else sys.stdout, flush=True)
    if command.json:
        print(as_json(found), flush=True)
    figure.draw(found, done.kept, figures)
    for path in figures:
        _say(f"figure: {path}")


def _several(flag: str, text: str) -> tuple[str, ...]:
    """Items between commas, each only once, in order."""
    items = [item.strip() for item in text.split(",")]
    if not all(items):
        raise Refused(f"{flag} '{text}' is a list between commas, and one of its items is empty")
    return tuple(dict.fromkeys(items))


def _whole_numbers(flag: str, text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_whole(flag, item, least=0) for item in _several(flag, text)))


def _whole(flag: str, text: str, *, least: int) -> int:
    number: int = checked(flag, text, int, is_text=True)
    if number < least:
        raise Refused(f"{flag} {number} is too small; {least} is the least")
    return number


def _say(text: str) -> None:
    print(f"penstock: {text}", file=sys.stderr, flush=True)
