"""Asks: where a block's question to the inference server lies, and the answer to it. One record for each block.

A record has one owner at a time: the block's sampler until it has said Ask, then the server until it has said Answer, then the
sampler again. The server reads observations where they lie in the slot and writes nothing but the record, so that a slot has
one writer still: an answer that comes when its segment has long been given up spoils nobody's rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.specs import Array, EnvironmentSpec
from penstock.memory.arena import Arena, require_bytes
from penstock.memory.layout import Field, Layout


def ask_layout(spec: EnvironmentSpec, lanes: int) -> Layout:
    """What is asked and answered for one block; the few other numbers are in the messages."""
    return Layout.of(
        [
            Field("steps", (lanes,), "int64"),  # the row of the slot that each lane is at
            Field("action", (lanes, *spec.action.shape), spec.action.dtype),
            Field("log_prob", (lanes,), "float32"),
            Field("value", (lanes,), "float32"),
        ]
    )


@dataclass(frozen=True)
class AskRecord:
    """Views into one record."""

    steps: Array
    action: Array
    log_prob: Array
    value: Array


class Asks:
    """The records of all blocks over one arena."""

    def __init__(self, arena: Arena, spec: EnvironmentSpec, *, lanes: int, blocks: int) -> None:
        self.arena = arena
        fields = ask_layout(spec, lanes).views(arena.memory, blocks)
        self._records = [AskRecord(**{name: field[block] for name, field in fields.items()}) for block in range(blocks)]

    @classmethod
    def create(cls, spec: EnvironmentSpec, *, lanes: int, blocks: int) -> Asks:
        """New records, after checking that there is room for them."""
        needed = ask_layout(spec, lanes).total_bytes(blocks)
        require_bytes(needed, f"what {blocks} blocks of {lanes} lanes ask the inference server")
        return cls(Arena.create("asks", needed), spec, lanes=lanes, blocks=blocks)

    @classmethod
    def attach(cls, fd: int, spec: EnvironmentSpec, *, lanes: int, blocks: int) -> Asks:
        """The records behind a descriptor that another process made for the same blocks."""
        arena = Arena(fd, Arena.size_of(ask_layout(spec, lanes).total_bytes(blocks)))
        return cls(arena, spec, lanes=lanes, blocks=blocks)

    def __getitem__(self, block: int) -> AskRecord:
        return self._records[block]
