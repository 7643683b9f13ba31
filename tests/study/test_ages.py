"""A run counts only if every sample had exactly the age that was asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kept_runs import records

from penstock.study.ages import age_due, inexact


def test_the_age_due_is_the_version_until_k():
    assert [age_due(version, 3) for version in range(6)] == [0, 1, 2, 3, 3, 3]
    assert [age_due(version, 0) for version in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("staleness", [0, 1, 2, 8])
def test_an_exact_run_passes(staleness):
    assert inexact(records(12, staleness), staleness) is None


def younger(made: list[dict[str, Any]]) -> None:
    made[5]["staleness_histogram"] = [0, 1, 9]


def all_younger(made: list[dict[str, Any]]) -> None:
    made[1]["staleness_histogram"] = [10, 0, 0]


def older(made: list[dict[str, Any]]) -> None:
    made[4]["staleness_histogram"] = [0, 0, 0, 10]


def unaccounted(made: list[dict[str, Any]]) -> None:
    made[3]["staleness_histogram"] = [0, 0, 9]


def missing(made: list[dict[str, Any]]) -> None:
    del made[2]


@pytest.mark.parametrize(
    ("doctor", "message"),
    [
        (younger, "the batch trained at version 5 has samples 1 of age 1, where 2 is due"),
        (all_younger, "the batch trained at version 1 has samples 10 of age 0, where 1 is due"),
        (older, "the batch trained at version 4 has samples 10 of age 3, where 2 is due"),
        (unaccounted, "the batch trained at version 3 has 9 samples of known age, and 10 were trained"),
        (missing, "the record of version 3 is missing"),
        (list.clear, "no batch was trained"),
    ],
)
def test_a_doctored_histogram_is_found(doctor: Callable[[Any], None], message: str):
    made = records(8, 2)
    assert inexact(made, 2) is None
    doctor(made)
    assert inexact(made, 2) == message


def test_a_run_of_another_k_is_found():
    assert inexact(records(8, 1), 2) == "the batch trained at version 2 has samples 10 of age 1, where 2 is due"
    assert inexact(records(8, 2), 1) == "the batch trained at version 2 has samples 10 of age 2, where 1 is due"
