"""Values as written, against types."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.config.values import checked, described
from penstock.core.errors import Refused


@pytest.mark.parametrize(
    ("text", "expected", "value"),
    [
        ("1e6", int, 1_000_000),
        ("100_000", int, 100_000),
        ("3", float, 3.0),
        ("1e-3", float, 1e-3),
        ("none", float | None, None),
        ("None", int | None, None),
        ("none", str, "none"),
        ("True", bool, True),
        ("false", bool, False),
        ("64,64", tuple[int, ...], (64, 64)),
        ("[64, 64]", tuple[int, ...], (64, 64)),
        ("256", tuple[int, ...], (256,)),
        ("tanh", Literal["tanh", "relu"], "tanh"),
        ("123", str, "123"),
        ("a:b", str | None, "a:b"),
        ('{gravity = 9.8, name = "x"}', dict[str, Any], {"gravity": 9.8, "name": "x"}),
        ("9.8", Any, 9.8),
        ("hello world", Any, "hello world"),
    ],
)
def test_text_is_read_as_its_setting_needs(text: str, expected: Any, value: Any):
    found = checked("x", text, expected, is_text=True)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "expected", "words"),
    [
        ("abc", int, "a whole number"),
        ("1.5", int, "a whole number"),
        ("true", int, "a whole number"),
        ("1", bool, "true or false"),
        ("x", float | None, "a number or none"),
        ("asink", Literal["sync", "async"], "one of sync, async"),
        ("a,b", tuple[int, ...], "a list, each a whole number"),
        ("3", dict[str, Any], "a table of values"),
        ("1\nother = 2", int, "a whole number"),
    ],
)
def test_refusal_names_key_value_and_type(text: str, expected: Any, words: str):
    with pytest.raises(Refused) as refusal:
        checked("room.key", text, expected, is_text=True)
    assert str(refusal.value) == f"room.key='{text}': expected {words}"


def test_programs_pass_typed_values():
    assert checked("x", 1e6, int) == 1_000_000
    assert checked("x", np.float32(0.5), float) == 0.5
    assert checked("x", np.int64(3), int) == 3
    assert checked("x", [64, 64], tuple[int, ...]) == (64, 64)
    with pytest.raises(Refused, match=r"x='3': expected a whole number"):
        checked("x", "3", int)
    with pytest.raises(Refused, match="x=True: expected a number"):
        checked("x", True, float)


def test_a_table_must_survive_a_file():
    assert checked("envs.arguments", {"a": [1, {"b": "c"}]}, dict[str, Any]) == {"a": [1, {"b": "c"}]}
    for entry in (None, [None], {"deep": None}, print):
        with pytest.raises(Refused, match=r"envs\.arguments\.a=.*config\.toml cannot hold that"):
            checked("envs.arguments", {"a": entry}, dict[str, Any])


@given(st.floats(allow_nan=False))
def test_a_number_printed_is_the_same_number(number: float):
    assert checked("x", repr(number), float, is_text=True) == number


@given(st.text())
def test_any_text_is_a_text_or_refused_in_one_line(text: str):
    assert checked("x", text, str, is_text=True) == text
    assert described(dict[str, int]) == "a table of values"
