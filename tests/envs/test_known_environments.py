"""The shipped environments do what they say, so that a learner's wrong answer is the learner's."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from penstock.envs.known.counting import Counting, episode_length, seed_tag
from penstock.envs.known.credit import DelayedReward, MatchCue
from penstock.envs.known.final_row import FinalRow
from penstock.envs.known.latency import Latency
from penstock.envs.known.registration import register_known
from penstock.envs.known.target import Target
from penstock.envs.known.time_limit import TimeLimit
from penstock.envs.known.values import ConstantReward, TwoState

GAMMA = 0.9

register_known()
NAMES = sorted(name for name in gymnasium.registry if name.startswith("penstock/"))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [name for name in NAMES if "Masked" not in name])  # whose mask Gymnasium's check ignores
def test_each_is_a_proper_gymnasium_environment(name: str) -> None:
    arguments = {"mean_s": 0.0} if "Latency" in name else {}
    check_env(gymnasium.make(name, **arguments).unwrapped, skip_render_check=True)  # type: ignore[arg-type] # not typed there


def episode(environment: Any, policy: Any, seed: int) -> tuple[list[Any], list[float], bool]:
    """Observations, rewards, and whether it was truncated."""
    observation, _ = environment.reset(seed=seed)
    observations, rewards, terminated, truncated = [observation], [], False, False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, _ = environment.step(policy(observation))
        observations.append(observation)
        rewards.append(reward)
    return observations, rewards, truncated


def discounted(rewards: list[float]) -> list[float]:
    values, value = [], 0.0
    for reward in reversed(rewards):
        value = reward + GAMMA * value
        values.append(value)
    return values[::-1]


def test_counting_names_seed_episode_step_and_action() -> None:
    environment = Counting(episode_steps=3)
    seed = 5_000_001
    first, rewards, truncated = episode(environment, lambda seen: 2, seed)
    tag = seed % 2**20
    assert [row.tolist() for row in first] == [[tag, 0, 0, -1], [tag, 0, 1, 2], [tag, 0, 2, 2], [tag, 0, 3, 2]]
    assert (rewards, truncated) == ([1, 2, 3], False)
    second, _, _ = episode(environment, lambda seen: 0, 7)
    assert second[0].tolist() == [7, 1, 0, -1]
    assert environment.reset()[0].tolist() == [7, 2, 0, -1]


def test_counting_lengths() -> None:
    assert episode(Counting(4, truncate=True), lambda seen: 0, 0)[2]
    lengths = {len(episode(Counting(5, ragged=True), lambda seen: 0, seed)[1]) for seed in range(8)}
    assert lengths == {2, 3, 4, 5}
    assert episode_length(5, seed_tag(6), ragged=True) == len(episode(Counting(5, ragged=True), lambda seen: 0, 6)[1])


def test_constant_reward() -> None:
    _, rewards, truncated = episode(ConstantReward(3.0), lambda seen: 0, 0)
    assert (discounted(rewards), truncated) == ([ConstantReward.value(3.0)], False)


def test_two_state() -> None:
    observations, rewards, truncated = episode(TwoState(), lambda seen: 0, 0)
    assert not truncated
    assert discounted(rewards) == [TwoState.value(seen, GAMMA) for seen in observations[:-1]] == [GAMMA, 1.0]


def test_time_limit() -> None:
    observations, rewards, truncated = episode(TimeLimit(2.0, 5), lambda seen: 0, 0)
    assert truncated
    assert len({tuple(seen) for seen in observations}) == 1
    value = TimeLimit.value(GAMMA, 2.0)
    assert sum(GAMMA**t * r for t, r in enumerate(rewards)) + GAMMA**5 * value == pytest.approx(value)
    assert discounted(rewards)[0] == pytest.approx(TimeLimit.mistaken_value(GAMMA, 2.0, 5))


@pytest.mark.parametrize("truncate", [False, True])
def test_final_row_satisfies_its_bellman_equation(truncate: bool) -> None:
    starts = set()
    for seed in range(20):
        (first, final), (reward,), truncated = episode(FinalRow(truncate=truncate), lambda seen: 0, seed)
        assert truncated is truncate
        assert final[0] == -first[0], "it ends in the other state"
        bootstrap = GAMMA * FinalRow.value(final, GAMMA, truncate=True) if truncate else 0.0
        assert reward + bootstrap == pytest.approx(FinalRow.value(first, GAMMA, truncate=truncate))
        starts.add(float(first[0]))
    assert starts == {-1.0, 1.0}


def test_final_row_punishes_training_the_reset_step() -> None:
    """The mistake's fixed point, found by iterating it, is what `value_if_resets_are_trained` says, and far off."""
    poor, rich = 0.0, 0.0
    for _ in range(500):
        mean = (poor + rich) / 2
        poor, rich = (0 + GAMMA * mean) / 2, (1 + GAMMA * mean) / 2
    assert FinalRow.value_if_resets_are_trained(np.array([-1.0]), GAMMA) == pytest.approx(poor)
    assert FinalRow.value_if_resets_are_trained(np.array([1.0]), GAMMA) == pytest.approx(rich)
    assert poor > 0.2
    assert rich < 0.8


