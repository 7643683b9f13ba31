"""What subcommands of `penstock bench` share: arguments refused in one line, progress, tables, JSON. Measures nothing."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TypeVar

from penstock.core.errors import Refused, UnknownName

Number = TypeVar("Number", int, float)


def number(flag: str, text: str, kind: type[Number], *, above: float | None = None, least: float | None = None) -> Number:
    """1e5 is a whole number of steps too."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    too_small = (above is not None and value <= above) or (least is not None and value < least)
    if not math.isfinite(value) or too_small or (kind is int and not value.is_integer()):
        bound = f"{least:g} or more" if least is not None else f"above {above:g}"
        raise Refused(f"{flag} is a {'whole ' if kind is int else ''}number, {bound}, not '{text}'")
    return kind(value)


def once(given: Sequence[str] | None) -> list[str]:
    """What was given, each only once, in order."""
    return list(dict.fromkeys(given or ()))


def show(found: dict[str, Any], table: str, *, as_json: bool) -> None:
    """The table for people; with --json it makes room on standard output for one line for programs."""
    print(table, file=sys.stderr if as_json else sys.stdout, flush=True)
    if as_json:
        print(json.dumps(found, allow_nan=False), flush=True)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(f"penstock: {text}", file=sys.stderr, flush=True)


class OneLine(argparse.ArgumentParser):
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
