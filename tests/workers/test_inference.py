"""The inference server: the same segments as with an actor at hand; trouble on the line; a server that waits for nobody."""

from __future__ import annotations

import copy
import select
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from counting_rows import same_bytes
from worker_plans import (
    LANES,
    MODEL,
    SEED,
    SPEC,
    STEPS,
    board_of,
    inference_plan,
    new_asks,
    new_slots,
    sampler_plan,
    weights_of,
)

from penstock.core.seeds import Purpose, stream
from penstock.models.actor import build_actor
from penstock.store.slots import Segment
from penstock.transport.channel import LocalChannel, SocketChannel
from penstock.transport.messages import Answer, Ask, Done, HandIn, LetGo, Ping, Pong, Serve, Start, Stop, Up, WriteOff
from penstock.weights.board import TornRead
from penstock.workers import inference
from penstock.workers.acting import Line
from penstock.workers.chaos import ChaosPlan
from penstock.workers.inference import Caller, InferenceServer, answer_callers
from penstock.workers.sampler import Sampler, serve, work_inline


class Desk:
    """A sampler with a line, and the server at its other end, which answers when it is told to."""

    def __init__(self, versions: int = 3, chaos: ChaosPlan | None = None, **changes: Any) -> None:
        self.slots, self.board, asks = new_slots(), board_of(versions), new_asks()
        self.server = InferenceServer(inference_plan(chaos=chaos or ChaosPlan()), self.slots, self.board, asks)
        self.ours, theirs = LocalChannel.pair()
        self.line, far_end = LocalChannel.pair()
        self.sampler = Sampler(sampler_plan(**changes), self.slots, Line(asks, far_end), theirs)
        self.sampler.open()
        assert self.ours.receive() == [Up((0, 1))]

    def work(self, *messages: Any) -> list[Any]:
        """Until every block that was started is done; what was said of it."""
        self.sampler.obey(messages)
        while True:
            if ready := self.sampler.ready_runs():
                self.sampler.advance(ready[0])
            elif asked := self.line.receive():
                self.sampler.take([self.server.answer(ask) for ask in asked])
            elif awaited := self.sampler.awaited_runs():
                select.select([run.environment.fileno() for run in awaited], [], [])
                for run in awaited:
                    self.sampler.advance(run)
            else:
                return self.ours.receive()


def segments_at_hand(starts: list[list[Start]], **changes: Any) -> list[Segment]:
    """What a sampler with actors of its own makes of these."""
    slots = new_slots()
    _, theirs = LocalChannel.pair()
    sampler = Sampler(sampler_plan(**changes), slots, board_of(3), theirs)
    sampler.open()
    found = []
    for together in starts:
        sampler.obey(together)
        while any(run.number is not None for run in sampler._runs.values()):
            work_inline(sampler)
        found += [copy.deepcopy(slots[start.slot]) for start in together]
    sampler.close()
    return found


STARTS = [
    [Start(0, 0, 0, 0), Start(1, 1, 1, 2)],
    [Start(2, 0, 2, 1)],
    [Start(3, 1, 3, 1), Start(4, 0, 0, 2)],
    [Start(5, 0, 1, 2), Start(6, 1, 2, 0)],
]


@pytest.mark.parametrize("drift", [False, True])
@pytest.mark.parametrize("parallel", ["serial", "threads"])
def test_segments_are_those_of_an_actor_at_hand_to_the_bit(parallel, drift):
    changes = {"parallel": parallel, "drift": drift}
    desk = Desk(**changes)
    found = []
    for together in STARTS:
        said = desk.work(*together)
        assert {done.segment for done in said} == {start.segment for start in together}
        found += [copy.deepcopy(desk.slots[start.slot]) for start in together]
    desk.sampler.close()
    expected = segments_at_hand(STARTS, **changes)
    assert same_bytes(found, expected)
    assert not same_bytes(found[:1], expected[1:2]), "the comparison can fail"


def values_of(version: int, segment: Segment) -> np.ndarray:
    """What an actor of this version makes of the segment's rows."""
    actor = build_actor(SPEC, MODEL)
    actor.load(weights_of(version), np.zeros(0))
    return np.array([actor.value(rows) for rows in segment.observation])


