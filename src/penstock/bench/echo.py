"""The other process of a round trip: started as `python -m penstock.bench.echo KIND DESCRIPTOR...`, answers until told to end.

Its first half is what the measuring side uses. Imports no torch, so that it starts at once.
"""

from __future__ import annotations

import os
import selectors
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from penstock.transport.channel import SocketChannel
from penstock.transport.messages import Done, Start, Stop

BELL = "eventfd" if hasattr(os, "eventfd") else "pipe"
"""What two processes wake one another with."""

ROUNDS = 100
"""Round trips of one call of a kernel."""

_RING, _END = (1).to_bytes(8, sys.byteorder), (2).to_bytes(8, sys.byteorder)
START = Start(segment=1, block=2, slot=3, version=4)
DONE = Done(
    segment=1,
    steps=32,
    rows=1024,
    short=False,
    environment_s=0.1,
    inference_s=0.1,
    idle_s=0.1,
    elapsed_s=0.3,
    cpu_s=0.3,
    chaos_events=0,
)


@contextmanager
def bell_round_trips() -> Iterator[Callable[[], int]]:
    """A kernel that rings the other process and waits for its ring; counts round trips."""
    (hear_there, ring_there), (hear_here, ring_here) = _bell(), _bell()
    with _other_process("bell", (hear_there, ring_here)):

        def ring() -> int:
            for _ in range(ROUNDS):
                os.write(ring_there, _RING)
                os.read(hear_here, 8)
            return ROUNDS

        try:
            yield ring
        finally:
            os.write(ring_there, _END)
    for descriptor in {hear_there, ring_there, hear_here, ring_here}:
        os.close(descriptor)


def _bell() -> tuple[int, int]:
    """The reading and the writing descriptor; an eventfd is both."""
    if BELL == "pipe":
        return os.pipe()
    descriptor = os.eventfd(0)
    return descriptor, descriptor


@contextmanager
def message_round_trips() -> Iterator[Callable[[], int]]:
    """A kernel that sends the smallest command of a run and waits for its answer; counts round trips."""
    channel, theirs = SocketChannel.pair()
    with _other_process("message", (theirs.fileno(),)), _waiting_for(channel) as selector:
        theirs.close()

        def exchange() -> int:
            for _ in range(ROUNDS):
                channel.send(START)
                selector.select()
                channel.receive()
            return ROUNDS

        try:
            yield exchange
        finally:
            channel.send(Stop())
    channel.close()


def _waiting_for(channel: SocketChannel) -> selectors.DefaultSelector:
    """A selector that lives as long as the conversation, as those of a run do."""
    selector = selectors.DefaultSelector()
    selector.register(channel, selectors.EVENT_READ)
    return selector


@contextmanager
def _other_process(kind: str, descriptors: Sequence[int]) -> Iterator[None]:
    command = [sys.executable, "-m", "penstock.bench.echo", kind, *map(str, descriptors)]
    process = subprocess.Popen(command, pass_fds=descriptors)
    try:
        yield
        process.wait(timeout=10)
    finally:
        process.kill()
        process.wait()


def answer_bell(hear: int, ring: int) -> None:
    """Ring back for every ring until the one that says to end."""
    while os.read(hear, 8) != _END:
        os.write(ring, _RING)


def answer_messages(descriptor: int) -> None:
    """A Done for every Start."""
    channel = SocketChannel(socket.socket(fileno=descriptor))
    with _waiting_for(channel) as selector:
        while selector.select():
            for message in channel.receive():
                if isinstance(message, Stop):
                    return
                channel.send(DONE)


if __name__ == "__main__":
    descriptors = [int(text) for text in sys.argv[2:]]
    if sys.argv[1] == "bell":
        answer_bell(*descriptors)
    else:
        answer_messages(*descriptors)
