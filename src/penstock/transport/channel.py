"""A pipe between two processes of one machine that carries whole messages.

SOCK_SEQPACKET keeps message borders, reports the other end's death as an end of file, and wakes a selector: nobody polls.
"""

from __future__ import annotations

import array
import os
import selectors
import socket
from collections import deque
from collections.abc import Sequence

from penstock.transport.messages import Anything, decode, encode

MAX_DESCRIPTORS = 4
_ANCILLARY_BYTES = socket.CMSG_LEN(MAX_DESCRIPTORS * array.array("i").itemsize)
MAX_MESSAGE_BYTES = 1 << 17  # well under the default socket buffer, so that one message always fits


class ChannelClosed(ConnectionError, EOFError):
    """The other end is gone. A kind of its own, so that it is never taken for an error of code that a worker runs."""


class SocketChannel:
    """One end. Sending waits only when the other end has stopped reading for a whole socket buffer; offering never does."""

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self.descriptors: list[int] = []  # received with messages, not yet taken
        self._socket.setblocking(True)

    @classmethod
    def pair(cls) -> tuple[SocketChannel, socket.socket]:
        """A channel for this side and a bare socket to hand over."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return cls(ours), theirs

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: Anything, descriptors: Sequence[int] = ()) -> None:
        """Hand over a message and copies of these descriptors; raises ChannelClosed once the other end is gone."""
        data = _encoded(message)
        try:
            if descriptors:
                socket.send_fds(self._socket, [data], descriptors)
            else:
                self._socket.sendall(data)
        except ConnectionError as error:
            raise ChannelClosed("the other end of the channel is gone") from error

    def offer(self, message: Anything) -> bool:
        """Hand over a message if there is room for it now; raises ChannelClosed once the other end is gone."""
        try:
            self._socket.send(_encoded(message), socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError as error:
            raise ChannelClosed("the other end of the channel is gone") from error
        return True

    def receive(self) -> list[Anything]:
        """All messages that are there, without waiting; raises ChannelClosed once the other end is gone and all was read."""
        messages: list[Anything] = []
        while True:
            try:
                data, fds = self._receive_one()
            except BlockingIOError:
                return messages
            except ConnectionResetError:
                continue  # it left without reading all that we sent; what it sent is still there to be read
            self.descriptors += fds
            if not data:
                if messages:
                    return messages  # the end of file is found again at the next call
                raise ChannelClosed("the other end of the channel is gone")
            messages.append(decode(data))

    def _receive_one(self) -> tuple[bytes, list[int]]:
        """socket.recv_fds would do, if Python 3.11's did not drop its flags and wait."""
        data, ancillary, _, _ = self._socket.recvmsg(MAX_MESSAGE_BYTES, _ANCILLARY_BYTES, socket.MSG_DONTWAIT)
        fds = array.array("i")
        for level, kind, content in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        for fd in fds:
            os.set_inheritable(fd, False)  # a program that an environment starts must not keep our channels open
        return data, fds.tolist()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until there is something to receive."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            return bool(selector.select(timeout_s))

    def close(self) -> None:
        self._socket.close()


def _encoded(message: Anything) -> bytes:
    data = encode(message)
    if len(data) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {len(data)} bytes is too large: {type(message).__name__}")
    return data


class LocalChannel:
    """Both ends in one process: what is sent is appended to a queue that the other side drains."""

    def __init__(self, outgoing: deque[Anything], incoming: deque[Anything]) -> None:
        self._outgoing, self._incoming = outgoing, incoming

    @classmethod
    def pair(cls) -> tuple[LocalChannel, LocalChannel]:
        there: deque[Anything] = deque()
        back: deque[Anything] = deque()
        return cls(there, back), cls(back, there)

    def fileno(self) -> int:
        return -1

    def send(self, message: Anything, descriptors: Sequence[int] = ()) -> None:
        del descriptors  # what both sides share is in one process already
        self._outgoing.append(message)

    def receive(self) -> list[Anything]:
        messages = list(self._incoming)
        self._incoming.clear()
        return messages
