"""A value, as a person wrote it or as a program passed it, checked against its setting's type. Knows no setting by name."""

from __future__ import annotations

import math
import tomllib
import types
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from penstock.core.errors import Refused

NONE = "none"
"""How a person writes that an optional setting has no value; TOML has no word for it."""


@dataclass(frozen=True, slots=True)
class Assignment:
    """`key` shall be `value`. Text that came from a command line or stands for none in a file is still to be read."""

    key: str
    value: Any
    is_text: bool = False


def checked(name: str, value: Any, expected: Any, *, is_text: bool = False) -> Any:
    """The value in the setting's own type; refuses, in one line, what is of another."""
    candidates = _readings(value, expected) if is_text else [value, *_whole(value)]
    for candidate in candidates:
        try:
            fitted = msgspec.convert(_plain(candidate), expected)
        except msgspec.ValidationError:
            continue
        _refuse_what_no_file_holds(name, fitted)
        if isinstance(fitted, float) and math.isnan(fitted):
            raise Refused(f"{name}={_shown(value, is_text)}: expected {described(expected)}, not NaN")
        return fitted
    raise Refused(f"{name}={_shown(value, is_text)}: expected {described(expected)}")


def _refuse_what_no_file_holds(name: str, value: Any) -> None:
    """A table of a person's own values must survive config.toml, or a resumed run would be another."""
    if not isinstance(value, dict):
        return
    for key, entry in value.items():
        if not _is_toml(entry):
            raise Refused(f"{name}.{key}={entry!r}: config.toml cannot hold that; make the environment in a function instead")


def _is_toml(value: Any) -> bool:
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_toml(entry) for key, entry in value.items())
    if isinstance(value, list | tuple):
        return all(_is_toml(entry) for entry in value)
    return isinstance(value, bool | int | float | str)


def _readings(text: str, expected: Any) -> list[Any]:
    """What a text may mean to a setting of this type, likeliest first."""
    stripped = text.strip()
    readings: list[Any] = []
    if stripped.lower() == NONE and _admits(expected, types.NoneType):
        readings.append(None)
    if stripped.lower() in ("true", "false"):
        readings.append(stripped.lower() == "true")
    if (as_toml := _toml(stripped)) is not None:
        readings += [as_toml, *_whole(as_toml)]
    if (as_list := _toml(f"[{stripped}]")) is not None:
        readings.append(as_list)  # 64,64
    return [*readings, text]


def _whole(value: Any) -> list[int]:
    """1e6 steps are a whole number of steps, even though 1e6 is written as a fraction would be. Past 2**53 a fraction no
    longer says which whole number is meant."""
    return [int(value)] if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53 else []


def _toml(text: str) -> Any:
    if "\n" in text:
        return None  # several lines could smuggle in several settings
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, KeyError):
        return None


def _plain(value: Any) -> Any:
    """NumPy's scalars, which programs pass without meaning to, as Python's."""
    return value.item() if hasattr(value, "item") and hasattr(value, "dtype") and value.ndim == 0 else value


def _shown(value: Any, is_text: bool) -> str:
    return f"'{value}'" if is_text else repr(value)


def _admits(expected: Any, member: type) -> bool:
    return member in get_args(expected) if _is_union(expected) else expected is member


def _is_union(expected: Any) -> bool:
    return get_origin(expected) in (Union, types.UnionType)


_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    types.NoneType: NONE,
}


def described(expected: Any) -> str:
    """A type in words."""
    if _is_union(expected):
        return " or ".join(described(member) for member in get_args(expected))
    origin, arguments = get_origin(expected), get_args(expected)
    if origin is Literal:
        return f"one of {', '.join(map(str, arguments))}"
    if origin is tuple:
        return f"a list, each {described(arguments[0])}"
    if origin is dict:
        return "a table of values"
    return _WORDS.get(expected, str(expected))
