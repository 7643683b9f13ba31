"""What can be chosen, and what choosing it costs at start-up."""

from __future__ import annotations

import subprocess
import sys

import pytest

from penstock.core.errors import Refused
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.envs.opening import choose_parallel, choose_stepping
from penstock.envs.probing import Probe
from penstock.envs.settings import EnvSettings

SPEC = EnvironmentSpec("Some-v0", BoxSpec((1,), "float32", (0,), (1,)), DiscreteSpec(2))


def test_settings_import_no_environment_library() -> None:
    script = "import sys, penstock.envs.settings; print('gymnasium' in sys.modules, 'numpy' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert told.split() == ["False", "False"]


@pytest.mark.parametrize(("n_envs", "n_blocks", "lanes"), [(8, 4, 2), (5, 1, 5), (3, 3, 1)])
def test_lanes_per_block(n_envs: int, n_blocks: int, lanes: int) -> None:
    assert EnvSettings(n_envs=n_envs, n_blocks=n_blocks).lanes_per_block == lanes


@pytest.mark.parametrize(
    ("n_envs", "n_blocks", "advice"), [(10, 4, "take 8 or 12"), (3, 4, "take 4$"), (0, 4, "1 or more"), (4, 0, "1 or")]
)
def test_numbers_that_do_not_divide_are_refused_with_the_nearest_that_do(n_envs: int, n_blocks: int, advice: str) -> None:
    with pytest.raises(Refused, match=advice):
        _ = EnvSettings(n_envs=n_envs, n_blocks=n_blocks).lanes_per_block


@pytest.mark.parametrize(
    ("asked", "vector", "step_s", "chosen"),
    [
        ("auto", True, 0.1, "vector"),
        ("auto", False, 0.0001, "serial"),
        ("auto", False, 0.005, "threads"),
        ("processes", True, 0.0001, "processes"),
        ("serial", True, 0.1, "serial"),
        ("vector", True, 0.1, "vector"),
    ],
)
def test_choice_of_parallel(asked: object, vector: bool, step_s: float, chosen: str) -> None:
    settings = EnvSettings(parallel=asked)  # type: ignore[arg-type] # parametrised
    assert choose_parallel(settings, Probe(SPEC, vector, step_s)) == chosen


def test_a_vector_form_that_is_not_there_is_refused() -> None:
    with pytest.raises(Refused, match="no vector form"):
        choose_parallel(EnvSettings(parallel="vector"), Probe(SPEC, False, 0.1))


def test_choice_of_stepping() -> None:
    chosen = {kind: choose_stepping(EnvSettings(), kind) for kind in ("vector", "serial", "threads", "processes")}  # type: ignore[arg-type] # a loop
    assert chosen == {"vector": "together", "serial": "together", "threads": "drift", "processes": "drift"}
    assert choose_stepping(EnvSettings(stepping="drift"), "serial") == "drift"
    assert choose_stepping(EnvSettings(stepping="together"), "threads") == "together"
