"""The figure: what is refused, and that one is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from kept_runs import kept

from penstock.core.errors import MissingExtra, Refused
from penstock.study import figure
from penstock.study.cells import CORRECTIONS, TASKS, Plan
from penstock.study.findings import report


@pytest.mark.parametrize("name", ["figure.svg", "figure"])
def test_other_formats_are_refused(name):
    with pytest.raises(Refused, match=r"ends in neither of \.png, \.pdf"):
        figure.require([Path(name)])


def test_a_place_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "directory.png").mkdir()
    for path in (tmp_path / "file" / "figure.png", tmp_path / "directory.png"):
        with pytest.raises(Refused, match="cannot be written there"):
            figure.require([path])


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("penstock.study.figure.importlib.util.find_spec", lambda _: None)
    figure.require([])
    with pytest.raises(MissingExtra, match=r"needs the extra 'sweep': pip install 'penstock\[sweep\]'"):
        figure.require([Path("figure.png")])


def test_every_correction_looks_different():
    assert set(figure.STYLES) == set(CORRECTIONS)
    for part in zip(*figure.STYLES.values(), strict=True):
        assert len(set(part)) == len(CORRECTIONS)


def test_curves_are_shown_of_a_middle_and_the_greatest_k():
    assert figure.shown_bounds([0, 1, 2, 4, 8]) == [2, 8]
    assert figure.shown_bounds([8, 0]) == [8]
    assert figure.shown_bounds([4]) == [4]


@pytest.mark.parametrize("seeds", [(1,), (1, 2, 3)])
def test_a_figure_is_drawn(tmp_path, seeds):
    pytest.importorskip("matplotlib")
    plan = Plan(tasks=(TASKS["cartpole"], TASKS["acrobot"]), staleness=(0, 2, 8), seeds=seeds)
    runs = [
        kept(cell.task.name, cell.staleness, cell.correction, cell.seed, [None, 1.0, float(cell.seed)]) for cell in plan.cells()
    ]
    runs[0] = kept("cartpole", 0, "clip", 1, [None, None])  # no episode ended
    paths = [tmp_path / "new" / "figure.png", tmp_path / "figure.pdf"]
    figure.draw(report(plan.described(), runs), runs, paths)
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    assert paths[1].read_bytes().startswith(b"%PDF")
    assert b"/Type3" not in paths[1].read_bytes()  # fonts that can be searched and edited
