"""Slots: one segment each, side by side, seen by whoever holds the descriptor."""

from __future__ import annotations

import os

import pytest

from penstock.core.errors import Refused
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.memory.layout import ALIGNMENT_BYTES
from penstock.store import slots as slots_module
from penstock.store.slots import Segment, SegmentShape, Slots, segment_layout

SPEC = EnvironmentSpec("Test-v0", BoxSpec((2, 3), "uint8", (0,) * 6, (255,) * 6), BoxSpec((2,), "float32", (-1, -1), (1, 1)))
DISCRETE = EnvironmentSpec("Test-v0", DiscreteSpec(5), DiscreteSpec(3, start=1))
SHAPE = SegmentShape(steps=4, lanes=3)

EXPECTED = {
    "segment": ((), "int64"),
    "version": ((), "int64"),
    "block": ((), "int64"),
    "worker": ((), "int64"),
    "observation": ((5, 3, 2, 3), "uint8"),
    "action": ((4, 3, 2), "float32"),
    "reward": ((4, 3), "float64"),
    "terminated": ((4, 3), "bool"),
    "truncated": ((4, 3), "bool"),
    "ended": ((4, 3), "bool"),
    "valid": ((4, 3), "bool"),
    "log_prob": ((4, 3), "float32"),
    "value": ((5, 3), "float32"),
    "episode_return": ((4, 3), "float64"),
    "episode_length": ((4, 3), "int32"),
    "steps_done": ((3,), "int32"),
    "return_accumulator": ((3,), "float64"),
    "starts_with_reset": ((3,), "bool"),
    "memory": ((3, 0), "float32"),
}


def test_the_layout_is_pinned():
    found = {field.name: (field.shape, field.dtype) for field in segment_layout(SPEC, SHAPE).fields}
    assert found == EXPECTED
    assert tuple(Segment.__dataclass_fields__) == tuple(EXPECTED)
    assert SHAPE.rows == 12


def test_discrete_spaces_are_whole_numbers():
    fields = {field.name: (field.shape, field.dtype) for field in segment_layout(DISCRETE, SHAPE).fields}
    assert fields["observation"] == ((5, 3), "int64")
    assert fields["action"] == ((4, 3), "int64")


def test_every_array_is_written_in_place_and_no_slot_is_another():
    slots = Slots.create(SPEC, SHAPE, 3)
    for number in range(3):
        for index, name in enumerate(EXPECTED):
            getattr(slots[number], name)[...] = (number + index) % 2
    for number in range(3):
        for index, name in enumerate(EXPECTED):
            array = getattr(slots[number], name)
            assert (array == (number + index) % 2).all(), (number, name)
            assert array.shape == EXPECTED[name][0]


def test_fields_start_on_cache_lines():
    slots = Slots.create(SPEC, SHAPE, 3)
    for name in EXPECTED:
        whole = slots.gather(name, range(3))
        assert whole.ctypes.data % ALIGNMENT_BYTES == 0 or not whole.size


def test_a_stamp_is_in_the_slot_itself():
    slots = Slots.create(SPEC, SHAPE, 2)
    slots[1].stamp(segment=11, version=12, block=13, worker=14)
    again = Slots(Slots.arena_of(os.dup(slots.arena.fd), SPEC, SHAPE, 2), SPEC, SHAPE, 2)
    assert [int(getattr(again[1], name)) for name in ("segment", "version", "block", "worker")] == [11, 12, 13, 14]
    assert [int(getattr(again[0], name)) for name in ("segment", "version", "block", "worker")] == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("places", "is_view"), [([0], True), ([1, 2, 3], True), ([0, 2], False), ([2, 1], False), ([3, 0, 1], False)]
)
def test_neighbours_are_gathered_without_a_copy(places, is_view):
    slots = Slots.create(SPEC, SHAPE, 4)
    for number in range(4):
        slots[number].reward[...] = number
    gathered = slots.gather("reward", places)
    assert gathered[:, 0, 0].tolist() == places
    assert gathered.shape == (len(places), 4, 3)
    slots[places[0]].reward[...] = 99
    assert (gathered[0] == 99).all() == is_view


def test_slots_that_do_not_fit_are_refused_before_memory_is_taken(monkeypatch):
    def no_memory(needed: int, what: str) -> None:
        raise Refused(f"{what} needs {needed}")

    monkeypatch.setattr(slots_module, "require_bytes", no_memory)
    monkeypatch.setattr(slots_module.Arena, "create", lambda *_: pytest.fail("memory was taken"))
    with pytest.raises(Refused, match="3 slots of 4 steps x 3 lanes needs"):
        Slots.create(SPEC, SHAPE, 3)
