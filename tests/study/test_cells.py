"""Which runs there are, and what each is told."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import pytest

from penstock.cli.commands import Train
from penstock.cli.parser import parse
from penstock.cli.train import built_from
from penstock.config.files import config_digest
from penstock.core.errors import Refused
from penstock.run.job import Job
from penstock.study.cells import CORRECTIONS, TASKS, Cell, Plan, difference

SET = ("learner.gamma=0.5",)


def job_of(cell: Cell) -> Job:
    """As the child's command line builds it."""
    arguments = cell.arguments("out")
    assert arguments[0] == "train"
    return built_from(parse(Train, "train", arguments[1:])).job


def test_the_default_is_every_combination_of_the_question_once():
    cells = list(Plan().cells())
    assert len(cells) == len({cell.name for cell in cells}) == 2 * 5 * 5 * 5
    assert {cell.staleness for cell in cells} == {0, 1, 2, 4, 8}
    assert {cell.correction for cell in cells} == {"clip", "decoupled", "vtrace", "delayed", "none"} == set(CORRECTIONS)
    assert {cell.seed for cell in cells[:50]} == {1}  # whole grids first


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@pytest.mark.parametrize("staleness", [0, 1, 8])
@pytest.mark.parametrize("correction", CORRECTIONS)
def test_a_run_is_what_its_cell_says(task, staleness, correction):
    cell = Cell(task=task, staleness=staleness, correction=correction, seed=3)
    job = job_of(cell)
    assert (job.flow.schedule, job.flow.bound) == ("overlap" if staleness else "sync", staleness)
    assert (job.algo, job.learner.correction_name, job.run.seed) == ("ppo", correction, 3)
    assert (job.run.steps, job.run.workers, job.run.until_return, job.run.experiment) == (task.steps, 0, None, True)
    assert config_digest(job) == cell.config_digest()


def test_runs_of_a_task_differ_in_staleness_and_correction_alone():
    jobs = [job_of(cell) for cell in Plan(tasks=(TASKS["cartpole"],), seeds=(1,)).cells()]
    bare = {
        dataclasses.replace(
            job, flow=jobs[0].flow, learner=dataclasses.replace(job.learner, correction="clip"), env=jobs[0].env
        ).__repr__()
        for job in jobs
    }
    assert len(jobs) == 25
    assert len(bare) == 1


def test_a_persons_own_settings_come_last_but_for_the_studys():
    cell = Cell(task=TASKS["cartpole"], staleness=2, correction="none", seed=1, sets=SET)
    told = [value for flag, value in pairwise(cell.arguments("out")) if flag == "--set"]
    assert told.index("learner.gamma=0.98") < told.index("learner.gamma=0.5") < told.index("learner.correction=none")
    assert job_of(cell).learner.gamma == 0.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("flow.depth=1", "decides flow.depth itself"),
        ("correction=none", "decides learner.correction itself"),
        ("seed=3", "decides run.seed itself"),
        ("gama=1", "did you mean"),
        ("gamma", "is not of the form room.key=value"),
    ],
)
def test_what_the_study_varies_cannot_be_set(text, message):
    with pytest.raises(Refused, match=message):
        Plan(sets=(text,))


def test_a_difference_is_named():
    here = Plan().described()
    assert difference(here, Plan().described()) is None
    assert difference(here, Plan(seeds=(1, 2)).described()) == "seeds is 1,2,3,4,5 there and 1,2 here"
    longer = dataclasses.replace(TASKS["cartpole"], steps=7)
    other = Plan(tasks=(longer, TASKS["lunarlander"])).described()
    assert difference(here, other) == "tasks.cartpole.steps is 150000 there and 7 here"
    assert difference(here, Plan(tasks=(TASKS["cartpole"],)).described()) == "tasks.lunarlander is there there and absent here"
    assert difference(here, Plan(sets=SET).described()) == "sets is empty there and learner.gamma=0.5 here"
