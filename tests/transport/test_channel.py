"""The pipe: whole messages, descriptors beside them, and the truth about the other end."""

from __future__ import annotations

import os
import socket

import msgspec
import numpy as np
import pytest

from penstock.memory.arena import Arena
from penstock.transport.channel import MAX_MESSAGE_BYTES, LocalChannel, SocketChannel
from penstock.transport.messages import Done, HandIn, Save, Start, Stop, Up


@pytest.fixture
def ends() -> tuple[SocketChannel, SocketChannel]:
    ours, theirs = SocketChannel.pair()
    return ours, SocketChannel(theirs)


def test_messages_arrive_whole_and_in_order(ends):
    ours, theirs = ends
    sent = [Start(number, 0, 0, 0) for number in range(50)] + [Up(tuple(range(1000))), Stop()]
    for message in sent:
        ours.send(message)
    assert theirs.receive() == sent


def test_receive_never_waits_and_wait_says_whether_it_would(ends):
    ours, theirs = ends
    assert theirs.receive() == []
    assert not theirs.wait(0)
    ours.send(Stop())
    assert theirs.wait(0)
    assert theirs.receive() == [Stop()]


def test_received_descriptors_do_not_reach_programs_that_are_started_here(ends):
    ours, theirs = ends
    arena = Arena.create("test", 8)
    ours.send(Stop(), [arena.fd])
    theirs.receive()
    (fd,) = theirs.descriptors
    assert not os.get_inheritable(fd)
    os.close(fd)


def test_both_ways_at_once(ends):
    ours, theirs = ends
    ours.send(HandIn(1))
    theirs.send(Up((4,)))
    assert (ours.receive(), theirs.receive()) == ([Up((4,))], [HandIn(1)])


def test_the_end_comes_after_the_last_words(ends):
    ours, theirs = ends
    theirs.send(HandIn(1))
    theirs.send(HandIn(2))
    theirs.close()
    assert ours.receive() == [HandIn(1), HandIn(2)]
    assert ours.wait(0)  # a selector wakes for the end
    with pytest.raises(EOFError):
        ours.receive()
    with pytest.raises(EOFError):
        ours.receive()


def test_a_peer_that_dies_with_our_words_unread_is_still_heard(ends):
    """Linux then reports a reset first; what the peer said before must not be lost over it."""
    ours, theirs = ends
    ours.send(Stop())
    theirs.send(HandIn(1))
    theirs.send(HandIn(2))
    theirs.close()  # never read Stop
    heard = ours.receive()
    assert heard == [HandIn(1), HandIn(2)]
    with pytest.raises(EOFError):
        ours.receive()


def test_a_real_process_that_dies_is_heard_to_the_end():
    ours, theirs = SocketChannel.pair()
    ours.send(Stop())
    child = os.fork()
    if child == 0:  # it only writes and dies: nothing of this process may run in it
        SocketChannel(theirs).send(HandIn(7))
        os._exit(9)
    theirs.close()
    os.waitpid(child, 0)
    assert ours.receive() == [HandIn(7)]
    with pytest.raises(EOFError):
        ours.receive()


def test_sending_to_who_is_gone_is_an_error(ends):
    ours, theirs = ends
    theirs.close()
    with pytest.raises(ConnectionError):
        ours.send(Stop())


def test_descriptors_travel_with_their_message(ends):
    ours, theirs = ends
    arenas = [Arena.create("test", 8) for _ in range(2)]
    for number, arena in enumerate(arenas):
        np.frombuffer(arena.memory, np.uint8)[0] = number + 1
    ours.send(Stop(), descriptors=[arena.fd for arena in arenas])
    ours.send(HandIn(3))
    for arena in arenas:
        arena.close()
    assert theirs.receive() == [Stop(), HandIn(3)]
    received = [Arena(fd, 4096) for fd in theirs.descriptors]
    assert [arena.memory[0] for arena in received] == [1, 2]
    assert len(theirs.descriptors) == 2


def test_the_greatest_message_fits_and_a_greater_one_is_refused_by_name(ends):
    ours, theirs = ends
    fits = Save({"text": "x" * (MAX_MESSAGE_BYTES - 100)})
    ours.send(fits)
    assert theirs.receive() == [fits]
    with pytest.raises(ValueError, match=r"a message of \d+ bytes is too large: Save"):
        ours.send(Save({"text": "x" * MAX_MESSAGE_BYTES}))
    ours.send(Stop())
    assert theirs.receive() == [Stop()]  # the refusal left nothing behind


def test_what_is_no_message_is_not_passed_on(ends):
    ours, theirs = ends
    socket.socket.sendall(ours._socket, b"garbage")
    with pytest.raises(msgspec.DecodeError):
        theirs.receive()


def test_within_one_process_the_same_without_a_socket():
    one, other = LocalChannel.pair()
    done = Done(1, 2, 3, False, 0.0, 0.0, 0.0, 0.0, None, 0)
    one.send(Stop(), descriptors=[3])
    one.send(HandIn(1))
    other.send(done)
    assert other.receive() == [Stop(), HandIn(1)]
    assert other.receive() == []
    assert one.receive() == [done]
    assert one.fileno() == -1
