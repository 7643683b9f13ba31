"""The board gives the version that was asked for, whole, or says that it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from penstock.core.errors import RunFailed
from penstock.weights.board import Board, TornRead

WRITER = """
import sys, time
import numpy as np
from penstock.weights.board import Board
fd, size, places, seconds = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
board = Board.attach(fd, num_weights=size, num_statistics=2, places=places)
until, version = time.monotonic() + seconds, 0
print("up", flush=True)
while time.monotonic() < until:
    version += 1
    board.publish(version, np.full(size, version % 1000, np.float32), np.full(2, float(version)))
print(version)
"""


def board_with(versions: int, *, staleness: int = 1) -> Board:
    board = Board.create(num_weights=3, num_statistics=2, staleness=staleness)
    for version in range(versions):
        board.publish(version, np.full(3, version, np.float32), np.full(2, -version, np.float64))
    return board


def loaded(board: Board, version: int) -> tuple[list[float], list[float]]:
    weights, statistics = np.zeros(3, np.float32), np.zeros(2)
    board.load(version, weights, statistics)
    return weights.tolist(), statistics.tolist()


@pytest.mark.parametrize("staleness", [0, 1, 4])
def test_the_last_staleness_and_two_versions_are_there(staleness):
    versions = 9
    board = board_with(versions, staleness=staleness)
    assert board.places == staleness + 2
    for version in range(versions - board.places, versions):
        assert loaded(board, version) == ([version] * 3, [-version] * 2)


@pytest.mark.parametrize("version", [-1, 5, 9, 12])
def test_what_is_not_there_is_said(version):
    board = board_with(9)  # places 3: versions 6, 7, 8
    with pytest.raises(TornRead, match=f"weights of version {version} are not on the board"):
        loaded(board, version)
    assert issubclass(TornRead, RunFailed)


def test_an_empty_board_holds_no_version():
    with pytest.raises(TornRead):
        loaded(Board.create(num_weights=3, num_statistics=2, staleness=0), 0)


def test_a_place_that_is_being_written_is_not_read():
    board = board_with(3)
    board._sequence[1, 0] += 1  # as in the middle of publish
    with pytest.raises(TornRead):
        loaded(board, 1)
    assert loaded(board, 2) == ([2] * 3, [-2] * 2)


def test_a_loaded_version_is_a_copy():
    board = board_with(1)
    weights = np.zeros(3, np.float32)
    board.load(0, weights, np.zeros(2))
    board.publish(3, np.full(3, 3, np.float32), np.zeros(2))  # the same place
    assert weights.tolist() == [0, 0, 0]


def test_no_read_is_torn_while_another_process_writes():
    """The writer laps the reader all the time; what is read must be of one version or refused."""
    size, places = 200_000, 2
    board = Board.create(num_weights=size, num_statistics=2, staleness=places - 2)
    command = [sys.executable, "-c", WRITER, str(board.arena.fd), str(size), str(places), "1.0"]
    weights, statistics = np.zeros(size, np.float32), np.zeros(2)
    whole = refused = 0
    with subprocess.Popen(command, pass_fds=[board.arena.fd], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        until = time.monotonic() + 0.9
        while time.monotonic() < until:
            version = int(board._version[:, 0].max())
            if version < 0:
                continue
            try:
                board.load(version, weights, statistics)
            except TornRead:
                refused += 1
                continue
            whole += 1
            assert weights[0] == version % 1000
            assert (weights == weights[0]).all(), "a torn read was taken for whole"
            assert statistics.tolist() == [version, version]
        published = int(writer.communicate(timeout=30)[0])
    assert os.fstat(board.arena.fd).st_size == board.arena.num_bytes
    assert published > 10
    assert whole > 0
    assert refused > 0, "reader and writer never met: the test shows nothing"
