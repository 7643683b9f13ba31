from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from model_specimens import CHOICES

from penstock.models.normaliser import FIRST_COUNT, Normaliser, discounted_returns, mean_and_variance
from penstock.models.settings import ModelSettings

BOTH = ModelSettings(normalize_observation=True, normalize_reward=True)


def segment(seed: int, steps: int = 6, lanes: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    observation = rng.normal(1000.0, 2.0, size=(steps + 1, lanes, 5)).astype(np.float32)
    return observation, rng.normal(5, 3, (steps, lanes)), rng.random((steps, lanes)) < 0.7


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), batches=st.integers(1, 4))
def test_merging_is_the_moments_of_all_valid_rows(seed: int, batches: int) -> None:
    normaliser = Normaliser(CHOICES, BOTH)
    statistics = normaliser.initial()
    rows, returns = [], []
    for batch in range(batches):
        segments = [segment(seed + 10 * batch + k) for k in range(2)]
        before = statistics.copy()
        merged = normaliser.merged(statistics, segments)
        np.testing.assert_array_equal(statistics, before)
        statistics = merged
        rows += [o[:-1][v].astype(np.float64) for o, _, v in segments]
        returns += [r[v] for _, r, v in segments]
    data, sums = np.concatenate(rows), np.concatenate(returns)
    assert statistics[0] == len(data) + FIRST_COUNT
    # the initial guess weighs FIRST_COUNT: mean 0, variance 1
    whole = len(data) + FIRST_COUNT
    mean = data.sum(0) / whole
    variance = (((data - mean) ** 2).sum(0) + FIRST_COUNT * (1 + mean**2)) / whole
    np.testing.assert_allclose(mean_and_variance(statistics[:11])[0], mean, rtol=1e-10)
    np.testing.assert_allclose(mean_and_variance(statistics[:11])[1], variance, rtol=1e-8)
    np.testing.assert_allclose(mean_and_variance(statistics[11:])[0], [sums.sum() / whole], rtol=1e-10)


def test_normalising_gives_mean_0_and_deviation_1() -> None:
    normaliser = Normaliser(CHOICES, BOTH)
    rng = np.random.default_rng(0)
    raw = rng.normal([1, -2, 300, 0, 5], [1, 2, 3, 0.1, 5], size=(400, 4, 5)).astype(np.float32)
    returns = rng.normal(0, 50, (400, 4))
    normaliser.load(normaliser.merged(normaliser.initial(), [(raw, returns, np.ones((400, 4), bool))]))
    out = np.empty_like(raw)
    normaliser.scale("", raw, out)
    np.testing.assert_allclose(out.reshape(-1, 5).mean(0), 0, atol=2e-3)
    np.testing.assert_allclose(out.reshape(-1, 5).std(0), 1, atol=5e-3)
    reward = np.array([[10.0, -10.0, 1e6]], np.float32)
    scaled = np.empty_like(reward)
    normaliser.normalise_rewards(reward, scaled)
    np.testing.assert_allclose(scaled, [[10 / returns.std(), -10 / returns.std(), 10.0]], rtol=1e-4)
    raw[:] = 1e9
    normaliser.scale("", raw, out)
    assert (out == 10.0).all()


def test_off_means_identity_and_an_empty_vector() -> None:
    normaliser = Normaliser(CHOICES, ModelSettings())
    assert normaliser.size == 0
    assert normaliser.initial().shape == (0,)
    raw = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    out = np.empty_like(raw)
    normaliser.load(normaliser.merged(normaliser.initial(), [segment(0)]))
    normaliser.scale("", raw, out)
    np.testing.assert_array_equal(out, raw)
    normaliser.normalise_rewards(raw, out)
    np.testing.assert_array_equal(out, raw)


def test_nothing_valid_changes_nothing() -> None:
    normaliser = Normaliser(CHOICES, BOTH)
    observation, returns, valid = segment(0)
    merged = normaliser.merged(normaliser.initial(), [(observation, returns, np.zeros_like(valid))])
    np.testing.assert_array_equal(merged, normaliser.initial())


def test_discounted_returns_arithmetic() -> None:
    # One lane, gamma 0.5, 8 handed on: 0.5*8+1 = 5; 0.5*5+2 = 4.5, ends; reset row; 3; cut: not data, 3 is handed on
    reward = np.array([[1], [2], [0], [3], [99]], np.float32)
    done = np.array([[0], [1], [0], [0], [0]], bool)
    valid = np.array([[1], [1], [0], [1], [0]], bool)
    returns, carry = discounted_returns(reward, done, valid, np.array([8.0]), 0.5)
    assert returns[:, 0].tolist() == [5.0, 4.5, 0.0, 3.0, 0.0]
    assert carry.tolist() == [3.0]
    assert discounted_returns(reward[:2], done[:2], valid[:2], np.array([8.0]), 0.5)[1].tolist() == [0.0]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(1, 11))
def test_returns_do_not_depend_on_where_segments_are_cut(seed: int, cut: int) -> None:
    rng = np.random.default_rng(seed)
    reward = rng.normal(size=(12, 3))
    done = rng.random((12, 3)) < 0.2
    valid = np.ones((12, 3), bool)
    valid[1:] = ~done[:-1]  # a reset row follows the end of an episode
    done &= valid
    start = np.zeros(3)
    whole, carry = discounted_returns(reward, done, valid, start, 0.9)
    first, middle = discounted_returns(reward[:cut], done[:cut], valid[:cut], start, 0.9)
    second, last = discounted_returns(reward[cut:], done[cut:], valid[cut:], middle, 0.9)
    np.testing.assert_array_equal(np.concatenate([first, second]), whole)
    np.testing.assert_array_equal(last, carry)
