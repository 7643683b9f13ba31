"""An error as a message: its kind, one line, its story, and never too long to be said."""

from __future__ import annotations

import pytest

from penstock.core.errors import EnvironmentFault, NonFinite
from penstock.transport.channel import SocketChannel
from penstock.transport.messages import Fault
from penstock.workers.faults import fault_of


def told(error: BaseException, **more: str) -> Fault:
    try:
        raise error
    except type(error) as caught:
        return fault_of(caught, **more)


def test_an_error_of_ours_keeps_its_kind_and_its_story():
    fault = told(EnvironmentFault("a gear broke", details="the story"))
    assert fault == Fault("EnvironmentFault", "a gear broke", "the story")


def test_without_a_story_the_traceback_is_the_story():
    fault = told(NonFinite("a loss"))
    assert fault.kind == "NonFinite"
    assert "Traceback" in fault.details
    assert "test_worker_faults" in fault.details


def test_any_other_error_is_a_failed_run_that_names_it():
    fault = told(KeyError("gear"))
    assert fault.kind == "RunFailed"
    assert fault.message.startswith("KeyError: 'gear' (")
    assert fault.message.endswith("test_worker_faults.py, line 15)"), "where in the person's own code"


def test_what_a_lanes_process_said_as_it_died_goes_before_the_story():
    assert told(KeyError("gear"), said="Fatal Python error\n").details.startswith("Fatal Python error\nTraceback")
    fault = told(EnvironmentFault("it died", details="the rest"), said="Fatal Python error\n")
    assert fault.details == "Fatal Python error\nthe rest"
    assert told(EnvironmentFault("it died", details="the rest")).details == "the rest"


@pytest.mark.parametrize(
    "error", [ValueError("\N{BUG}" * 10**6), EnvironmentFault("\N{BUG}" * 10**6, details="\N{BUG}" * 10**6)]
)
def test_however_long_it_is_it_can_be_sent(error):
    ours, theirs = SocketChannel.pair()
    ours.send(told(error))
    (heard,) = SocketChannel(theirs).receive()
    assert "\N{BUG}" in heard.message
    assert heard.details
