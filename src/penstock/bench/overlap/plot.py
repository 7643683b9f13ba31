"""What was found, as a picture: speed-up over the classic loop by variance. matplotlib is loaded here alone, when asked for."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from penstock.core.errors import MissingExtra, Refused

COLORS = {"sync": "tab:grey", "overlap": "tab:blue", "async": "tab:orange"}


def demand_plotting(path: Path) -> None:
    """Refuse before anything is measured, not after."""
    if find_spec("matplotlib") is None:
        raise MissingExtra("--plot", "sweep")
    if not path.parent.is_dir():
        raise Refused(f"--plot {path}: there is no directory {path.parent}")


def draw(report: dict[str, Any], path: Path) -> None:
    """A panel for each layout and length of learning. Lines: measured; dashes: what the law allows; dots: HTS-RL's model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = [row for row in report["rows"] if row["share"] is not None]
    shares = sorted({row["share"] for row in rows})
    layouts = list(dict.fromkeys(result["layout"] for row in rows for result in row["results"]))
    if not shares or not layouts:
        raise Refused("--plot shows timed learners: leave --learner wait in")
    figure = Figure(figsize=(4 * len(shares), 3.2 * len(layouts)), layout="constrained")
    panels = figure.subplots(len(layouts), len(shares), sharex=True, sharey=True, squeeze=False)
    for line, layout in zip(panels, layouts, strict=True):
        for panel, share in zip(line, shares, strict=True):
            _fill(panel, [row for row in rows if row["share"] == share], layout)
            panel.set_title(f"{layout}, learning {share:g} x collecting", fontsize=10)
    for panel in panels[-1]:
        panel.set_xlabel("variance of step time (mean 1)")
    for panel in panels[:, 0]:
        panel.set_ylabel("speed-up over classic loop")
    panels[0, 0].legend(fontsize=7)
    FigureCanvasAgg(figure).print_figure(path, dpi=120)


def _fill(panel: Any, rows: list[dict[str, Any]], layout: str) -> None:
    rows = sorted(rows, key=lambda row: float(row["variance"]))
    variances = [row["variance"] for row in rows]
    schedules = list(dict.fromkeys(result["schedule"] for row in rows for result in row["results"]))
    for schedule in schedules:
        found = [_found(row, schedule, layout) for row in rows]
        panel.plot(variances, [r["speedup"] for r in found], "o-", ms=3, color=COLORS[schedule], label=schedule)
        allowed = [r["simulated_speedup"] for r in found]
        panel.plot(variances, allowed, "--", lw=1, color=COLORS[schedule], label=f"{schedule}, law's simulation")
    panel.plot(variances, [row["hts_speedup"] for row in rows], "k:", label="HTS-RL's model")
    panel.set_xscale("log")
    panel.grid(alpha=0.3)


def _found(row: dict[str, Any], schedule: str, layout: str) -> dict[str, Any]:
    return next(r for r in row["results"] if (r["schedule"], r["layout"]) == (schedule, layout))
