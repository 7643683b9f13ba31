"""`penstock bench SUB ...`: reads its arguments, has things measured, prints them. Measures nothing itself."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NoReturn, TypeVar

from penstock.bench import contenders, machine
from penstock.bench.jobs import JOBS, Job, find_job, penstock_settings
from penstock.bench.tables import limits_table, throughput_table
from penstock.bench.throughput import Contender, measure, report
from penstock.core.errors import MissingExtra, Refused, UnknownName

SCHEDULES = ("sync", "overlap", "async")
PEERS = ("sb3",)

_HELP = """usage: penstock bench SUB ...

This machine's limits, and how close we are. Run on a quiet machine: one thing is measured at a time.

  limits       the parts on one core, and the limit that follows for each job
  throughput   steady training throughput, as a fraction of the limit and against a peer

  penstock bench SUB --help     all about one of them"""


def main(arguments: Sequence[str]) -> int:
    """Carry out a bench command; returns the exit code."""
    name, *rest = arguments or ["--help"]
    if name in ("--help", "-h", "help"):
        print(_HELP)
        return 0
    if name not in _SUBCOMMANDS:
        raise UnknownName("bench", name, _SUBCOMMANDS, hint="(see penstock bench --help)")
    return _SUBCOMMANDS[name](rest)


def limits(arguments: Sequence[str]) -> int:
    """`penstock bench limits`."""
    parser = _OneLine(
        prog="penstock bench limits",
        description="Measure this machine's parts with frozen reference kernels, one thread each, and the limit of a job:"
        " 1 / (environment + inference + epochs x update) a core, times cores.",
    )
    parser.add_argument("--job", action="append", metavar="NAME", help=f"{' or '.join(JOBS)}; repeatable (default: all here)")
    parser.add_argument("--seconds", default="1", metavar="S", help="how long each part is measured (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON; the table goes to standard error")
    chosen = parser.parse(arguments)
    jobs = [find_job(name) for name in _once(chosen.job)] or _installed_jobs()
    seconds = _number("--seconds", chosen.seconds, float, above=0)
    from penstock.bench.limits import measure_limits

    found = measure_limits(jobs, seconds=seconds)
    _show(found, limits_table(found), as_json=chosen.json)
    return 0


def throughput(arguments: Sequence[str]) -> int:
    """`penstock bench throughput`."""
    chosen = _throughput_parser().parse(arguments)
    job = find_job(chosen.job)
    rounds = _number("--pairs", chosen.pairs, int, above=0)
    steps = job.steps if chosen.steps is None else _number("--steps", chosen.steps, int, above=0)
    entered = _contenders(chosen, job, steps)
    described = machine.describe()
    machine.warn_if_busy(described)
    limit = _limit_of(job)
    results = measure(entered, rounds, say=_say)
    settings = {"steps": steps, "rounds": rounds, "penstock": penstock_settings(job), "set": chosen.set or []}
    found = {
        "bench": "throughput",
        "job": job.name,
        "machine": described,
        "settings": {**settings, "workers": chosen.workers, "job": asdict(job)},
        **report(results, limit),
    }
    _show(found, throughput_table(found), as_json=chosen.json)
    return 0


_SUBCOMMANDS: dict[str, Callable[[Sequence[str]], int]] = {"limits": limits, "throughput": throughput}


def _throughput_parser() -> _OneLine:
    parser = _OneLine(
        prog="penstock bench throughput",
        description="Measure steady training throughput in child processes, from 20 % of a run to its end, one run at a time.",
    )
    parser.add_argument("--job", default="cartpole", metavar="NAME", help=f"{' or '.join(JOBS)} (default: cartpole)")
    parser.add_argument(
        "--schedule", action="append", metavar="S", help="sync, overlap or async; repeatable (default: overlap and async)"
    )
    parser.add_argument("--peer", metavar="NAME", help="measure this one too, in turns: sb3")
    parser.add_argument("--peer-python", metavar="PATH", help="the interpreter that has the peer (default: this one)")
    parser.add_argument(
        "--peer-threads",
        action="append",
        metavar="N",
        help="threads of the peer; repeatable, the best counts (default: 1 and 2)",
    )
    parser.add_argument("--pairs", default="5", metavar="N", help="runs of every contender (default: 5)")
    parser.add_argument("--steps", metavar="N", help="environment steps of a run (default: the job's)")
    parser.add_argument("--workers", metavar="N", help="sampler processes of penstock (default: its own)")
    parser.add_argument("--set", action="append", metavar="ROOM.KEY=VALUE", help="a setting for penstock train; repeatable")
    parser.add_argument("--json", action="store_true", help="print one line of JSON; the table goes to standard error")
    return parser


def _contenders(chosen: argparse.Namespace, job: Job, steps: int) -> list[Contender]:
    workers = None if chosen.workers is None else _number("--workers", chosen.workers, int, above=-1)
    schedules = _once(chosen.schedule) or ["overlap", "async"]
    for name in schedules:
        if name not in SCHEDULES:
            raise UnknownName("schedule", name, SCHEDULES)
    sets = tuple(chosen.set or ())
    ours = [contenders.Penstock(job, schedule, steps, sets, workers) for schedule in schedules]
    return [*ours, *_peers(chosen, job, steps)]


def _peers(chosen: argparse.Namespace, job: Job, steps: int) -> list[Contender]:
    if chosen.peer is None:
        if chosen.peer_python is not None or chosen.peer_threads is not None:
            raise Refused("--peer-python and --peer-threads say how to run a peer; add --peer sb3")
        return []
    if chosen.peer not in PEERS:
        raise UnknownName("peer", chosen.peer, PEERS)
    python = contenders.find_peer_python(chosen.peer_python)
    threads = [_number("--peer-threads", text, int, above=0) for text in _once(chosen.peer_threads) or ["1", "2"]]
    return [contenders.StableBaselines3(job, python, steps, count) for count in threads]


def _limit_of(job: Job) -> float:
    """Measured in a process of its own, before anything else runs."""
    _say(f"measuring the limit of {job.name}")
    command = [sys.executable, "-m", "penstock", "bench", "limits", "--job", job.name, "--json"]
    found, _ = contenders.last_json_line(command, "penstock bench limits")
    return float(found["limits"][job.name]["sps"])


def _installed_jobs() -> list[Job]:
    """All whose environments are here; what is left out is said."""
    for job in JOBS.values():
        if not job.installed() and job.extra is not None:
            _say(f"leaving out {job.name}: {MissingExtra('it', job.extra)}")
    return [job for job in JOBS.values() if job.installed()]


Number = TypeVar("Number", int, float)


def _number(flag: str, text: str, kind: type[Number], *, above: float) -> Number:
    """1e5 is a whole number of steps too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value <= above or (kind is int and not value.is_integer()):
        bound = f"{above + 1:g} or more" if kind is int else f"above {above:g}"
        raise Refused(f"{flag} is a {'whole ' if kind is int else ''}number, {bound}, not '{text}'")
    return kind(value)


def _once(given: Sequence[str] | None) -> list[str]:
    """What was given, each only once, in order."""
    return list(dict.fromkeys(given or ()))


def _show(found: dict[str, Any], table: str, *, as_json: bool) -> None:
    print(table, file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(json.dumps(found, allow_nan=False), flush=True)


def _say(text: str) -> None:
    print(f"penstock: {text}", file=sys.stderr, flush=True)


class _OneLine(argparse.ArgumentParser):
    """Refuses in one line and names the nearest flag, as every command of penstock does."""

    def __init__(self, *, prog: str, description: str) -> None:
        super().__init__(prog=prog, description=description, allow_abbrev=False)

    def parse(self, arguments: Sequence[str]) -> argparse.Namespace:
        known, unknown = self.parse_known_args(arguments)
        for text in unknown:
            if text.startswith("-"):
                flags = [flag for flag in self._option_string_actions if flag.startswith("--")]
                raise UnknownName(f"option of {self.prog}", text.partition("=")[0], flags)
            raise Refused(f"{self.prog} has no place for '{text}' (see {self.prog} --help)")
        return known

    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message} (see {self.prog} --help)")
