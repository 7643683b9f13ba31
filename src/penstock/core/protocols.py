"""The doors between rooms. A room that offers one of these never sees the room that uses it.

Those that others may implement (BlockEnvironment, Actor, Channel) have a conformance suite in `penstock.testing`, which third
parties can run on their own; a World is examined by the runs of `testing.simulated_run`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.core.clock import Clock
from penstock.core.specs import Array, EnvironmentSpec, LanePosition

ALL: slice = slice(None)
"""Every lane of the block. `receive` answers with it when no lane is missing, so that rows are copied as one piece."""

Lanes = slice | Array


class BlockEnvironment(Protocol):
    """B lanes of one environment in NEXT_STEP form, stepped together or each at its own pace.

    The arrays below have one row per lane, and are overwritten by `reset` and `receive`. Where an episode ends, `ended` is
    set, and `terminated` or `truncated` with it; a life lost in a game that goes on sets `terminated` alone. After a step that
    ends an episode the row of `observation` is the episode's final observation; the lane's next step, whatever its action,
    resets it: that step has `valid` false, reward 0 and no flag, and its observation is the new episode's first.
    """

    spec: EnvironmentSpec
    num_lanes: int
    observation: Array  # [B, *observation shape]
    reward: Array  # [B] float64, raw
    terminated: Array  # [B] bool
    truncated: Array  # [B] bool
    ended: Array  # [B] bool; the next step resets the lane
    valid: Array  # [B] bool; false on a reset step

    def reset(self) -> None:
        """Start every lane's first episode; fills `observation`."""

    def send(self, lanes: Lanes, actions: Array) -> None:
        """Start a step of these lanes. `actions` is [B, ...]; only the rows of `lanes` are read."""

    def receive(self, timeout_s: float | None = None) -> Lanes:
        """Wait for lanes that were sent (None: until one is there; 0: look only); their rows are now fresh."""

    def fileno(self) -> int:
        """A descriptor that is readable while `receive(0)` would return lanes; -1: always at once after `send`."""

    def position(self, lane: int) -> LanePosition:
        """Where this lane stands, for reports. `lane` counts within the block; the answer's lane is global."""

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Acted:
    """What one forward pass of a block gives; every array has the block's B rows."""

    action: Array
    log_prob: Array
    value: Array


class Actor(Protocol):
    """A policy that acts for whole blocks. NumPy at the door, whatever computes inside."""

    def load(self, weights: Array, statistics: Array) -> None:
        """Take a copy of these flat weights and normaliser statistics."""

    def noise(self, generator: Any, steps: int, lanes: int) -> Array:
        """The random numbers of `steps` steps of `lanes` lanes, [steps, lanes, ...]."""

    def act(self, observation: Array, noise: Array) -> Acted:
        """Act on [B, ...] observations; row i depends on row i alone."""

    def best(self, observation: Array) -> Array:
        """The distribution's mode, for evaluation."""

    def value(self, observation: Array) -> Array:
        """The value of each row, [B]."""

    def to_environment(self, action: Array) -> Array:
        """What the environment is given for a recorded action (clipped to its bounds, shifted to its start)."""


class Sink(Protocol):
    """Somewhere records go: a file, TensorBoard, a terminal."""

    def write(self, record: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class Channel(Protocol):
    """One end of a pipe that carries whole messages."""

    def send(self, message: Any, descriptors: Sequence[int] = ()) -> None: ...

    def receive(self) -> Sequence[Any]:
        """All messages that are there, without waiting; raises EOFError once the other end is gone."""

    def fileno(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Said:
    """A worker has said something."""

    worker: int
    message: Any


@dataclass(frozen=True, slots=True)
class Ended:
    """A worker is confirmed dead: exit code, or minus the number of the signal; and what can still be told of it."""

    worker: int
    code: int
    words: str = ""  # its traceback, if it died of a signal that leaves one
    under_way: tuple[str, ...] | None = None  # what its environments were at; None: it hosted none, or nobody knows


@dataclass(frozen=True, slots=True)
class Interrupted:
    """Somebody asks the run to stop."""

    signal: int


Happening = Said | Ended | Interrupted


class World(Protocol):
    """What the supervisor acts upon: real processes, one process, or a simulation. The only place where it waits."""

    @property
    def clock(self) -> Clock: ...

    def open(self) -> None:
        """Take what a run shares, and wait until workers can be started."""

    def start_learner(self, worker: int) -> None: ...

    def start_inference(self, worker: int) -> None:
        """Start the inference server, before any sampler."""

    def start_sampler(self, worker: int, index: int, blocks: tuple[int, ...]) -> None: ...

    def send(self, worker: int, message: Any) -> None:
        """Hand over a message; to a worker that is gone it is lost, and `Ended` will say so."""

    def kill(self, worker: int) -> None: ...

    def wait(self, timeout_s: float | None) -> list[Happening]:
        """Wait until something happens or the time is over; what happened, in order of each worker."""

    def close(self, grace_s: float) -> None:
        """End every worker that is left: those that were told to stop get this long."""
