"""The end of a run in a few lines, for people and for programs. Knows the summary's keys, not how they came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from penstock.metrics.sinks import strict_json
from penstock.metrics.wording import MISSING, duration, short_count, short_number


def as_json(summary: Mapping[str, Any]) -> str:
    """One line of strict JSON."""
    return strict_json(summary).decode()


def as_text(summary: Mapping[str, Any]) -> str:
    """What a person wants to know at the end; the path of the run comes last, where the eye is."""
    rows = (
        ("return", _spread(summary, "return_mean", "return_std", "episodes", "the last 100 training episodes")),
        ("evaluation", _spread(summary, "eval_return_mean", "eval_return_std", "eval_episodes", "evaluation")),
        ("solved", _solved(summary)),
        ("steps", f"{summary['env_steps']:,} trained on, in {summary['version']:,} batches"),
        ("speed", f"{short_count(summary.get('sps'))} steps/s, {duration(summary.get('wall_s'))} in all"),
        ("staleness", _staleness(summary)),
        ("digest", summary.get("digest")),
        ("bottleneck", summary.get("bottleneck")),
        ("stopped by", summary.get("stop_reason")),
        ("run", summary.get("run_dir")),
    )
    return "\n".join(f"{name:<11} {content}" for name, content in rows if content is not None)


def _spread(summary: Mapping[str, Any], mean: str, std: str, count: str, of: str) -> str | None:
    if summary.get(mean) is None:
        return None
    return f"{short_number(summary[mean])} ± {short_number(summary.get(std))} ({of}; {short_count(summary.get(count))} in all)"


def _solved(summary: Mapping[str, Any]) -> str | None:
    if summary.get("solved_at_steps") is None:
        return None
    return f"after {short_count(summary['solved_at_steps'])} steps, {short_number(summary.get('solved_at_s'))} s"


def _staleness(summary: Mapping[str, Any]) -> str:
    mean = summary.get("staleness_mean")
    most = summary.get("staleness_max")
    return (
        f"mean {MISSING if mean is None else format(mean, '.2f')}, max {MISSING if most is None else most} "
        f"of {summary.get('staleness_bound', MISSING)} allowed"
    )
