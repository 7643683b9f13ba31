"""V-trace against its definition as a sum, against arithmetic by hand, and against what it must reduce to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.losses.returns import generalized_advantages
from penstock.losses.vtrace import vtrace

GAMMA, LAMBDA = 0.9, 0.8


def random_case(seed: int, steps: int = 9, lanes: int = 5) -> dict[str, np.ndarray]:
    """Rows with ends of both kinds, each followed by a reset row, and lanes that were cut."""
    random = np.random.default_rng(seed)
    shape = (steps, lanes)
    ended = random.random(shape) < 0.25
    valid = np.ones(shape, bool)
    for t in range(1, steps):
        valid[t] = ~(ended[t - 1] & valid[t - 1])
    valid[random.integers(2, steps + 1) :, 0] = False
    ended &= valid
    truncated = ended & (random.random(shape) < 0.5)
    value = random.normal(size=(steps + 1, lanes))
    return {
        "reward": random.normal(size=shape),
        "v_t": value[:-1],
        "v_tp1": value[1:],
        "log_rho": random.normal(0, 0.7, shape),
        "terminated": ended & ~truncated,
        "truncated": truncated,
        "valid": valid,
    }


def by_definition(case: dict[str, np.ndarray], rho_bar: float, c_bar: float) -> tuple[np.ndarray, np.ndarray]:
    """Equation 1 of the paper as it stands, a lane and a step at a time; lambda as its section 4.1's remark 2 has it."""
    advantage, target = np.zeros_like(case["reward"]), case["v_t"].copy()
    steps, lanes = case["reward"].shape
    for lane in range(lanes):
        rows = {name: array[:, lane] for name, array in case.items()}
        rho = np.minimum(np.exp(rows["log_rho"]), rho_bar)
        c = LAMBDA * np.minimum(np.exp(rows["log_rho"]), c_bar)
        follows = np.where(rows["terminated"], 0.0, rows["v_tp1"])

        def goes_on(t: int, rows: dict[str, Any] = rows) -> bool:
            return not (rows["terminated"][t] or rows["truncated"][t]) and t + 1 < steps and rows["valid"][t + 1]

        def corrected(s: int, rows: dict[str, Any] = rows, rho: Any = rho, c: Any = c, follows: Any = follows) -> float:
            total, weight, t = 0.0, 1.0, s
            while True:
                total += weight * rho[t] * (rows["reward"][t] + GAMMA * follows[t] - rows["v_t"][t])
                if not goes_on(t, rows):
                    return float(rows["v_t"][s] + total)
                weight *= GAMMA * c[t]
                t += 1

        for t in range(steps):
            if not rows["valid"][t]:
                continue
            target[t, lane] = corrected(t)
            ahead = follows[t]
            if goes_on(t):
                ahead = LAMBDA * corrected(t + 1) + (1 - LAMBDA) * rows["v_tp1"][t]
            advantage[t, lane] = rho[t] * (rows["reward"][t] + GAMMA * ahead - rows["v_t"][t])
    return advantage, target


@pytest.mark.parametrize("bars", [(1.0, 1.0), (2.0, 0.5), (np.inf, np.inf)])
@pytest.mark.parametrize("seed", range(5))
def test_is_the_papers_sum(seed: int, bars: tuple[float, float]) -> None:
    case = random_case(seed)
    advantage, target = vtrace(**case, gamma=GAMMA, gae_lambda=LAMBDA, rho_bar=bars[0], c_bar=bars[1])
    expected_advantage, expected_target = by_definition(case, *bars)
    np.testing.assert_allclose(advantage, expected_advantage, atol=1e-12)
    np.testing.assert_allclose(target[case["valid"]], expected_target[case["valid"]], atol=1e-12)


def test_by_hand() -> None:
    """Two steps of one lane, gamma 0.5, lambda 1; ratios 2 (cut to 1) and 1/2.

    delta_1 = 0.5 (3 + 0.5 * 4 - 2) = 1.5                      E_1 = 1.5,  target 3.5
    delta_0 = 1 (1 + 0.5 * 2 - 1) = 1,  E_0 = 1 + 0.5 * 1 * 1.5 = 1.75,    target 2.75
    A_1 = 0.5 (3 + 0.5 * 4 - 2) = 1.5,  A_0 = 1 (1 + 0.5 * 3.5 - 1) = 1.75
    """
    column = {name: np.array(rows)[:, None] for name, rows in {"reward": [1.0, 3.0], "v_t": [1.0, 2.0]}.items()}
    flags = {name: np.zeros((2, 1), bool) for name in ("terminated", "truncated")}
    rest = {"v_tp1": np.array([[2.0], [4.0]]), "log_rho": np.log([[2.0], [0.5]]), "valid": np.ones((2, 1), bool)}
    advantage, target = vtrace(**column, **rest, **flags, gamma=0.5, gae_lambda=1.0, rho_bar=1.0, c_bar=1.0)
    assert advantage.ravel().tolist() == pytest.approx([1.75, 1.5])
    assert target.ravel().tolist() == pytest.approx([2.75, 3.5])


@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0, 1))
def test_on_policy_it_is_generalized_advantage_estimation(seed: int, gamma: float, gae_lambda: float) -> None:
    case = random_case(seed)
    case["log_rho"] = np.zeros_like(case["reward"])
    advantage, target = vtrace(**case, gamma=gamma, gae_lambda=gae_lambda, rho_bar=1.0, c_bar=1.0)
    del case["log_rho"]
    expected = generalized_advantages(**case, gamma=gamma, gae_lambda=gae_lambda)
    np.testing.assert_allclose(advantage, expected, atol=1e-9)
    np.testing.assert_allclose(target, case["v_t"] + expected, atol=1e-9)


@given(st.integers(0, 10_000))
def test_rows_that_are_no_data_change_nothing(seed: int) -> None:
    case = random_case(seed)
    bars = {"gamma": GAMMA, "gae_lambda": LAMBDA, "rho_bar": 1.0, "c_bar": 1.0}
    first, _ = vtrace(**case, **bars)
    for name in ("reward", "log_rho"):
        case[name] = np.where(case["valid"], case[name], np.nan if name == "reward" else 1e9)
    again, _ = vtrace(**case, **bars)
    assert np.array_equal(first, again)
    assert (again[~case["valid"]] == 0).all()


def test_actions_that_the_policy_would_not_take_count_for_nothing() -> None:
    case = random_case(3)
    case["log_rho"] = np.full_like(case["reward"], -60.0)
    advantage, target = vtrace(**case, gamma=GAMMA, gae_lambda=LAMBDA, rho_bar=1.0, c_bar=1.0)
    np.testing.assert_allclose(advantage, 0, atol=1e-20)
    np.testing.assert_allclose(target, case["v_t"], atol=1e-20)
