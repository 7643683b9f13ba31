"""The line to a lane in a thread does what a connection between processes does; the same tests for both."""

from __future__ import annotations

import os
import select
import threading
from multiprocessing.connection import Pipe
from typing import Any

import pytest

from penstock.envs.lines import open_line

BOTH = pytest.mark.parametrize("opened", [open_line, Pipe], ids=["line", "connection"])


def audible(end: Any) -> bool:
    return bool(select.select([end], [], [], 0)[0])


@BOTH
def test_answers_are_heard_one_by_one(opened: Any) -> None:
    block, thread = opened()
    for question in (b"r", b"s"):
        block.send_bytes(question)
        assert thread.recv_bytes() == question
    assert not audible(block)
    thread.send_bytes(b"")
    thread.send_bytes(b"fault")
    assert [block.recv_bytes(), audible(block), block.recv_bytes(), audible(block)] == [b"", True, b"fault", False]
    block.close(), thread.close()


@BOTH
def test_an_end_is_heard_after_what_was_said_before_it(opened: Any) -> None:
    block, thread = opened()
    thread.send_bytes(b"last")
    thread.close()
    assert block.recv_bytes() == b"last"
    assert audible(block)
    with pytest.raises(EOFError):
        block.recv_bytes()
    block.close()


@BOTH
def test_who_waits_for_a_question_hears_that_none_will_come(opened: Any) -> None:
    block, thread = opened()
    heard: list[type] = []

    def wait() -> None:
        with pytest.raises(EOFError) as caught:
            thread.recv_bytes()
        heard.append(caught.type)

    waiting = threading.Thread(target=wait, daemon=True)
    waiting.start()
    block.close()
    waiting.join(5.0)
    assert heard == [EOFError]
    thread.close()


@BOTH
def test_a_late_answer_rings_at_nobody_elses_door(opened: Any) -> None:
    """The block has gone, and its descriptor's number has been given to somebody else."""
    block, thread = opened()
    number = block.fileno()
    block.close()
    reading, writing = os.pipe()
    assert number in (reading, writing)
    with pytest.raises(OSError):
        thread.send_bytes(b"")
    assert not audible(reading)
    for descriptor in (reading, writing):
        os.close(descriptor)
    thread.close()


@BOTH
def test_closing_again_does_nothing(opened: Any) -> None:
    for end in opened():
        end.close()
        end.close()
