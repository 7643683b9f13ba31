"""Specs as plain data, through strict JSON and back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec, from_plain, to_plain

BOUND = st.floats(width=32, allow_nan=False)


@st.composite
def boxes(draw: st.DrawFn) -> BoxSpec:
    shape = tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    size = int(np.prod(shape, dtype=int))
    low, high = (tuple(draw(st.lists(BOUND, min_size=size, max_size=size))) for _ in range(2))
    return BoxSpec(shape, draw(st.sampled_from(["float32", "uint8"])), low, high)


SIDES = st.one_of(boxes(), st.builds(DiscreteSpec, n=st.integers(1, 9), start=st.integers(-5, 5)))
OPTIONAL = st.none() | st.integers(1, 1000)


@given(
    st.builds(
        EnvironmentSpec,
        id=st.text(),
        observation=SIDES,
        action=SIDES,
        max_episode_steps=OPTIONAL,
        reward_threshold=st.none() | st.floats(allow_nan=False, allow_infinity=False),
        frame_skip=st.integers(1, 4),
    )
)
def test_a_spec_survives_strict_json(spec):
    text = json.dumps(to_plain(spec), allow_nan=False)
    assert from_plain(json.loads(text)) == spec


def test_bounds_are_arrays_of_the_shape():
    low, high = BoxSpec((2, 2), "float32", (0, 1, 2, 3), (4, 5, 6, np.inf)).bounds
    assert low.tolist() == [[0, 1], [2, 3]]
    assert high.dtype == np.float32
    assert high[1, 1] == np.inf


@pytest.mark.parametrize(("shape", "size"), [((), 1), ((3,), 3), ((2, 5), 10)])
def test_size_counts_numbers(shape, size):
    assert BoxSpec(shape, "float32", (), ()).size == size
