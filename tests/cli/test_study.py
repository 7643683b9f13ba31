"""The command line of studies: refusals, and what is handed on."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.cli.commands import Study
from penstock.cli.main import main
from penstock.cli.parser import flag, parse
from penstock.cli.study import figures_of, plan_of


def study(line: str) -> Study:
    return parse(Study, "study", line.split())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "penstock study needs to know what to study: staleness"),
        ("stalness", "unknown study 'stalness'; did you mean staleness?"),
        ("staleness now", "penstock study has no place for 'now'"),
        ("staleness --seed 1", "unknown option of penstock study '--seed'; did you mean --seeds"),
        ("staleness --tasks cartpol", "unknown task 'cartpol'; did you mean cartpole?"),
        ("staleness --corrections clip,traced", "unknown correction 'traced'"),
        ("staleness --corrections clip,", "--corrections 'clip,' is a list between commas, and one of its items is empty"),
        ("staleness --staleness 0,-1", "--staleness -1 is too small; 0 is the least"),
        ("staleness --staleness 0,x", "--staleness='x': expected a whole number"),
        ("staleness --seeds 1.5", "--seeds='1.5': expected a whole number"),
        ("staleness --steps 0", "--steps 0 is too small; 1 is the least"),
        ("staleness --jobs 0", "--jobs 0 is too small; 1 is the least"),
        ("staleness --set learner.gama=1", "did you mean learner.gamma"),
        ("staleness --set flow.schedule=sync", "a study of staleness decides flow.schedule itself"),
        ("staleness --figure plot.svg", "--figure plot.svg ends in neither of .png, .pdf"),
        ("staleness --figure none --figure a.png", "contradict each other"),
        ("staleness --figure none --set gamma=2", "learner.gamma must be between 0 and 1"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["study", *arguments.split()]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert (said.err.count("\n"), said.out) == (1, "")
    assert list(tmp_path.iterdir()) == []


def test_the_surface_is_pinned():
    """Growth is a decision."""
    flags = [flag(entry) for entry in Study.__dataclass_fields__.values() if not entry.metadata.get("positional")]
    known = "tasks staleness corrections seeds steps set jobs out figure json"
    assert flags == [f"--{name}" for name in known.split()]


def test_flags_become_a_plan():
    plan = plan_of(study("staleness --tasks acrobot --staleness 4,0,4 --corrections none,clip --seeds 7 --steps 1e3"))
    assert [(task.name, task.steps) for task in plan.tasks] == [("acrobot", 1000)]
    assert (plan.staleness, plan.corrections, plan.seeds) == ((4, 0), ("none", "clip"), (7,))
    assert len(list(plan_of(study("staleness")).cells())) == 250


def test_the_figure_goes_into_the_studys_directory_unless_told_otherwise():
    out = Path("studies/x")
    assert figures_of(study("staleness"), out) == [out / "staleness.png", out / "staleness.pdf"]
    assert figures_of(study("staleness --figure a.pdf --figure b.png"), out) == [Path("a.pdf"), Path("b.png")]
    assert figures_of(study("staleness --figure none"), out) == []
