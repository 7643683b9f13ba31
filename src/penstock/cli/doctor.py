"""`penstock doctor`: is this machine ready, or is this environment? Knows how a table looks, not what is checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from penstock.cli.commands import Doctor
from penstock.cli.machine import every_check
from penstock.cli.train import environment_assignments
from penstock.config.building import build
from penstock.core.errors import Refused
from penstock.core.loading import load_object
from penstock.envs.making import EnvironmentMaker

WIDTH = 110


class Line(Protocol):
    """What a table shows in a line."""

    @property
    def what(self) -> str: ...

    @property
    def status(self) -> str: ...

    @property
    def found(self) -> str: ...

    @property
    def advice(self) -> str: ...


def carry_out(command: Doctor) -> int:
    """Print the table; 1 if something that a run needs is missing or broken."""
    if command.env is None and (command.env_arg or command.wrap):
        raise Refused("--env-arg and --wrap are for penstock doctor --env ENV; name the environment")
    lines, ready = (every_check(), "CartPole-v1") if command.env is None else (_examined(command), command.env)
    print("\n".join(table(lines, ready)))
    return 1 if any(line.status == "fail" for line in lines) else 0


def _examined(command: Doctor) -> Sequence[Line]:
    """The environment as `penstock train` would make it, preset included."""
    assert command.env is not None
    settings = build(command.env, assignments=environment_assignments(command.env_arg, command.wrap)).job.env
    examine: Callable[..., list[Any]] = load_object("penstock.envs.examination:examine")
    return examine(EnvironmentMaker.of(settings), settings)


def table(lines: Sequence[Line], ready: str = "CartPole-v1") -> list[str]:
    """A line each, its advice beside it, and the verdict."""
    rows = [text for line in lines for text in _shown(line)]
    failed = [line.what for line in lines if line.status == "fail"]
    verdict = f"Not ready: see {', '.join(failed)} above." if failed else f"Ready: penstock train {ready}"
    return [*rows, "", verdict]


def _shown(line: Line) -> list[str]:
    """In one line where it fits, else the advice under it."""
    found = f"{line.status:<5} {line.what:<16} {line.found}"
    if not line.advice:
        return [found]
    whole = f"{found}; {line.advice}"
    return [whole] if len(whole) <= WIDTH else [found, f"{'':<22} -> {line.advice}"]