def test_match_cue_pays_the_right_action() -> None:
    for seed in range(10):
        assert episode(MatchCue(), MatchCue.best_action, seed)[1] == [MatchCue.best_return]
        assert episode(MatchCue(), lambda seen: 1 - MatchCue.best_action(seen), seed)[1] == [-1.0]


@pytest.mark.parametrize("right", [True, False])
def test_delayed_reward_pays_the_first_action_at_the_end(right: bool) -> None:
    for seed in range(6):

        def policy(seen: Any) -> int:
            first = seen[2] == 0
            return DelayedReward.best_action(seen) if not first or right else 1 - DelayedReward.best_action(seen)

        observations, rewards, _ = episode(DelayedReward(3), policy, seed)
        assert rewards == [0, 0, 0, 1.0 if right else -1.0]
        expected = [DelayedReward.value(seen, GAMMA, 3) for seen in observations[:-1]]
        skip = 0 if right else 1  # before the first action it is the best policy's
        assert discounted(rewards)[skip:] == pytest.approx(expected[skip:])


def test_target_pays_the_miss() -> None:
    for seed in range(10):
        assert episode(Target(), Target.best_action, seed)[1] == [0.0]
        miss = 0.25 if Target().reset(seed=seed)[0][0] < 0.5 else -0.25
        assert episode(Target(), lambda seen, miss=miss: Target.best_action(seen) + np.float32(miss), seed)[1] == [
            pytest.approx(-0.0625, rel=1e-5)
        ]


def delays_s(latency: Latency, seed: int, steps: int) -> list[float]:
    latency.reset(seed=seed)
    return [latency.next_delay_s() for _ in range(steps)]


def test_latency_draws_belong_to_the_seed_and_the_step() -> None:
    one, other = (Latency(Counting(), mean_s=0.01, variance=2.0) for _ in range(2))
    delays_s(other, 1, 30)
    assert delays_s(one, 9, 100) == delays_s(other, 9, 100)
    assert delays_s(one, 9, 100) != delays_s(one, 8, 100)


@pytest.mark.parametrize("variance", [0.25, 1.0, 4.0])
def test_latency_has_the_mean_and_variance_asked_for(variance: float) -> None:
    drawn = np.array(delays_s(Latency(Counting(), mean_s=0.01, variance=variance, factor=3.0), 4, 40_000)) / 0.03
    assert drawn.mean() == pytest.approx(1.0, abs=0.05)
    assert drawn.var() == pytest.approx(variance, rel=0.15)


def test_latency_without_variance_is_constant_and_really_sleeps() -> None:
    import time

    latency = gymnasium.make("penstock/LatencyCartPole-v0", mean_s=0.01, variance=0.0)
    latency.reset(seed=0)
    started = time.perf_counter()
    for _ in range(3):
        latency.step(0)
    assert 0.03 <= time.perf_counter() - started < 0.5
