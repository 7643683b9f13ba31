"""Observations and actions of many parts: to specs and back, through every kind of block, with masks beside them."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest
from counting_blocks import PLAIN_KINDS, open_one
from gymnasium import spaces

from penstock.core.errors import EnvironmentFault, Refused
from penstock.core.protocols import ALL
from penstock.core.specs import (
    MASK,
    BoxSpec,
    CompositeSpec,
    DiscreteSpec,
    EnvironmentSpec,
    MultiDiscreteSpec,
    from_plain,
    leaves,
    parts_of,
    to_plain,
)
from penstock.envs.given import given
from penstock.envs.known.mixed import Masked, Mixed
from penstock.envs.making import EnvironmentMaker
from penstock.envs.masks import masked, with_mask
from penstock.envs.probing import probe
from penstock.envs.rows import all_finite, finite_lanes, fitted
from penstock.envs.settings import EnvSettings
from penstock.envs.spaces import action_spec, observation_spec
from penstock.testing.block_environment import check_block_environment, receive_all

MIXED = probe(EnvironmentMaker(Mixed), EnvSettings()).spec
SPACES = [
    spaces.MultiDiscrete([3, 2], start=[1, -1]),
    spaces.MultiDiscrete(np.array([[3, 2], [4, 5]])),
    spaces.MultiBinary((2, 2)),
    spaces.Tuple((spaces.Discrete(3, start=2), spaces.Box(-1.0, 1.0, (2,), np.float64))),
    Mixed().observation_space,
    Mixed().action_space,
]


def test_parts_keep_their_names_their_order_and_their_kind() -> None:
    assert [(place.name, type(place.leaf).__name__) for place in leaves(MIXED.observation)] == [
        ("image", "BoxSpec"),
        ("levels", "BoxSpec"),
        ("shown/0", "DiscreteSpec"),
        ("shown/1", "MultiDiscreteSpec"),
    ]
    assert [place.name for place in leaves(MIXED.action)] == ["amount", "quadrant", "switches/0"]
    assert MIXED.observation.dtype["image"].shape == (1, 12, 12)
    assert MIXED.observation.dtype["levels"].base == np.float32


@pytest.mark.parametrize("spec", [MIXED, with_mask(EnvironmentSpec("x", MIXED.observation, DiscreteSpec(3)))])
def test_a_composite_spec_survives_strict_json(spec: EnvironmentSpec) -> None:
    assert from_plain(json.loads(json.dumps(to_plain(spec), allow_nan=False))) == spec


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_what_a_space_samples_is_stored_and_given_back_as_it_was(space: Any) -> None:
    """An action's way: numbers less their start in the row, and with it when the environment is given them."""
    space.seed(3)
    spec = observation_spec(space, "X")
    for _ in range(20):
        sample = space.sample()
        row = fitted(sample, spec)
        for place in leaves(spec):
            if isinstance(place.leaf, DiscreteSpec):
                place.of(row)[...] += place.leaf.start
            elif isinstance(place.leaf, MultiDiscreteSpec):
                place.of(row)[...] += np.reshape(place.leaf.start, place.leaf.shape)
        back = given(row, space)
        assert space.contains(back), back
        assert fitted(back, spec).tobytes() == fitted(sample, spec).tobytes()


def test_multi_binary_is_a_choice_of_two() -> None:
    assert observation_spec(spaces.MultiBinary(2), "X") == MultiDiscreteSpec((2, 2), (0, 0), (2,))


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ({"a": np.zeros(3, np.float32)}, "part 'a': observation of shape"),
        ({"b": np.zeros(2, np.float32)}, "the parts b, expected a"),
        ({"a": np.array(["x", "y"])}, "part 'a': observation of dtype"),
    ],
)
def test_a_part_that_does_not_fit_is_named(broken: dict[str, Any], says: str) -> None:
    spec = CompositeSpec("dict", ("a",), (BoxSpec((2,), "float32", (-1.0, -1.0), (1.0, 1.0)),))
    with pytest.raises(ValueError, match=says):
        fitted(broken, spec)


def test_a_number_outside_its_choices_is_named() -> None:
    with pytest.raises(ValueError, match=r"\[3, 1\] outside \[0, 0\]..\[2, 1\]"):
        fitted(np.array([3, 1]), MultiDiscreteSpec((3, 2), (0, 0), (2,)))


def test_nan_in_a_part_is_seen_in_its_lane() -> None:
    rows = np.zeros(3, MIXED.observation.dtype)
    assert all_finite(rows)
    rows["levels"][1, 0] = np.nan
    assert not all_finite(rows)
    assert finite_lanes(rows).tolist() == [True, False, True]


