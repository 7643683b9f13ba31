"""Every message survives the journey, and nothing else is taken for one."""

from __future__ import annotations

import typing

import msgspec
import pytest

from penstock.transport import messages
from penstock.transport.channel import MAX_MESSAGE_BYTES
from penstock.transport.messages import (
    MAX_DETAILS,
    MAX_LINE,
    Answer,
    Anything,
    Ask,
    Done,
    Episodes,
    Fault,
    HandIn,
    LetGo,
    Message,
    Ping,
    Pong,
    Ready,
    Save,
    Saved,
    Serve,
    Slot,
    Start,
    Stop,
    Train,
    Trained,
    Up,
    WriteOff,
    decode,
    encode,
)

TRAINED = Trained(
    version=7,
    rows=100,
    masked_rows=28,
    samples=400,
    updates=8,
    staleness=(90, 10),
    episode_returns=(1.5, -2.0),
    episode_lengths=(3, 4),
    metrics={"policy_loss": 0.25, "explained_variance": float("inf")},
    busy_s=0.125,
    digest="abc",
    chaos_events=1,
)

EXAMPLES: list[Anything] = [
    Start(1, 2, 3, 4),
    HandIn(1),
    WriteOff(2),
    Stop(),
    Up((0, 3)),
    Up(()),
    Done(1, 16, 60, True, 0.5, 0.25, 0.125, 1.0, 0.75, 3),
    Done(1, 16, 60, True, 0.5, 0.25, 0.125, 1.0, None, 3),
    LetGo(9),
    Train(4, (Slot(0, 10, 3), Slot(5, 11, 4)), 0.5),
    Save({"env_steps": 5, "return_mean": None, "nested": {"a": [1, "b"]}}),
    Ready(1000, 0, None),
    Ready(1000, 9, "digest"),
    Episodes((1.5, -2.0), (3, 4)),
    TRAINED,
    Saved(3, "checkpoints/3"),
    Fault("EnvironmentFault", "a gear broke", "Traceback ..."),
    Serve(),
    Ping(),
    Pong(),
    Ask(1, 2, 3, 4, True),
    Answer(1, False, 2),
]


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_round_trip(message):
    back = decode(encode(message))
    assert back == message
    assert type(back) is type(message)


def test_every_kind_of_message_has_an_example():
    assert {type(message) for message in EXAMPLES} == set(typing.get_args(Anything))


def test_every_message_of_the_file_can_be_received():
    defined = {kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert defined - {Message, Slot} == set(typing.get_args(Anything))  # a Slot is a part of Train


@pytest.mark.parametrize("data", [b"", b"\x00", b"garbage", encode(Start(1, 2, 3, 4))[:-1], b"\x92\xa5Nobody\x01"])
def test_anything_else_is_refused(data):
    with pytest.raises(msgspec.DecodeError):
        decode(data)


def test_a_story_of_the_greatest_length_fits_a_message():
    assert len(encode(Fault("EnvironmentFault", "\N{BUG}" * MAX_LINE, "\N{BUG}" * MAX_DETAILS))) <= MAX_MESSAGE_BYTES
