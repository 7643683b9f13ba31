"""The exam for implementations of `core.protocols.Channel`.

    check_channel(make_pair)            both ends in one process, which cannot lose one another
    check_channel(make_pair, hang_up)   ends that can: `hang_up(end)` closes one

`make_pair` opens two ends that are connected. Fails with an AssertionError that says which law was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.core.protocols import Channel
from penstock.transport.messages import Anything, HandIn, Start, Stop, Up

MakePair = Callable[[], tuple[Channel, Channel]]

WORDS: tuple[Anything, ...] = (Start(1, 2, 3, 4), Up(tuple(range(500))), HandIn(7), Stop())


def check_channel(make_pair: MakePair, hang_up: Callable[[Any], None] | None = None) -> None:
    """Every law of the Protocol that can be seen from outside."""
    _check_order(make_pair)
    _check_both_ways(make_pair)
    if hang_up is not None:
        _check_last_words(make_pair, hang_up)
        _check_unread_words(make_pair, hang_up)
        _check_nobody_there(make_pair, hang_up)


def _check_order(make_pair: MakePair) -> None:
    ours, theirs = make_pair()
    assert list(theirs.receive()) == [], "receive answered before anything was sent"
    for word in WORDS:
        ours.send(word)
    assert _all(theirs, len(WORDS)) == list(WORDS), "messages must arrive whole, once and in order"
    assert list(theirs.receive()) == [], "a message was received twice"


def _check_both_ways(make_pair: MakePair) -> None:
    ours, theirs = make_pair()
    ours.send(HandIn(1))
    theirs.send(HandIn(2))
    assert _all(ours, 1) == [HandIn(2)], "an end must hear the other, not itself"
    assert _all(theirs, 1) == [HandIn(1)], "an end must hear the other, not itself"


def _check_last_words(make_pair: MakePair, hang_up: Callable[[Any], None]) -> None:
    ours, theirs = make_pair()
    theirs.send(HandIn(1))
    theirs.send(HandIn(2))
    hang_up(theirs)
    assert _all(ours, 2) == [HandIn(1), HandIn(2)], "what was said before the end must be heard"
    for _ in range(2):
        assert _ended(ours), "the other end is gone, and receive does not raise EOFError"


def _check_unread_words(make_pair: MakePair, hang_up: Callable[[Any], None]) -> None:
    ours, theirs = make_pair()
    ours.send(Stop())  # never read: the kernel may report that before anything else
    theirs.send(HandIn(1))
    hang_up(theirs)
    assert _all(ours, 1) == [HandIn(1)], "words were lost because the other end left ours unread"
    assert _ended(ours), "the other end is gone, and receive does not raise EOFError"


def _check_nobody_there(make_pair: MakePair, hang_up: Callable[[Any], None]) -> None:
    ours, theirs = make_pair()
    hang_up(theirs)
    try:
        ours.send(Stop())
    except ConnectionError:
        return
    raise AssertionError("sending to an end that is gone must raise ConnectionError")


def _all(channel: Channel, count: int) -> list[Any]:
    """What is received in at most `count` goes; what was sent is there already, so nothing is waited for."""
    heard: list[Any] = []
    for _ in range(count):
        if len(heard) < count:
            heard += _received(channel)
    return heard


def _received(channel: Channel) -> Sequence[Any]:
    try:
        return channel.receive()
    except EOFError:
        return ()


def _ended(channel: Channel) -> bool:
    try:
        channel.receive()
    except EOFError:
        return True
    return False
