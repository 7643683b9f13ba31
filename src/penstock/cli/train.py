"""`penstock train`. Turns flags into one job, hands it to the run, prints how it ended. Knows nothing of training."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import psutil

from penstock.api import request_of
from penstock.cli.apart import set_apart
from penstock.cli.commands import Train
from penstock.cli.parser import flag
from penstock.cli.summary import as_json, as_text
from penstock.config.building import Built, build, resumed
from penstock.config.files import from_toml
from penstock.config.values import Assignment
from penstock.core.errors import Refused
from penstock.run.directory import finished_summary
from penstock.run.training import Request, train


def carry_out(command: Train) -> int:
    """Train, and print the summary."""
    built = built_from(command)
    if command.resume is not None:
        summary = finished_summary(Path(command.resume))
        _refuse_to_go_on(Path(command.resume), built, summary)
        report(summary, json=command.json, quiet=command.quiet, run=command.resume)
        return 0
    request = request_of(
        built,
        out=None if command.out is None else Path(command.out),
        init_from=None if command.init_from is None else Path(command.init_from),
        quiet=command.quiet,
        started_s=process_start_s(),
    )
    with set_apart(command.json):
        outcome = train(request)
    report(outcome.summary, json=command.json, quiet=command.quiet, run=_shown(request, outcome.run_dir))
    if outcome.error is not None:
        raise outcome.error
    return outcome.exit_code


def _refuse_to_go_on(run_dir: Path, built: Built, summary: dict[str, Any]) -> None:
    """A finished run does not go on; whoever lifts the limit that ended it must not take the old summary for an answer."""
    reason, done = summary["stop_reason"], summary.get("env_steps") or 0
    asked, before = built.job.run, from_toml(run_dir / "config.toml").run
    lifted = {
        "steps": asked.steps > max(done, before.steps),
        "minutes": _limit(asked.minutes) > _limit(before.minutes),
        "return": _limit(asked.until_return) > _limit(before.until_return),
    }
    if lifted[reason]:
        raise Refused(
            f"{run_dir} has finished ({reason}, {done:,} steps), and this version cannot go on with it; "
            f"start a new run from its weights: --init-from {run_dir}"
        )


def _limit(setting: float | None) -> float:
    return math.inf if setting is None else setting


def process_start_s() -> float:
    """When this process began, on the monotonic clock: what the interpreter's start took counts.

    The kernel keeps it in ticks since boot; psutil would go through the wall clock and be off by up to a second.
    """
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    except OSError:
        return time.monotonic() - (time.time() - psutil.Process().create_time())
    age_s = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    return time.monotonic() - age_s


def _shown(request: Request, path: Path) -> str:
    """As it was named, which is as it can be typed again: relative to where the run was started, unless that was not asked."""
    absolute = request.out is not None and request.out.is_absolute()
    return str(path if absolute or not path.is_relative_to(request.here) else path.relative_to(request.here))


def report(summary: dict[str, Any], *, json: bool, quiet: bool, run: str) -> None:
    """The summary in words on standard output, or as its last line in JSON with the words on standard error. `run`: its
    directory, as a person names it."""
    if not quiet:
        print(as_text({**summary, "run_dir": run}), file=sys.stderr if json else sys.stdout, flush=True)
    if json:
        print(as_json(summary), flush=True)


def built_from(command: Train) -> Built:
    """The job that these flags ask for; refuses what contradicts itself."""
    if command.resume is not None:
        _refuse_with_resume(command)
        return resumed(Path(command.resume), assignments(command))
    if command.env is None:
        raise Refused("penstock train needs an environment, such as CartPole-v1, or --resume RUN")
    return build(command.env, algo=command.algo, preset=command.preset, assignments=assignments(command))


def assignments(command: Train) -> list[Assignment]:
    """Every --set in order, then the flags that are short for a setting: the shorter form is the more deliberate one."""
    found = [_split(text, "--set", "room.key=value") for text in command.set]
    found += environment_assignments(command.env_arg, command.wrap)
    for entry in fields(command):
        setting, value = entry.metadata.get("sets"), getattr(command, entry.name)
        if setting is not None and value is not None:
            found.append(Assignment(setting, value, is_text=True))
    return found


def environment_assignments(arguments: Sequence[str], wrappers: Sequence[str]) -> list[Assignment]:
    """What --env-arg and --wrap say."""
    found = []
    for text in arguments:
        argument = _split(text, "--env-arg", "key=value")
        found.append(Assignment(f"envs.arguments.{argument.key}", argument.value, is_text=True))
    if wrappers:
        found.append(Assignment("envs.wrappers", list(wrappers)))
    return found


def _split(text: str, given_as: str, form: str) -> Assignment:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise Refused(f"{given_as} {text} is not of the form {form}")
    return Assignment(key.strip(), value, is_text=True)


def _refuse_with_resume(command: Train) -> None:
    """A resumed run brings its own settings; what would fix them anew contradicts it."""
    if command.env is not None:
        raise Refused(f"--resume {command.resume} brings its own environment; leave out '{command.env}'")
    for entry in fields(command):
        if entry.name in ("algo", "preset", "out", "init_from") and getattr(command, entry.name) is not None:
            raise Refused(f"--resume {command.resume} brings its own settings; leave out {flag(entry)}")
