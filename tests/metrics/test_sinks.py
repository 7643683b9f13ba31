"""metrics.jsonl."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from penstock.metrics.sinks import JsonLines, Tee, strict_json


def refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is not JSON")


def test_what_json_has_no_word_for_is_null():
    line = strict_json({"nan": float("nan"), "most": float("inf"), "deep": [float("-inf")], "numpy": np.float32("nan")})
    assert json.loads(line, parse_constant=refuse) == {"nan": None, "most": None, "deep": [None], "numpy": None}


def test_numpy_numbers_are_plain():
    line = strict_json({"n": np.int64(3), "x": np.float64(0.5), "flags": np.array([True, False])})
    assert json.loads(line) == {"n": 3, "x": 0.5, "flags": [True, False]}


def test_what_is_no_number_is_a_mistake():
    with pytest.raises(TypeError, match="not object"):
        strict_json({"thing": object()})


def test_a_line_is_there_once_written(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    sink = JsonLines(path)
    sink.write({"version": 1})
    assert path.read_bytes() == b'{"version":1}\n'
    sink.close()


def test_goes_on_where_it_stopped(tmp_path: Path):
    path = tmp_path / "metrics.jsonl"
    for version in (1, 2):
        sink = JsonLines(path)
        sink.write({"version": version})
        sink.close()
    assert [json.loads(line)["version"] for line in path.read_text().splitlines()] == [1, 2]


def test_tee_writes_to_all(tmp_path: Path):
    tee = Tee([JsonLines(tmp_path / "a"), JsonLines(tmp_path / "b")])
    tee.write({"version": 7})
    tee.close()
    assert (tmp_path / "a").read_text() == (tmp_path / "b").read_text() == '{"version":7}\n'