@pytest.mark.parametrize(
    "space",
    [spaces.Dict({"a": spaces.Text(4)}), spaces.Tuple((spaces.Box(0, 1, (0,)),)), spaces.Sequence(spaces.Discrete(2))],
)
def test_a_part_that_is_not_supported_refuses_the_whole(space: Any) -> None:
    with pytest.raises(Refused, match="'X' has observation space"):
        observation_spec(space, "X")
    with pytest.raises(Refused, match="'X' has action space"):
        action_spec(space, "X")


def test_text_comes_with_advice() -> None:
    with pytest.raises(Refused, match=r"--wrap penstock\.envs\.wrappers:without_text"):
        observation_spec(spaces.Dict({"a": spaces.Text(4), "b": spaces.Discrete(2)}), "X")


@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_blocks_of_many_parts_conform(kind: Any) -> None:
    check_block_environment(partial(open_one, kind, "penstock/Mixed-v0"))


@pytest.mark.parametrize("method", [False, True], ids=["info", "method"])
@pytest.mark.parametrize("kind", PLAIN_KINDS)
def test_masks_travel_with_observations(kind: Any, method: bool) -> None:
    """Masked shows in its observation what it allows, so the mask that arrives can be compared."""
    block = open_one(kind, "penstock/Masked-v0", method=method)
    try:
        block.reset()
        for _ in range(25):
            shown = block.observation["observation"].astype(bool)
            over = block.ended
            assert np.array_equal(block.observation[MASK][~over], shown[~over])
            assert block.observation[MASK][over].all(), "nothing is asked of a mask once the episode is over"
            first = np.argmax(shown, axis=1) + 2
            block.send(ALL, first)
            receive_all(block)
            assert np.array_equal(block.reward, block.valid.astype(float))
    finally:
        block.close()


def test_a_mask_that_allows_nothing_is_refused_or_reported() -> None:
    with pytest.raises(Refused, match="fails in reset: ValueError: the action mask allows no action"):
        probe(EnvironmentMaker(Masked, {"impossible_at": 0}), EnvSettings())
    block = open_one("serial", "penstock/Masked-v0", impossible_at=-1)
    block.reset()
    lane = block._lanes[0]  # type: ignore[attr-defined]  # a serial block's own
    lane._environment.unwrapped._impossible_at = 1
    block.send(ALL, np.argmax(block.observation[MASK], axis=1) + 2)
    with pytest.raises(EnvironmentFault, match=r"failed in step \(lane 0.*the action mask allows no action"):
        block.receive()
    block.close()


class Telling(gymnasium.Env[Any, Any]):
    """Tells a mask of a kind."""

    def __init__(self, action: Any, mask: Any) -> None:
        self.observation_space, self.action_space, self._mask = spaces.Discrete(1), action, mask

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return 0, {MASK: self._mask}

    def step(self, action: Any) -> Any:
        return 0, 0.0, False, False, {MASK: self._mask}


def test_masks_of_several_choices_lie_side_by_side() -> None:
    action = spaces.MultiDiscrete([2, 3])
    for mask in ((np.array([1, 0]), np.array([0, 1, 1])), np.array([1, 0, 0, 1, 1], np.int8)):
        spec = probe(EnvironmentMaker(Telling, {"action": action, "mask": mask}), EnvSettings()).spec
        flags = masked(0, {MASK: mask}, None, spec, over=False)[MASK]
        assert flags.tolist() == [True, False, False, True, True]


@pytest.mark.parametrize(
    ("action", "mask", "says"),
    [
        (spaces.Discrete(3), [1, 1], "action mask of 2 flags, expected 3"),
        (spaces.MultiDiscrete([2, 2]), [1, 1, 0, 0], "the action mask allows no action"),
        (spaces.Box(-1.0, 1.0, (2,)), [1, 1], "masks actions that are not Discrete or MultiDiscrete"),
    ],
)
def test_impossible_masks_are_refused(action: Any, mask: Any, says: str) -> None:
    with pytest.raises(Refused, match=says):
        probe(EnvironmentMaker(Telling, {"action": action, "mask": np.array(mask)}), EnvSettings())


def test_padding_is_in_no_part() -> None:
    rows = np.zeros(1, np.dtype([("a", "u1"), ("b", "f8")], align=True))
    assert sum(part.nbytes for _, part in parts_of(rows)) == 9 < rows.nbytes
