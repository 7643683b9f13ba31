"""The figure of a study of staleness, ready for a paper. The only place that knows matplotlib, and loads it when it draws.

A row for each task: final performance over K, then learning curves at a middle and at the greatest K. Corrections differ in
colour (Okabe and Ito's, which the colour-blind can tell apart), in marker and in dash, so that grey print tells them apart too.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.core.errors import MissingExtra, Refused
from penstock.study.findings import band, curve_of

SUFFIXES = (".png", ".pdf")

STYLES: dict[str, tuple[str, str, Any]] = {
    "clip": ("#0072B2", "o", "-"),
    "decoupled": ("#E69F00", "s", (0, (5, 1.5))),
    "vtrace": ("#009E73", "^", (0, (3, 1, 1, 1))),
    "delayed": ("#D55E00", "D", (0, (1.5, 1))),
    "none": ("#000000", "X", (0, (7, 2, 1.5, 2))),
}
"""Correction to colour, marker and dash."""

_PAPER: Any = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.4,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "pdf.fonttype": 42,  # fonts as outlines that journals accept, not as bitmaps
    "ps.fonttype": 42,
}
WIDTH_IN, ROW_IN, LEGEND_IN, DPI = 7.2, 2.15, 0.35, 300
"""Two columns of a paper wide."""


def require(paths: Sequence[Path]) -> None:
    """Refuse, before anything runs, a figure that could not be drawn."""
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            raise Refused(f"--figure {path} ends in neither of {', '.join(SUFFIXES)}")
        if path.is_dir() or (path.parent.exists() and not path.parent.is_dir()):
            raise Refused(f"--figure {path} cannot be written there")
    if paths and importlib.util.find_spec("matplotlib") is None:
        raise MissingExtra("the figure (--figure none: without)", "sweep")


def draw(found: Mapping[str, Any], kept: Sequence[Mapping[str, Any]], paths: Sequence[Path]) -> None:
    """Draw the study once and save it under every one of these names."""
    if not paths:
        return
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_PAPER):
        tasks, shown = list(found["tasks"]), shown_bounds(found["staleness"])
        height = ROW_IN * len(tasks) + LEGEND_IN
        figure = Figure(figsize=(WIDTH_IN, height), layout="constrained")
        FigureCanvasAgg(figure)
        panels = figure.subplots(len(tasks), 1 + len(shown), squeeze=False, width_ratios=[1.25, *([1] * len(shown))])
        for row, task in zip(panels, tasks, strict=True):
            _over_staleness(row[0], found, task)
            for panel, bound in zip(row[1:], shown, strict=True):
                _learning_curves(panel, found, kept, task, bound)
            row[1].set_ylabel("return (sum of rewards),\nlast 100 episodes")
            _share_returns(row)
        for panel, title in zip(panels[0], ["final performance", *(f"learning, K = {bound}" for bound in shown)], strict=True):
            panel.set_title(title)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, handlelength=3.5)
        for path in paths:
            path.parent.mkdir(parents=True, exist_ok=True)
            figure.savefig(path, dpi=DPI)


def shown_bounds(staleness: Sequence[int]) -> list[int]:
    """For which K learning curves are shown: a middle one and the greatest."""
    ordered = sorted(staleness)
    return list(dict.fromkeys([ordered[len(ordered) // 2], ordered[-1]]))


def _over_staleness(panel: Any, found: Mapping[str, Any], task: str) -> None:
    """Final performance and its interval over K. The places of K are even: 0, 1, 2, 4, 8 double from step to step."""
    bounds, corrections = list(found["staleness"]), list(found["corrections"])
    for place, correction in enumerate(corrections):
        rows = {row["staleness"]: row for row in found["rows"] if (row["task"], row["correction"]) == (task, correction)}
        aside = 0.09 * (place - (len(corrections) - 1) / 2)  # so that intervals do not cover each other
        points = [(i + aside, rows[bound]["final_return"]) for i, bound in enumerate(bounds)]
        points = [(x, estimate) for x, estimate in points if estimate["mean"] is not None]
        half = [0.0 if e["low"] is None else e["mean"] - e["low"] for _, e in points]
        colour, marker, dash = STYLES[correction]
        panel.errorbar(
            [x for x, _ in points],
            [e["mean"] for _, e in points],
            yerr=half,
            color=colour,
            marker=marker,
            linestyle=dash,
            elinewidth=0.8,
            capsize=1.8,
            capthick=0.8,
            markeredgewidth=0,
            label=correction,
        )
    panel.set_xticks(range(len(bounds)), [str(bound) for bound in bounds])
    panel.set_xlabel("staleness K of every sample (versions)")
    panel.set_ylabel(f"{found['tasks'][task]['env_id']}\nreturn, last {found['final_share']:.0%} of steps")


def _learning_curves(panel: Any, found: Mapping[str, Any], kept: Sequence[Mapping[str, Any]], task: str, bound: int) -> None:
    budget = found["tasks"][task]["steps"]
    for place, correction in enumerate(found["corrections"]):
        cells = [cell for cell in kept if (cell["task"], cell["staleness"], cell["correction"]) == (task, bound, correction)]
        drawn = band([curve_of(cell) for cell in cells], budget)
        known = [(step / 1000, e) for step, e in zip(drawn.steps, drawn.estimates, strict=True) if e.mean is not None]
        steps, means = [step for step, _ in known], [e.mean for _, e in known]
        colour, marker, dash = STYLES[correction]
        every = max(1, len(known) // 5)
        panel.plot(
            steps, means, color=colour, linestyle=dash, marker=marker, markeredgewidth=0, markevery=(place * every // 5, every)
        )
        low, high = [e.low for _, e in known], [e.high for _, e in known]
        if None not in low:
            panel.fill_between(steps, low, high, color=colour, alpha=0.12, linewidth=0)
    panel.set_xlim(0, budget / 1000)
    panel.set_xlabel("environment steps (thousands)")


def _share_returns(row: Sequence[Any]) -> None:
    """One scale of returns a row, as wide as means and intervals at the end need."""
    values = [value for panel in row for line in panel.get_lines() for value in line.get_ydata() if value == value]
    if not values:
        return
    low, high = min(values), max(values)
    room = 0.06 * (high - low or 1.0)
    for panel in row:
        panel.set_ylim(low - room, high + room)
