"""`penstock bench overlap`: reads its arguments, has things measured or read, shows them. Measures nothing itself."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from penstock.bench import machine
from penstock.bench.arguments import OneLine, number, once, say, show
from penstock.bench.overlap.cases import LAYOUTS, LEARNERS, SCHEDULES, SHARES, VARIANCES, Case
from penstock.core.errors import Refused, UnknownName

PPO_VARIANCE = 1.0


def overlap(arguments: Sequence[str]) -> int:
    """`penstock bench overlap`."""
    chosen = _parser().parse(arguments)
    picture = None if chosen.plot is None else Path(chosen.plot)
    from penstock.bench.overlap.plot import demand_plotting, draw
    from penstock.bench.overlap.tables import overlap_table

    if picture is not None:
        demand_plotting(picture)
    found = _measured(chosen) if chosen.show is None else _read(Path(chosen.show))
    show(found, overlap_table(found), as_json=chosen.json)
    if picture is not None:
        draw(found, picture)
        say(f"the picture is in {picture}")
    return 0


def _parser() -> OneLine:
    parser = OneLine(
        prog="penstock bench overlap",
        description="Sixteen environments that take 5 ms a step, more or less unevenly, and a learner that takes L: the classic"
        " loop, which waits for the slowest at every step, against every schedule; beside each what a simulation of the law"
        " gives for the same delays, and HTS-RL's formula. All of it takes some twenty minutes; progress on standard error.",
    )
    repeat = "repeatable"
    parser.add_argument(
        "--variance", action="append", metavar="V", help=f"of step time, mean 1; {repeat} (default: {_list(VARIANCES)})"
    )
    parser.add_argument(
        "--share", action="append", metavar="X", help=f"L as a share of collect time; {repeat} (default: {_list(SHARES)})"
    )
    parser.add_argument(
        "--learner",
        action="append",
        metavar="NAME",
        help=f"wait, which sleeps for L, or ppo, which really learns, at one variance; {repeat} (default: both)",
    )
    parser.add_argument("--schedule", action="append", metavar="S", help=f"{' or '.join(SCHEDULES)}; {repeat} (default: all)")
    parser.add_argument(
        "--layout",
        action="append",
        metavar="NAME",
        help=f"1x16, one block of 16 drifting lanes, or 16x1, sixteen blocks of one lane; {repeat} (default: both)",
    )
    parser.add_argument(
        "--rounds", default="1", metavar="N", help="runs of everybody, each with delays of its own (default: 1)"
    )
    parser.add_argument("--seconds", default="6", metavar="S", help="about how long a run is measured (default: 6)")
    parser.add_argument("--plot", metavar="FILE.png", help="draw the speed-ups (needs the extra sweep)")
    parser.add_argument("--show", metavar="FILE.json", help="measure nothing: show what --json printed then")
    parser.add_argument("--json", action="store_true", help="print one line of JSON; the table goes to standard error")
    return parser


def _list(numbers: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in numbers)


def _measured(chosen: argparse.Namespace) -> dict[str, Any]:
    from penstock.bench.overlap.measuring import Plan, measure

    plan = Plan(
        cases=_cases(chosen),
        schedules=tuple(_named("schedule", chosen.schedule, SCHEDULES)),  # type: ignore[arg-type]  # they are SCHEDULES
        layouts=tuple(LAYOUTS[name] for name in _named("layout", chosen.layout, LAYOUTS)),
        rounds=number("--rounds", chosen.rounds, int, least=1),
        seconds=number("--seconds", chosen.seconds, float, above=0),
    )
    described = machine.describe()
    machine.warn_if_busy(described)
    settings = {"rounds": plan.rounds, "seconds": plan.seconds}
    return {"bench": "overlap", "machine": described, "settings": settings, "rows": measure(plan, say)}


def _cases(chosen: argparse.Namespace) -> tuple[Case, ...]:
    """Timed learners of every variance and length; the real one at one variance."""
    from penstock.bench.overlap.delays import case_of

    variances = [number("--variance", text, float, above=0) for text in once(chosen.variance)] or list(VARIANCES)
    shares = [number("--share", text, float, least=0) for text in once(chosen.share)] or list(SHARES)
    learners = _named("learner", chosen.learner, LEARNERS)
    timed = [case_of(variance, share) for variance in variances for share in shares if "wait" in learners]
    real = PPO_VARIANCE if PPO_VARIANCE in variances else variances[0]
    return (*timed, *([case_of(real, None)] if "ppo" in learners else []))


def _named(kind: str, given: Sequence[str] | None, known: Collection[str]) -> list[str]:
    for name in given or ():
        if name not in known:
            raise UnknownName(kind, name, known)
    return once(given) or list(known)


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
    except (OSError, ValueError, IndexError) as error:
        raise Refused(f"--show {path}: {getattr(error, 'strerror', None) or 'it is no line of JSON'}") from error
    if not isinstance(found, dict) or found.get("bench") != "overlap":
        raise Refused(f"--show {path}: it does not hold what penstock bench overlap --json prints")
    return found
