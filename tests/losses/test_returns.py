from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.losses.returns import discounted_returns, generalized_advantages


def column(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float64)[:, None]


def flags(*marks: int) -> np.ndarray:
    return np.array(marks, bool)[:, None]


def test_arithmetic_without_an_end() -> None:
    # gamma 0.5, lambda 0.5
    # t=1: delta = 2 + 0.5*8 - 4 = 2,            A = 2
    # t=0: delta = 1 + 0.5*4 - 2 = 1,            A = 1 + 0.25*2 = 1.5
    result = generalized_advantages(column(1, 2), column(2, 4), column(4, 8), flags(0, 0), flags(0, 0), flags(1, 1), 0.5, 0.5)
    np.testing.assert_allclose(result[:, 0], [1.5, 2.0])


def test_termination_bootstraps_nothing_and_truncation_bootstraps_the_next_row() -> None:
    # Row 0 ends the episode, row 1 is the reset row, row 2 starts the next episode; V of row 1 is 100 (the final
    # observation's), V of row 2 is 3, of row 3 it is 7. gamma 0.5, lambda 1.
    v_t, v_tp1 = column(2, 100, 3), column(100, 3, 7)
    valid, never = flags(1, 0, 1), flags(0, 0, 0)
    terminated = generalized_advantages(column(1, 0, 1), v_t, v_tp1, flags(1, 0, 0), never, valid, 0.5, 1.0)
    truncated = generalized_advantages(column(1, 0, 1), v_t, v_tp1, never, flags(1, 0, 0), valid, 0.5, 1.0)
    # row 2: 1 + 0.5*7 - 3 = 1.5; row 1 is not data: 0; row 0: 1 - 2 = -1 terminated, 1 + 0.5*100 - 2 = 49 truncated
    np.testing.assert_allclose(terminated[:, 0], [-1, 0, 1.5])
    np.testing.assert_allclose(truncated[:, 0], [49, 0, 1.5])


def test_a_cut_bootstraps_and_nothing_flows_back_from_rows_after_it() -> None:
    # Rows 1 and 2 come after a cut: no flag was raised, row 1's value (6) is the bootstrap, what lies there is rubbish.
    rubbish = float("nan")
    result = generalized_advantages(
        column(1, rubbish, 5),
        column(2, 6, rubbish),
        column(6, rubbish, 9),
        flags(0, 1, 0),
        flags(0, 0, 1),
        flags(1, 0, 0),
        0.5,
        0.5,
    )
    np.testing.assert_allclose(result[:, 0], [1 + 0.5 * 6 - 2, 0, 0])


def naive(reward, v_t, v_tp1, terminated, truncated, valid, gamma, gae_lambda):  # type: ignore[no-untyped-def]  # plain loop
    """Equation 16, row by row and forwards: the sum of discounted deltas until the episode ends or is cut."""
    steps, lanes = reward.shape
    result = np.zeros((steps, lanes))
    for lane in range(lanes):
        for first in range(steps):
            weight = 1.0
            for t in range(first, steps):
                if not valid[t, lane]:
                    break
                bootstrap = 0.0 if terminated[t, lane] else gamma * v_tp1[t, lane]
                result[first, lane] += weight * (reward[t, lane] + bootstrap - v_t[t, lane])
                weight *= gamma * gae_lambda
                if terminated[t, lane] or truncated[t, lane]:
                    break
    return result


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), gamma=st.floats(0, 1), gae_lambda=st.floats(0, 1))
def test_the_scan_is_the_sum_of_the_paper(seed: int, gamma: float, gae_lambda: float) -> None:
    rng = np.random.default_rng(seed)
    shape = (9, 4)
    reward, v_t, v_tp1 = rng.normal(size=(3, *shape))
    terminated, truncated = rng.random((2, *shape)) < 0.2
    valid = rng.random(shape) < 0.8
    arguments = (reward, v_t, v_tp1, terminated, truncated, valid, gamma, gae_lambda)
    np.testing.assert_allclose(generalized_advantages(*arguments), naive(*arguments), atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), gamma=st.floats(0, 1))
def test_returns_are_values_and_advantages_at_lambda_one(seed: int, gamma: float) -> None:
    rng = np.random.default_rng(seed)
    shape = (9, 4)
    reward = rng.normal(size=shape)
    value = rng.normal(size=(10, 4))
    terminated, truncated = rng.random((2, *shape)) < 0.2
    valid = rng.random(shape) < 0.8
    flags_of = (terminated, truncated, valid)
    advantage = generalized_advantages(reward, value[:-1], value[1:], *flags_of, gamma, 1.0)
    returns = discounted_returns(reward, value[1:], *flags_of, gamma)
    np.testing.assert_allclose(returns, np.where(valid, advantage + value[:-1], 0), atol=1e-12)


def test_lanes_do_not_touch_and_single_precision_stays() -> None:
    rng = np.random.default_rng(0)
    reward, v_t, v_tp1 = rng.normal(size=(3, 6, 3)).astype(np.float32)
    never, always = np.zeros((6, 3), bool), np.ones((6, 3), bool)
    whole = generalized_advantages(reward, v_t, v_tp1, never, never, always, 0.99, 0.95)
    assert whole.dtype == np.float32
    for lane in range(3):
        one = slice(lane, lane + 1)
        alone = generalized_advantages(
            reward[:, one], v_t[:, one], v_tp1[:, one], never[:, one], never[:, one], always[:, one], 0.99, 0.95
        )
        np.testing.assert_array_equal(alone[:, 0], whole[:, lane])
