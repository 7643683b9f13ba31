"""What may be taken up again, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from kept_runs import kept

from penstock.core.errors import Refused
from penstock.study.cells import TASKS, Cell, Plan
from penstock.study.directory import StudyDirectory

CELL = Cell(task=TASKS["cartpole"], staleness=2, correction="clip", seed=1)
PLAN = Plan(staleness=(2,), corrections=("clip",), seeds=(1,))


def found(**other: Any) -> dict[str, Any]:
    return {**kept("cartpole", 2, "clip", 1, [1.0, 2.0, 3.0]), **other}


def open_study(path: Path, plan: Plan = PLAN) -> StudyDirectory:
    return StudyDirectory(path, plan.described())


def test_a_run_is_kept_and_found_again(tmp_path):
    with open_study(tmp_path / "study") as study:
        assert study.kept(CELL, "c") is None
        study.run_dir(CELL).mkdir(parents=True)
        study.keep(CELL, found())
        assert not study.run_dir(CELL).exists()
    with open_study(tmp_path / "study") as study:
        assert study.kept(CELL, "c") == {"format": 1, **found()}
    assert not (tmp_path / "study" / "running").exists()


def test_another_study_is_refused_in_a_line_that_names_the_difference(tmp_path):
    with open_study(tmp_path):
        pass
    with pytest.raises(Refused, match=r"holds another study: seeds is 1 there and 1,2 here; name a new --out"):
        open_study(tmp_path, Plan(staleness=(2,), corrections=("clip",), seeds=(1, 2))).__enter__()


def test_a_directory_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(Refused, match="is there and is no study"):
        open_study(tmp_path).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    with pytest.raises(Refused, match="is there and is no study"):
        open_study(tmp_path / "thesis.tex").__enter__()


def test_two_at_once_are_refused(tmp_path):
    with open_study(tmp_path), pytest.raises(Refused, match="another process is at work"):
        open_study(tmp_path).__enter__()


def test_a_run_under_other_defaults_is_refused(tmp_path):
    with open_study(tmp_path) as study:
        study.keep(CELL, found())
        with pytest.raises(Refused, match=r"other defaults \(config_digest c there, another here, commit abc\)"):
            study.kept(CELL, "another")


def test_a_kept_run_whose_ages_are_not_exact_is_refused(tmp_path):
    with open_study(tmp_path) as study:
        study.keep(CELL, found())
        path = tmp_path / "cells" / f"{CELL.name}.json"
        document = json.loads(path.read_text())
        document["curve"]["staleness_histogram"][2] = [0, 10, 0]
        path.write_text(json.dumps(document))
        with pytest.raises(Refused, match="10 of age 1, where 2 is due; remove the file"):
            study.kept(CELL, "c")


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_torn_file_is_named(tmp_path, text):
    with open_study(tmp_path) as study:
        (tmp_path / "cells" / f"{CELL.name}.json").write_text(text)
        with pytest.raises(Refused, match=r"cannot read .*cartpole-K2-clip-s1.json"):
            study.kept(CELL, "c")
