"""The terminal panel."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

from penstock.metrics.panel import Lines, LivePanel, PanelView, Silence, drawn, open_panel, plain_line


def view(**changes: object) -> PanelView:
    shown: dict[str, object] = {
        "env_id": "CartPole-v1",
        "algo": "ppo",
        "schedule": "overlap",
        "seed": 1,
        "run_dir": "runs/CartPole-v1-ppo-s1-20261118-214500",
        "elapsed_s": 3.0,
        "steps": 100_000,
        "total_steps": 400_000,
        "sps": 50_000.0,
        "return_mean": 321.5,
        "return_last": 500.0,
        "staleness_bound": 1,
        "staleness_mean": 0.98,
        "staleness_max": 1,
        "learner_busy": 0.93,
        "learner_wait": 0.07,
        "sampler_busy": (0.4, 0.5),
        "bottleneck": "The learner is the bottleneck (busy 93 %): try a larger learner.batch_size, fewer n_epochs.",
    }
    return PanelView(**{**shown, **changes})  # type: ignore[arg-type]  # a test names the fields that it changes


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class HandClock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time


def rendered(shown: PanelView) -> list[str]:
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    with console.capture() as captured:
        console.print(drawn(shown))
    return captured.get().splitlines()


def test_fits_eighty_by_twenty_four():
    crowded = view(
        env_id="my_package.environments:AWarehouseWithALongName-v0",
        run_dir="/a/very/long/path" * 12,
        bottleneck="word " * 36,
        sampler_busy=(0.5,) * 64,
        target_return=1e9,
        episodes=10**9,
        steps=10**12,
    )
    for lines in (rendered(view()), rendered(crowded)):
        assert len(lines) < 24
        assert all(len(line) <= 80 for line in lines)


def test_shows_what_it_must():
    text = "\n".join(rendered(view(target_return=475.0)))
    for part in ("25 %", "0:06 left", "mean 321.5, last 500, target 475", "50 k steps/s", "mean 0.98 max 1 of 1"):
        assert part in text
    assert "busy 93 %, waits 7 %" in text
    assert "busy 45 % (40 % to 50 %), wait 55 %" in text
    assert "The learner is the bottleneck" in text
    assert "runs/CartPole-v1-ppo-s1" in text


def test_progress_is_that_of_the_tighter_budget():
    assert view(limit_s=6.0).progress == 0.5  # 3 of 6 s, 100 k of 400 k steps
    assert view(limit_s=6.0).time_left_s == 3.0
    assert view(limit_s=60.0).time_left_s == 6.0  # 300 k steps at 50 k a second
    assert view(total_steps=None).progress is None
    assert view(sps=None).time_left_s is None


def test_a_moment_in_which_nothing_is_known_yet():
    bare = PanelView(env_id="X", algo="ppo", schedule="sync", seed=0, run_dir="runs/x", elapsed_s=0.0)
    assert "return mean" not in "\n".join(rendered(bare))
    assert "return -" in plain_line(bare)


def test_lines_come_every_few_seconds_and_at_the_end():
    stream, clock = io.StringIO(), HandClock()
    panel = Lines(stream, clock=clock, every_s=5.0)
    for second in range(1, 14):
        clock.time = float(second)
        panel.show(view(elapsed_s=float(second)))
    panel.close()
    assert [line.split()[1] for line in stream.getvalue().splitlines()] == ["0:05,", "0:10,", "0:13,"]


def test_kind_of_panel(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert isinstance(open_panel(stream=io.StringIO()), Lines)
    assert isinstance(open_panel(stream=Terminal(), quiet=True), Silence)
    live = open_panel(stream=Terminal())
    assert isinstance(live, LivePanel)
    live.close()
    monkeypatch.setenv("NO_COLOR", "1")
    assert isinstance(open_panel(stream=Terminal()), Lines)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_panel(stream=Terminal()), Lines)


def test_live_panel_draws_only_when_shown_and_has_no_thread(monkeypatch: pytest.MonkeyPatch):
    import threading

    monkeypatch.setenv("TERM", "xterm")
    stream, before = Terminal(), threading.active_count()
    panel = LivePanel(stream)
    assert threading.active_count() == before
    panel.show(view())
    assert "321.5" in stream.getvalue()
    panel.note("a [note] that stays")
    assert "a [note] that stays" in stream.getvalue()
    panel.close()
    assert stream.getvalue().endswith("\x1b[?25h")  # the cursor is back


def test_plain_lines_need_no_rich():
    code = "import sys; from penstock.metrics.panel import open_panel; open_panel(); sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=False).returncode == 0
