"""Where arrays lie: aligned, side by side, never over one another."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.memory.layout import ALIGNMENT_BYTES, Field, Layout, aligned

SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)
FIELDS = st.lists(st.tuples(SHAPES, st.sampled_from(["bool", "uint8", "float32", "int64"])), min_size=1, max_size=6)


def layout_of(fields: list[tuple[tuple[int, ...], str]]) -> Layout:
    return Layout.of([Field(f"field{index}", shape, dtype) for index, (shape, dtype) in enumerate(fields)])


def room_for(layout: Layout, count: int) -> bytearray:
    return bytearray(layout.total_bytes(count))


@given(st.integers(0, 10_000))
def test_aligned_is_the_next_multiple(num_bytes):
    assert aligned(num_bytes) % ALIGNMENT_BYTES == 0
    assert num_bytes <= aligned(num_bytes) < num_bytes + ALIGNMENT_BYTES


@given(FIELDS, st.integers(1, 4))
def test_arrays_are_aligned_and_apart(fields, count):
    layout = layout_of(fields)
    memory = room_for(layout, count)
    origin = np.frombuffer(memory, np.uint8).ctypes.data if memory else 0
    views = layout.views(memoryview(memory), count)
    for field in layout.fields:
        view = views[field.name]
        assert (view.shape, view.dtype) == ((count, *field.shape), np.dtype(field.dtype))
        for record in range(count if view.size else 0):
            assert (view[record, ...].ctypes.data - origin) % ALIGNMENT_BYTES == 0
    for index, field in enumerate(layout.fields):  # whoever overlaps changes what another wrote
        views[field.name][...] = index % 2
    for index, field in enumerate(layout.fields):
        assert (views[field.name] == index % 2).all()


def test_neighbouring_records_are_one_view_and_share_no_cache_line():
    layout = Layout.of([Field("a", (3,), "float32"), Field("b", (), "int64"), Field("c", (16, 2), "float32")])
    views = layout.views(memoryview(room_for(layout, 5)), 5)
    assert views["a"][1:4].strides == (64, 4)  # 12 bytes on a line of 64
    assert views["c"][1:4].flags.c_contiguous  # whole lines: nothing is left between records
    assert (layout.num_bytes, layout.total_bytes(5)) == (64 + 64 + 128, 5 * 256)


def test_a_name_given_twice_is_a_mistake():
    with pytest.raises(AssertionError, match="twice"):
        Layout.of([Field("a", (), "bool"), Field("a", (), "bool")])
