"""Arcade games: settings said one by one, lives and games apart, lanes that follow their seeds, whole games in evaluation."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from counting_blocks import open_one

from penstock.core.errors import Refused
from penstock.core.protocols import ALL, BlockEnvironment
from penstock.envs.making import EnvironmentMaker
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.testing.block_environment import Stream, actions_for, receive_all, record

BREAKOUT, PONG = "ALE/Breakout-v5", "ALE/Pong-v5"
FIRE = 1


def streams(kind: Any, name: str, steps: int, actions: Any = None, **arguments: Any) -> Stream:
    block = open_one(kind, name, **arguments)
    try:
        return record(block, actions_for(block, steps) if actions is None else actions)
    finally:
        block.close()


def test_what_is_seen_of_a_game() -> None:
    found = probe(EnvironmentMaker(PONG), EnvSettings())
    assert found.vector
    assert (found.spec.observation.shape, found.spec.observation.dtype) == ((4, 84, 84), "uint8")
    assert (found.spec.action.n, found.spec.frame_skip) == (6, 4)  # type: ignore[union-attr]  # Pong's is Discrete


def test_lanes_follow_their_seeds_alone() -> None:
    """The same stream again, and lane by lane the same as single games, across the ends of games."""
    short = {"max_num_frames_per_episode": 200}
    one, again = (streams("vector", BREAKOUT, 160, **short) for _ in range(2))
    assert one.ended.any()
    assert one.digest() == again.digest()
    single = streams("serial", BREAKOUT, 160, one.action, **short)
    assert single.digest() == one.digest()


def test_a_lost_life_ends_the_return_but_not_the_game() -> None:
    """Doing nothing but serving loses five lives: five terminations, one end, one reset row after it."""
    block = open_one("vector", BREAKOUT)
    try:
        serve = np.full((700, block.num_lanes), FIRE)
        stream = record(block, serve)
    finally:
        block.close()
    assert stream.ended.any()
    for lane in range(stream.ended.shape[1]):
        end = int(np.argmax(stream.ended[:, lane]))
        lost = np.flatnonzero(stream.terminated[: end + 1, lane])
        assert len(lost) == 5
        assert stream.valid[: end + 1, lane].all(), "a lost life resets nothing"
        if end + 1 < len(stream.valid):
            assert not stream.valid[end + 1, lane]


def test_without_episodic_life_only_the_game_terminates() -> None:
    stream = streams("vector", BREAKOUT, 700, np.full((700, 5), FIRE), episodic_life=False)
    assert np.array_equal(stream.terminated | stream.truncated, stream.ended)


def test_a_frame_limit_truncates() -> None:
    stream = streams("vector", PONG, 60, max_num_frames_per_episode=80)
    assert stream.truncated.any()
    assert not stream.terminated.any()


def test_an_argument_that_there_is_not_is_named() -> None:
    with pytest.raises(Refused, match="'frame_skip' is no argument of arcade games; those are frameskip"):
        EnvironmentMaker(PONG, {"frame_skip": 2})()


def test_the_plain_environment_is_still_to_be_had() -> None:
    found = probe(EnvironmentMaker(PONG, {"preprocessing": False}), EnvSettings())
    assert found.spec.observation.shape == (210, 160, 3)
    assert not found.vector


def test_rewards_are_raw() -> None:
    """A brick of the upper rows is worth 7: clipped rewards never exceed 1."""
    block: BlockEnvironment = open_one("vector", "ALE/SpaceInvaders-v5")
    try:
        block.reset()
        best, draw = 0.0, partial(np.random.default_rng(0).integers, 0, 6, block.num_lanes)
        for _ in range(200):
            block.send(ALL, draw())
            receive_all(block)
            best = max(best, float(block.reward.max()))
    finally:
        block.close()
    assert best >= 5.0
