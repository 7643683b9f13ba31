"""The records of what blocks ask: one each, seen by whoever holds the descriptor."""

from __future__ import annotations

import os

import pytest

from penstock.core.errors import Refused
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.memory import arena
from penstock.store.asks import Asks, ask_layout

SPEC = EnvironmentSpec("Test-v0", DiscreteSpec(5), BoxSpec((2,), "float32", (-1, -1), (1, 1)))


def test_the_layout_is_pinned():
    assert {field.name: (field.shape, field.dtype) for field in ask_layout(SPEC, 3).fields} == {
        "steps": ((3,), "int64"),
        "action": ((3, 2), "float32"),
        "log_prob": ((3,), "float32"),
        "value": ((3,), "float32"),
    }


def test_each_block_has_a_record_of_its_own_that_both_sides_see():
    ours = Asks.create(SPEC, lanes=3, blocks=4)
    theirs = Asks.attach(os.dup(ours.arena.fd), SPEC, lanes=3, blocks=4)
    for block in range(4):
        for name in ("steps", "action", "log_prob", "value"):
            getattr(ours[block], name)[...] = block
    for block in range(4):
        for name in ("steps", "action", "log_prob", "value"):
            assert (getattr(theirs[block], name) == block).all()
    theirs[2].value[1] = 9
    assert ours[2].value.tolist() == [2, 9, 2]


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(arena, "available_bytes", lambda: 100)
    with pytest.raises(Refused, match="what 4 blocks of 3 lanes ask the inference server needs"):
        Asks.create(SPEC, lanes=3, blocks=4)