def test_lanes_that_drift_are_acted_for_on_their_own_rows_with_their_own_draws():
    desk, asks = Desk(), new_asks()
    server = InferenceServer(inference_plan(), desk.slots, desk.board, asks)
    generator = np.random.default_rng(0)
    desk.slots[2].observation[...] = generator.normal(size=desk.slots[2].observation.shape)
    rows, lanes = np.array([STEPS, 2, 1]), np.arange(LANES)
    asks[1].steps[...] = rows
    assert server.answer(Ask(block=1, segment=4, version=1, slot=2, closing=False)).served
    actor = build_actor(SPEC, MODEL)
    actor.load(weights_of(1), np.zeros(0))
    noise = actor.noise(stream(SEED, Purpose.ACTION, 1, 4), STEPS, LANES)
    acted = actor.act(desk.slots[2].observation[rows, lanes], noise[np.minimum(rows, STEPS - 1), lanes])
    assert np.array_equal(asks[1].action, acted.action)
    assert np.array_equal(asks[1].log_prob, acted.log_prob)
    assert np.array_equal(asks[1].value, acted.value)


def test_a_question_is_one_forward_of_one_block_and_the_last_one_says_so():
    desk = Desk()
    desk.sampler.obey([Start(4, 1, 2, 1)])
    (run,) = desk.sampler.ready_runs()
    desk.sampler.advance(run)
    assert desk.line.receive() == [Ask(block=1, segment=4, version=1, slot=2, closing=False)]
    assert desk.sampler.ready_runs() == []
    desk = Desk()
    desk.sampler.obey([Start(4, 1, 2, 1), HandIn(4)])
    asked = []
    for run in desk.sampler.ready_runs():
        desk.sampler.advance(run)
    while questions := desk.line.receive():
        asked += [ask.closing for ask in questions]
        desk.sampler.take([desk.server.answer(ask) for ask in questions])
    assert asked == [False, True]
    (done,) = desk.ours.receive()
    assert (done.steps, done.short) == (1, True)


def test_actors_are_as_few_as_versions_in_use(monkeypatch):
    built = []
    build = inference.actor_of
    monkeypatch.setattr(inference, "actor_of", lambda plan, device: built.append(device) or build(plan, device))
    desk = Desk()
    desk.server.open()
    for number, version in enumerate([0, 1, 2, 1, 0, 2]):
        desk.work(Start(2 * number, 0, 0, version), Start(2 * number + 1, 1, 1, version))
    assert built == ["cpu"]
    desk.work(Start(20, 0, 0, 0), Start(21, 1, 1, 2))
    assert len(built) == 2


def test_what_a_server_cannot_build_is_found_when_it_opens(monkeypatch):
    def fail(*_: Any) -> Any:
        raise RuntimeError("out of device memory")

    monkeypatch.setattr(inference, "actor_of", fail)
    with pytest.raises(RuntimeError, match="device memory"):
        Desk().server.open()


def test_delays_of_the_server_are_counted():
    desk = Desk(chaos=ChaosPlan(delay_ms=0.01))
    said = [done for number in range(30) for done in desk.work(Start(number, 0, 0, 0))]
    assert sum(done.chaos_events for done in said) > 0


def test_waiting_for_the_server_is_inference():
    (done,) = Desk().work(Start(0, 0, 0, 0))
    assert isinstance(done, Done)
    assert done.inference_s > 0
    assert done.environment_s > 0
    assert done.inference_s + done.environment_s <= done.elapsed_s


# ---------------------------------------------------------------- trouble


def ask_once(desk: Desk, start: Start) -> Ask:
    desk.sampler.obey([start])
    for run in desk.sampler.ready_runs():
        desk.sampler.advance(run)
    (ask,) = desk.line.receive()
    return ask


def test_a_slot_is_not_let_go_of_while_the_server_may_still_read_it():
    desk = Desk()
    ask = ask_once(desk, Start(3, 0, 0, 0))
    desk.sampler.obey([WriteOff(3)])
    assert desk.ours.receive() == []
    desk.sampler.take([desk.server.answer(ask)])
    assert desk.ours.receive() == [LetGo(3)]
    (done,) = desk.work(Start(4, 0, 1, 2))
    assert (done.segment, done.short) == (4, False)
    assert np.array_equal(desk.slots[1].value, values_of(2, desk.slots[1])), "and with another version than the lost one's"
    assert desk.slots[1].observation[0, :, 2].tolist() == [0, 0, 0], "not a step was taken of what was given up"


