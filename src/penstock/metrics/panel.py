"""What a person sees while a run lasts: a live panel on a terminal, a line now and then elsewhere, nothing if quiet.

Everything goes to standard error; standard output belongs to the summary. This module knows no run: it draws the
`PanelView` that it is shown, when it is shown one. It has no thread and no timer of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TextIO

from penstock.core.clock import Clock, SystemClock
from penstock.metrics.wording import MISSING, duration, percent, short_count, short_number

if TYPE_CHECKING:  # rich takes a tenth of a second to import and is needed on a terminal only
    from rich.panel import Panel as RichPanel
    from rich.table import Table

WIDTH = 80
BAR_WIDTH = 20


@dataclass(frozen=True, kw_only=True)
class PanelView:
    """One moment of a run, in plain numbers. None is shown as a dash."""

    env_id: str
    algo: str
    schedule: str
    seed: int
    run_dir: str
    elapsed_s: float
    steps: int = 0
    total_steps: int | None = None
    limit_s: float | None = None
    """The budget in seconds, where `--minutes` gave one."""
    version: int = 0
    episodes: int = 0
    return_mean: float | None = None
    return_last: float | None = None
    target_return: float | None = None
    sps: float | None = None
    staleness_bound: int = 0
    staleness_mean: float | None = None
    staleness_max: int | None = None
    learner_busy: float | None = None
    learner_wait: float | None = None
    sampler_busy: tuple[float, ...] = ()
    """One per worker; what is missing to 1 it spent waiting for the learner. Empty when all runs in one process."""
    bottleneck: str = ""
    phase: str = "training"
    """What is going on, where it is not training: starting, saving, stopping."""

    @property
    def progress(self) -> float | None:
        """Share of the budget that is spent; of the tighter one where there are two."""
        shares = [self.steps / self.total_steps] if self.total_steps else []
        shares += [self.elapsed_s / self.limit_s] if self.limit_s else []
        return min(1.0, max(shares)) if shares else None

    @property
    def time_left_s(self) -> float | None:
        """Until the first budget ends, at the present speed."""
        left = [max(0, self.total_steps - self.steps) / self.sps] if self.total_steps and self.sps else []
        left += [max(0.0, self.limit_s - self.elapsed_s)] if self.limit_s else []
        return min(left) if left else None


class Panel(Protocol):
    """Somewhere to show how a run is doing."""

    def show(self, view: PanelView) -> None:
        """The present state; draws it if it is time to."""

    def note(self, text: str) -> None:
        """One line that stays."""

    def close(self) -> None:
        """Show the last state once more and leave the terminal as it was found."""


def open_panel(
    *, quiet: bool = False, stream: TextIO | None = None, clock: Clock | None = None, lines_every_s: float = 5.0
) -> Panel:
    """The panel that suits this stream (standard error if not given)."""
    stream = stream or sys.stderr
    if quiet:
        return Silence()
    if draws(stream):
        return LivePanel(stream)
    return Lines(stream, clock=clock or SystemClock(), every_s=lines_every_s)


def draws(stream: TextIO) -> bool:
    """Whether a panel may be drawn on this stream."""
    return stream.isatty() and os.environ.get("TERM") != "dumb" and not os.environ.get("NO_COLOR")


class Silence:
    """For `--quiet`."""

    def show(self, view: PanelView) -> None:
        del view

    def note(self, text: str) -> None:
        del text

    def close(self) -> None:
        """Nothing was shown, so nothing is left to do."""


class Lines:
    """One plain line every few seconds: for logs, pipes and terminals that cannot draw."""

    def __init__(self, stream: TextIO, *, clock: Clock, every_s: float) -> None:
        self._stream = stream
        self._clock = clock
        self._every_s = every_s
        self._due_s = clock.now() + every_s
        self._unshown: PanelView | None = None

    def show(self, view: PanelView) -> None:
        if self._clock.now() < self._due_s:
            self._unshown = view
            return
        self._due_s = self._clock.now() + self._every_s
        self._unshown = None
        self.note(plain_line(view))

    def note(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def close(self) -> None:
        if self._unshown is not None:
            self.note(plain_line(self._unshown))
            self._unshown = None


def plain_line(view: PanelView) -> str:
    """A moment of a run in one line."""
    parts = [
        duration(view.elapsed_s),
        f"{short_count(view.steps)} steps ({percent(view.progress)})",
        f"return {short_number(view.return_mean)}",
        f"{short_count(view.sps)} steps/s",
        f"staleness {_staleness(view)}",
        f"learner {percent(view.learner_busy)}",
        f"samplers {percent(_mean(view.sampler_busy))}",
    ]
    return "penstock: " + ", ".join(parts)


class LivePanel:
    """A panel that stays in place, redrawn each time it is shown a view."""

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream, highlight=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live.start()

    def show(self, view: PanelView) -> None:
        self._live.update(drawn(view, width=min(WIDTH, self._console.width)), refresh=True)

    def note(self, text: str) -> None:
        self._console.print(text, markup=False, soft_wrap=True)

    def close(self) -> None:
        self._live.stop()


def drawn(view: PanelView, *, width: int = WIDTH) -> RichPanel:
    """The panel as rich draws it: at most 80 columns and well under 24 lines."""
    from rich.panel import Panel as RichPanel
    from rich.text import Text

    title = f"penstock  {view.env_id}  {view.algo}  {view.schedule}  seed {view.seed}"
    return RichPanel(
        _rows(view), title=Text(title, style="bold"), title_align="left", width=width, border_style="cyan", padding=(0, 1)
    )


def _rows(view: PanelView) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, content in (
        ("progress", _progress(view)),
        ("time", f"{duration(view.elapsed_s)} gone, {duration(view.time_left_s)} left at most"),
        ("return", _returns(view)),
        ("speed", f"{short_count(view.sps)} steps/s"),
        ("staleness", _staleness(view)),
        ("learner", f"{_bar(view.learner_busy)} busy {percent(view.learner_busy)}, waits {percent(view.learner_wait)}"),
        ("samplers", _samplers(view.sampler_busy)),
        ("bottleneck", view.bottleneck or MISSING),
        ("run", view.run_dir),
    ):
        table.add_row(name, Text(content))
    return table


def _progress(view: PanelView) -> str:
    budget = f" of {short_count(view.total_steps)}" if view.total_steps else ""
    phase = "" if view.phase == "training" else f", {view.phase}"
    return f"{_bar(view.progress)} {percent(view.progress)}  {short_count(view.steps)}{budget} steps, v{view.version}{phase}"


def _returns(view: PanelView) -> str:
    target = f", target {short_number(view.target_return)}" if view.target_return is not None else ""
    return (
        f"mean {short_number(view.return_mean)}, last {short_number(view.return_last)}{target}"
        f"  ({short_count(view.episodes)} episodes)"
    )


def _staleness(view: PanelView) -> str:
    mean = MISSING if view.staleness_mean is None else f"{view.staleness_mean:.2f}"
    most = MISSING if view.staleness_max is None else str(view.staleness_max)
    return f"mean {mean} max {most} of {view.staleness_bound}"


def _samplers(busy: Sequence[float]) -> str:
    mean = _mean(busy)
    if mean is None:
        return "in the learner's process"
    spread = f" ({percent(min(busy))} to {percent(max(busy))})" if len(busy) > 1 else ""
    return f"{_bar(mean)} busy {percent(mean)}{spread}, wait {percent(1 - mean)}"


def _mean(shares: Sequence[float]) -> float | None:
    return sum(shares) / len(shares) if shares else None


def _bar(share: float | None) -> str:
    filled = round(BAR_WIDTH * min(1.0, max(0.0, share or 0.0)))
    return "█" * filled + "░" * (BAR_WIDTH - filled)
