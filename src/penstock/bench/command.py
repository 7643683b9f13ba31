"""`penstock bench SUB ...`: reads its arguments, has things measured, prints them. Measures nothing itself."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict

from penstock.bench import contenders, machine
from penstock.bench.arguments import OneLine, number, once, say, show
from penstock.bench.jobs import JOBS, Job, find_job, penstock_settings
from penstock.bench.overlap.command import overlap
from penstock.bench.tables import limits_table, throughput_table
from penstock.bench.throughput import Contender, measure, report
from penstock.core.errors import MissingExtra, Refused, UnknownName

SCHEDULES = ("sync", "overlap", "async")
PEERS = ("sb3",)

_HELP = """usage: penstock bench SUB ...

This machine's limits, and how close we are. Run on a quiet machine: one thing is measured at a time.

  limits       the parts on one core, and the limit that follows for each job
  throughput   steady training throughput, as a fraction of the limit and against a peer
  overlap      what overlapping gains where environments take their time, beside what the law allows

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
    parser = OneLine(
        prog="penstock bench limits",
        description="Measure this machine's parts with frozen reference kernels, one thread each, and the limit of a job:"
        " 1 / (environment + inference + epochs x update) a core, times cores.",
    )
    parser.add_argument("--job", action="append", metavar="NAME", help=f"{' or '.join(JOBS)}; repeatable (default: all here)")
    parser.add_argument("--seconds", default="1", metavar="S", help="how long each part is measured (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one line of JSON; the table goes to standard error")
    chosen = parser.parse(arguments)
    jobs = [find_job(name) for name in once(chosen.job)] or _installed_jobs()
    seconds = number("--seconds", chosen.seconds, float, above=0)
    from penstock.bench.limits import measure_limits

    found = measure_limits(jobs, seconds=seconds)
    show(found, limits_table(found), as_json=chosen.json)
    return 0


def throughput(arguments: Sequence[str]) -> int:
    """`penstock bench throughput`."""
    chosen = _throughput_parser().parse(arguments)
    job = find_job(chosen.job)
    rounds = number("--pairs", chosen.pairs, int, least=1)
    steps = job.steps if chosen.steps is None else number("--steps", chosen.steps, int, least=1)
    entered = _contenders(chosen, job, steps)
    described = machine.describe()
    machine.warn_if_busy(described)
    limit = _limit_of(job)
    results = measure(entered, rounds, say=say)
    settings = {"steps": steps, "rounds": rounds, "penstock": penstock_settings(job), "set": chosen.set or []}
    found = {
        "bench": "throughput",
        "job": job.name,
        "machine": described,
        "settings": {**settings, "workers": chosen.workers, "job": asdict(job)},
        **report(results, limit),
    }
    show(found, throughput_table(found), as_json=chosen.json)
    return 0


_SUBCOMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "limits": limits,
    "throughput": throughput,
    "overlap": overlap,
}


def _throughput_parser() -> OneLine:
    parser = OneLine(
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
    workers = None if chosen.workers is None else number("--workers", chosen.workers, int, least=0)
    schedules = once(chosen.schedule) or ["overlap", "async"]
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
    threads = [number("--peer-threads", text, int, least=1) for text in once(chosen.peer_threads) or ["1", "2"]]
    return [contenders.StableBaselines3(job, python, steps, count) for count in threads]


def _limit_of(job: Job) -> float:
    """Measured in a process of its own, before anything else runs."""
    say(f"measuring the limit of {job.name}")
    command = [sys.executable, "-m", "penstock", "bench", "limits", "--job", job.name, "--json"]
    found, _ = contenders.last_json_line(command, "penstock bench limits")
    return float(found["limits"][job.name]["sps"])


def _installed_jobs() -> list[Job]:
    """All whose environments are here; what is left out is said."""
    for job in JOBS.values():
        if not job.installed() and job.extra is not None:
            say(f"leaving out {job.name}: {MissingExtra('it', job.extra)}")
    return [job for job in JOBS.values() if job.installed()]
