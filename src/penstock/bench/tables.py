"""Results as tables for people. Takes the same plain data that --json prints; measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.bench.jobs import JOBS


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Rows as aligned text: the first column to the left, numbers to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def limits_table(report: dict[str, Any]) -> str:
    """Every part, then the limit of each job with its arithmetic."""
    rows = [["part, one thread", "a second", "quartiles", "µs each"]]
    for group, parts in report["parts"].items():
        prefix = "" if group == "machine" else f"{group}: "
        rows += [_part_row(prefix, part) for part in parts]
    limits = [_limit_text(limit) for limit in report["limits"].values()]
    return "\n\n".join([machine_line(report["machine"]), columns(rows), *limits])


def _part_row(prefix: str, part: dict[str, Any]) -> list[str]:
    spread = part["rate"]
    operations = part["unit"] == "operations"
    scale, unit = (1e-9, "GFLOP") if operations else (1.0, part["unit"])
    median, low, high = (f"{spread[name] * scale:,.0f}" for name in ("median", "low", "high"))
    each = "" if operations else f"{1e6 / spread['median']:.3f}"
    return [prefix + part["name"], f"{median} {unit}", f"{low} to {high}", each]


def _limit_text(limit: dict[str, Any]) -> str:
    env, inference, update = (f"{limit[name] * 1e6:.2f}" for name in ("env_s", "inference_s", "update_s"))
    per_core = limit["sps"] / limit["cores"]
    return "\n".join(
        [
            f"limit of {limit['job']} ({JOBS[limit['job']].env_id}): {limit['sps']:,.0f} steps/s",
            f"  = 1 / ({env} + {inference} + {limit['epochs']} x {update} µs) = {per_core:,.0f} a core"
            f" x {limit['cores']} cores",
            f"  environment and matrix products alone: {limit['products_sps']:,.0f} steps/s",
        ]
    )


def throughput_table(report: dict[str, Any]) -> str:
    """A row for every contender, then what the ratios mean."""
    rows = [["", "steps/s", "quartiles", "runs", "of the limit", "against the peer", "95 % interval"]]
    for result in report["results"]:
        spread, ratio = result["sps"], report["ratios"].get(result["name"])
        rows.append(
            [
                result["name"],
                f"{spread['median']:,.0f}",
                f"{spread['low']:,.0f} to {spread['high']:,.0f}",
                str(spread["samples"]),
                f"{result['fraction_of_limit']:.0%}",
                "" if ratio is None else f"{ratio['mean']:.2f}x",
                "" if ratio is None or ratio["low"] is None else f"{ratio['low']:.2f} to {ratio['high']:.2f}",
            ]
        )
    job = JOBS[report["job"]]
    what = f"{job.name} ({job.env_id}): steady training, medians of runs of {report['settings']['steps']:,} steps"
    notes = [f"limit of this machine: {report['limit_sps']:,.0f} steps/s (penstock bench limits --job {job.name})"]
    if report["best_peer"] is not None:
        notes.append(f"the peer, at its best here: {report['best_peer']}; ratios are means over alternating pairs")
    return "\n\n".join([machine_line(report["machine"]), what, columns(rows), "\n".join(notes)])


def machine_line(machine: dict[str, Any]) -> str:
    """On one line, what the figures were measured on."""
    commit = f", commit {machine['commit']}" if machine["commit"] else ""
    load = f", load before {machine['load_before']}" if machine["load_before"] is not None else ""
    return (
        f"{machine['cpu']}, {machine['cores']} cores, torch {machine['torch']}, Python {machine['python']},"
        f" penstock {machine['package']}{commit}{load}"
    )
