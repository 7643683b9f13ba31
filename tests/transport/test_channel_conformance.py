"""Both channels pass the exam, and the exam fails channels that are broken in the ways that matter."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.testing.channel import check_channel
from penstock.transport.channel import LocalChannel, SocketChannel


def socket_pair() -> tuple[Any, Any]:
    ours, theirs = SocketChannel.pair()
    return ours, SocketChannel(theirs)


def hang_up(end: Any) -> None:
    end.close()


def test_the_socket_conforms() -> None:
    check_channel(socket_pair, hang_up)


def test_within_one_process_it_conforms() -> None:
    check_channel(LocalChannel.pair)


class Broken:
    """A sound end with one law broken."""

    def __init__(self, sound: Any) -> None:
        self.sound = sound

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sound, name)


class LosesTheFirst(Broken):
    def receive(self) -> Any:
        return self.sound.receive()[1:]


class Reverses(Broken):
    def receive(self) -> Any:
        return self.sound.receive()[::-1]


class HearsTwice(Broken):
    heard: tuple[Any, ...] = ()

    def receive(self) -> Any:
        before, self.heard = self.heard, tuple(self.sound.receive())
        return self.heard or before


class HearsItself(Broken):
    said: tuple[Any, ...] = ()

    def send(self, message: Any) -> None:
        self.sound.send(message)
        self.said = (*self.said, message)

    def receive(self) -> Any:
        said, self.said = self.said, ()
        return [*self.sound.receive(), *said]


class NeverEnds(Broken):
    def receive(self) -> Any:
        try:
            return self.sound.receive()
        except EOFError:
            return []


class LosesLastWords(Broken):
    closed = False

    def receive(self) -> Any:
        words = self.sound.receive()
        try:
            self.sound.receive()
        except EOFError:
            return []
        return words


class SendsIntoTheVoid(Broken):
    def send(self, message: Any) -> None:
        try:
            self.sound.send(message)
        except ConnectionError:
            return


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (LosesTheFirst, "whole, once and in order"),
        (Reverses, "whole, once and in order"),
        (HearsTwice, "received twice"),
        (HearsItself, "must hear the other"),
        (NeverEnds, "does not raise EOFError"),
        (LosesLastWords, "before the end must be heard"),
        (SendsIntoTheVoid, "must raise ConnectionError"),
    ],
)
def test_the_exam_fails_broken_channels(broken: Any, law: str) -> None:
    def make_pair() -> tuple[Any, Any]:
        ours, theirs = socket_pair()
        return broken(ours), broken(theirs)

    with pytest.raises(AssertionError, match=law):
        check_channel(make_pair, hang_up)
