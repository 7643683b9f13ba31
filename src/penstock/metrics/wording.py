"""Numbers and durations as a person reads them. Pure functions of numbers; nothing here knows what is counted."""

from __future__ import annotations

import math

MISSING = "-"
_SCALES = ((1e9, " G"), (1e6, " M"), (1e3, " k"))


def short_count(number: float | None) -> str:
    """1234567 is "1.23 M"; below a thousand the number itself."""
    if number is None or not math.isfinite(number):
        return MISSING
    for scale, suffix in _SCALES:
        if abs(number) >= 0.9995 * scale:  # what would round to 1000 of the scale below
            return f"{number / scale:.3g}{suffix}"
    return f"{number:.0f}"


def short_number(number: float | None) -> str:
    """A return or a loss in a few characters."""
    if number is None or not math.isfinite(number):
        return MISSING
    return f"{number:,.0f}" if abs(number) >= 10_000 else f"{number:.4g}"


def duration(seconds: float | None) -> str:
    """65 is "1:05"; an hour and more is "1:01:05"."""
    if seconds is None or not math.isfinite(seconds):
        return MISSING
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02d}:{second:02d}" if hours else f"{minute}:{second:02d}"


def percent(share: float | None) -> str:
    """0.824 is "82 %"."""
    return MISSING if share is None or not math.isfinite(share) else f"{100 * share:.0f} %"
