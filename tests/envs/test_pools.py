"""EnvPool's environments as blocks: on a stand-in everywhere, on EnvPool itself where it is installed."""

from __future__ import annotations

import importlib.util
import sys
from functools import partial
from typing import Any

import fake_envpool
import numpy as np
import pytest
from counting_blocks import PLAIN_KINDS, open_one
from gymnasium.envs.registration import registry

from penstock.core.errors import Refused
from penstock.envs.examination import examine
from penstock.envs.making import EnvironmentMaker
from penstock.envs.pools import PoolVector
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.testing.block_environment import actions_for, check_block_environment, record

CARTPOLE, BREAKOUT = "envpool/CartPole-v1", "envpool/Breakout-v5"
FIRE = 1
_INSTALLED = importlib.util.find_spec("envpool") is not None


@pytest.fixture(autouse=True, params=["fake", pytest.param("real", marks=pytest.mark.skipif(not _INSTALLED, reason="extra"))])
def which(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """EnvPool itself, or what stands for it; the registry is as before afterwards."""
    if request.param == "fake":
        monkeypatch.setitem(sys.modules, "envpool", fake_envpool)
    monkeypatch.delitem(sys.modules, "penstock.envs.pool_registration", raising=False)
    yield request.param
    for name in [name for name in registry if name.startswith("envpool/")]:
        del registry[name]
    sys.modules.pop("penstock.envs.pool_registration", None)


@pytest.mark.parametrize("kind", ["vector", *PLAIN_KINDS])
def test_every_kind_of_block_conforms(kind: Any) -> None:
    check_block_environment(partial(open_one, kind, CARTPOLE, block=2, max_episode_steps=15))


def test_what_is_seen_of_it() -> None:
    found = probe(EnvironmentMaker(CARTPOLE), EnvSettings())
    assert found.vector
    assert found.hidden_state
    assert (found.spec.max_episode_steps, found.spec.reward_threshold, found.spec.frame_skip) == (500, 475.0, 1)


def test_a_slash_in_its_own_name_becomes_a_dash(which: str) -> None:
    name = "envpool/phys2d-CartPole-v1" if which == "real" else "envpool/gfootball-duel-v1"
    EnvironmentMaker(name).registered()
    with pytest.raises(Refused, match=f"did you mean {name}"):
        EnvironmentMaker(name.replace("-", "/", 1)).registered()


def test_doctor_says_that_lanes_cannot_be_restored() -> None:
    lanes = {finding.what: finding for finding in examine(EnvironmentMaker(CARTPOLE), EnvSettings())}["lanes"]
    assert lanes.status == "warn"
    assert "cannot be begun anew by a seed" in lanes.found
    assert "envs.parallel=serial" in lanes.advice
    one_by_one = examine(EnvironmentMaker(CARTPOLE), EnvSettings(parallel="serial"))
    assert all(finding.status == "ok" for finding in one_by_one), one_by_one


def test_a_lost_life_ends_the_return_but_not_the_game() -> None:
    block = open_one("vector", BREAKOUT)
    try:
        stream = record(block, np.full((300, block.num_lanes), FIRE))
    finally:
        block.close()
    assert stream.ended.any()
    lost = stream.terminated & ~stream.ended
    assert lost.any()
    assert stream.valid[1:][lost[:-1]].all(), "a lost life resets nothing"


def test_without_episodic_life_only_the_game_terminates() -> None:
    block = open_one("vector", BREAKOUT, episodic_life=False)
    try:
        stream = record(block, np.full((300, block.num_lanes), FIRE))
    finally:
        block.close()
    assert stream.ended.any()
    assert np.array_equal(stream.terminated | stream.truncated, stream.ended)


def test_settings_of_games_are_said() -> None:
    config = PoolVector("Breakout-v5", 2).config
    said = [config[name] for name in ("frame_skip", "noop_max", "repeat_action_probability", "reward_clip", "episodic_life")]
    assert said == [4, 30, 0.0, False, False]
    assert PoolVector("Breakout-v5", 2, repeat_action_probability=0.25).config["repeat_action_probability"] == 0.25


def test_rewards_are_raw(which: str) -> None:
    """A clipped one would never exceed 1."""
    if which == "real":
        pytest.skip("Breakout's first rows of bricks are worth 1")
    block = open_one("vector", BREAKOUT)
    assert record(block, actions_for(block, 5)).reward.max() == 7.0
    block.close()


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        (
            CARTPOLE,
            {"gravity": 1},
            "'gravity' is no argument of environment 'envpool/CartPole-v1'; those are max_episode_steps",
        ),
        (CARTPOLE, {"batch_size": 2}, "'batch_size' of an EnvPool environment is Penstock's to set"),
        (BREAKOUT, {"reward_clip": True}, "'reward_clip' of an EnvPool environment is Penstock's to set"),
    ],
)
def test_arguments_that_do_not_fit_are_named(name: str, arguments: dict[str, Any], says: str, which: str) -> None:
    with pytest.raises(Refused, match=r"argument|Penstock's") as refused:
        EnvironmentMaker(name, arguments)()
    assert which == "real" or says in str(refused.value)


def test_several_players_are_refused(which: str) -> None:
    if which == "fake":
        with pytest.raises(Refused, match="has 2 players"):
            EnvironmentMaker("envpool/gfootball-duel-v1")()


def test_a_pool_that_resets_at_another_time_is_a_fault(monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    """Were the form to change with a version of EnvPool, reset rows would be trained in silence."""
    lanes = PoolVector("CartPole-v1", 3)
    lanes.reset(seed=1)
    lanes._ended[:] = True
    with pytest.raises(RuntimeError, match="did not reset one"):
        lanes.step(np.zeros(3, np.int64))


def test_trains_end_to_end(run_training: Any, which: str) -> None:
    outcome = run_training(CARTPOLE, steps=2000, workers=0, preset="none", n_envs=8)
    assert outcome.error is None
    assert outcome.summary["masked_steps"] > 0
