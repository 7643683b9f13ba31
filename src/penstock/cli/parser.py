"""From a command, a frozen dataclass, to the parser of its arguments. Knows flags, not what any of them is for.

argparse does the work; this module derives it from the fields and makes each of its errors one line that names the nearest
flag. Values stay text here: the settings that they become know their own types.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import Field, field, fields
from typing import Any, ClassVar, NoReturn, Protocol, TypeVar

from penstock.core.errors import Refused, UnknownName


class Command(Protocol):
    """Any of the dataclasses of `commands.py`."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


Chosen = TypeVar("Chosen", bound=Command)


def positional(metavar: str, help: str) -> Any:
    """An argument without a flag, which may be left out."""
    return field(default=None, metadata={"help": help, "metavar": metavar, "positional": True})


def option(metavar: str, help: str, *, sets: str | None = None) -> Any:
    """A flag with a value. `sets`: the setting that it is short for."""
    return field(default=None, metadata={"help": help, "metavar": metavar, "sets": sets})


def repeated(metavar: str, help: str) -> Any:
    """A flag with a value that may be given several times."""
    return field(default=(), metadata={"help": help, "metavar": metavar, "repeated": True})


def switch(help: str) -> Any:
    """A flag without a value."""
    return field(default=False, metadata={"help": help, "switch": True})


def parse(command: type[Chosen], name: str, arguments: Sequence[str]) -> Chosen:
    """The command with these arguments; `--help` prints and leaves."""
    parser = _parser(command, name)
    known, unknown = parser.parse_known_args(_negatives_bound(arguments))
    if unknown:
        _refuse_unknown(command, name, unknown)
    values = vars(known)
    return command(**{key: tuple(value) if isinstance(value, list) else value for key, value in values.items()})


def _negatives_bound(arguments: Sequence[str]) -> list[str]:
    """`--until-return -1e2` as `--until-return=-1e2`: argparse takes only some negative numbers for values."""
    bound: list[str] = []
    for argument in arguments:
        if bound and bound[-1].startswith("--") and "=" not in bound[-1] and _is_negative_number(argument):
            bound[-1] += f"={argument}"
        else:
            bound.append(argument)
    return bound


def _is_negative_number(text: str) -> bool:
    try:
        return float(text) < 0 or text == "-0"
    except ValueError:
        return False


def flag(entry: Field[Any]) -> str:
    """`until_return` is given as `--until-return`."""
    return "--" + entry.name.replace("_", "-")


class _OneLine(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(f"{message} (see {self.prog} --help)")


def _parser(command: type[Command], name: str) -> argparse.ArgumentParser:
    parser = _OneLine(prog=f"penstock {name}", description=command.__doc__, allow_abbrev=False)
    for entry in fields(command):
        about = entry.metadata
        if about.get("positional"):
            parser.add_argument(entry.name, nargs="?", metavar=about["metavar"], help=about["help"])
        elif about.get("switch"):
            parser.add_argument(flag(entry), dest=entry.name, action="store_true", help=about["help"])
        elif about.get("repeated"):
            parser.add_argument(
                flag(entry), dest=entry.name, action="append", default=[], metavar=about["metavar"], help=about["help"]
            )
        else:
            parser.add_argument(flag(entry), dest=entry.name, metavar=about["metavar"], help=about["help"])
    return parser


def _refuse_unknown(command: type[Command], name: str, unknown: Sequence[str]) -> NoReturn:
    flags = [argument.partition("=")[0] for argument in unknown if argument.startswith("-")]
    if flags:
        known = [flag(entry) for entry in fields(command) if not entry.metadata.get("positional")]
        raise UnknownName(f"option of penstock {name}", flags[0], known)
    raise Refused(f"penstock {name} has no place for '{unknown[0]}' (see penstock {name} --help)")