def test_a_version_that_has_left_the_board_is_a_segment_that_was_written_off():
    """The write-off was said before the version went, so it is there when the server says that it finds none."""
    desk = Desk(versions=2)
    ask = ask_once(desk, Start(3, 0, 0, version=9))
    answer = desk.server.answer(ask)
    assert answer == Answer(block=0, served=False, chaos_events=0)
    desk.ours.send(WriteOff(3))
    desk.sampler.take([answer])
    assert desk.ours.receive() == [LetGo(3)]
    (done,) = desk.work(Start(4, 0, 0, 1))
    assert done.segment == 4


def test_without_a_write_off_a_missing_version_is_an_error_not_another_version():
    desk = Desk(versions=2)
    ask = ask_once(desk, Start(3, 0, 0, version=9))
    with pytest.raises(TornRead, match="block 0"):
        desk.sampler.take([desk.server.answer(ask)])


@contextmanager
def running(function: Any, *arguments: Any) -> Iterator[None]:
    """In a thread of its own, which must end well, and soon after."""
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(function, *arguments)
        yield
        ended.result(timeout=10)


class Watched(SocketChannel):
    """Says when something was sent over it, or was to be."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(end)
        self.tried = threading.Event()

    def send(self, *message: Any) -> None:
        try:
            super().send(*message)
        finally:
            self.tried.set()


def test_a_sampler_without_its_server_waits_to_be_told_what_follows():
    """It finds the end of file, and nobody to ask; neither is its own fault."""
    ours, theirs = SocketChannel.pair()
    near, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    line, channel = Watched(near), SocketChannel(theirs)
    sampler = Sampler(sampler_plan(), new_slots(), Line(new_asks(), line), channel)
    sampler.open()
    far.close()
    ours.send(Start(0, 0, 0, 0))
    with running(serve, sampler, channel):
        assert line.tried.wait(10)
        ours.send(Stop())
    assert ours.receive() == [Up((0, 1))]


class Echo:
    """Answers with nothing but the block's number."""

    def answer(self, ask: Ask) -> Answer:
        return Answer(ask.block, True, 0)


def test_the_server_waits_for_nobody_who_does_not_read():
    """Far more answers than a socket has room for, and nobody takes one until all are given."""
    near, far = SocketChannel.pair()
    caller: Any = Caller(near)
    sampler, asked, heard = SocketChannel(far), 0, []
    while asked < 2000:
        while asked < 2000 and sampler.offer(Ask(asked, 0, 0, 0, False)):
            asked += 1
        caller.hear(Echo())
    assert caller.events == 3, "it waits for room to write, too"
    while len(heard) < asked:
        heard += [answer.block for answer in sampler.receive()]
        caller.send_what_fits()
    assert heard == list(range(asked))
    assert caller.events == 1


def test_the_loop_serves_whoever_it_is_told_to_and_forgets_who_is_gone():
    supervisor, theirs = SocketChannel.pair()
    lines = [SocketChannel.pair() for _ in range(3)]
    with running(answer_callers, Echo(), SocketChannel(theirs)):
        for _, far in lines:
            supervisor.send(Serve(), [far.fileno()])
            far.close()
        callers = [near for near, _ in lines]
        for number, caller in enumerate(callers):
            caller.send(Ask(number, 0, 0, 0, False))
        for number, caller in enumerate(callers):
            assert caller.wait(10)
            assert caller.receive() == [Answer(number, True, 0)]
        callers[0].close()
        callers[2].send(Ask(7, 0, 0, 0, False))
        assert callers[2].wait(10)
        assert callers[2].receive() == [Answer(7, True, 0)]
        supervisor.send(Ping())
        assert supervisor.wait(10)
        assert supervisor.receive() == [Pong()]
        supervisor.send(Stop())


def test_the_server_has_no_use_for_what_samplers_are_told():
    supervisor, theirs = SocketChannel.pair()
    supervisor.send(Start(0, 0, 0, 0))
    with pytest.raises(TypeError, match="no use for Start"):
        answer_callers(Echo(), SocketChannel(theirs))  # type: ignore[arg-type]  # all that is used of a server


def test_observations_are_read_in_the_slot_and_nothing_is_written_there():
    desk = Desk()
    ask = ask_once(desk, Start(3, 0, 0, 0))
    before = copy.deepcopy(desk.slots[0])
    desk.server.answer(ask)
    assert same_bytes([before], [desk.slots[0]])
    assert np.isfinite(desk.slots[0].observation[0]).all()
