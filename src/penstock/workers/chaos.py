"""Trouble on request: `delays[:ms],slow:WORKER=FACTOR,kill:RATE`. Used to show that timing changes nothing that it must not.

Delays are drawn from the operating system's entropy on purpose: a digest that survives them survives any timing.
"""

from __future__ import annotations

import math
import random
import time
from dataclasses import dataclass, field

from penstock.core.errors import Refused
from penstock.core.protocols import BlockEnvironment, Lanes
from penstock.core.specs import Array, EnvironmentSpec, LanePosition

DEFAULT_DELAY_MS = 3.0


@dataclass(frozen=True)
class ChaosPlan:
    """What was asked for."""

    delay_ms: float = 0.0
    slow: dict[int, float] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str | None) -> ChaosPlan:
        """Read the command line's form."""
        delay_ms, slow = 0.0, {}
        for part in filter(None, (text or "").split(",")):
            name, _, value = part.strip().partition(":")
            try:
                if name == "delays":
                    delay_ms = float(value) if value else DEFAULT_DELAY_MS
                elif name == "slow":
                    worker, _, factor = value.partition("=")
                    slow[int(worker)] = float(factor)
                elif name == "kill":
                    raise Refused("--chaos kill needs workers that are replaced, which this version does not do yet")
                else:
                    raise Refused(f"--chaos knows delays[:ms] and slow:WORKER=FACTOR, not '{part}'")
            except ValueError as error:
                raise Refused(f"--chaos '{part}' is not of the form delays[:ms] or slow:WORKER=FACTOR") from error
        possible = 0 <= delay_ms < math.inf and all(worker >= 0 and 1 <= slow[worker] < math.inf for worker in slow)
        if not possible:
            raise Refused("--chaos wants delays of 0 ms or more, workers from 0 on and slow factors of 1 or more")
        return cls(delay_ms, slow)


class Delays:
    """Every other time, on average, an exponentially distributed pause."""

    def __init__(self, mean_ms: float) -> None:
        self._mean_s = mean_ms / 1000
        self._random = random.SystemRandom()
        self.events = 0

    def maybe(self) -> None:
        """Pause or do not."""
        if self._mean_s and self._random.random() < 0.5:
            self.events += 1
            time.sleep(self._random.expovariate(1 / self._mean_s))

    def take_events(self) -> int:
        """How often since last asked."""
        events, self.events = self.events, 0
        return events


class SlowBlock:
    """A block whose every step takes `factor` times as long. Only for blocks that step when asked (fileno -1)."""

    def __init__(self, inner: BlockEnvironment, factor: float) -> None:
        self._inner = inner
        self._factor = factor
        self._sent = 0.0
        self.spec: EnvironmentSpec = inner.spec
        self.num_lanes = inner.num_lanes
        self.observation: Array = inner.observation
        self.reward: Array = inner.reward
        self.terminated: Array = inner.terminated
        self.truncated: Array = inner.truncated
        self.ended: Array = inner.ended
        self.valid: Array = inner.valid

    def reset(self) -> None:
        self._inner.reset()

    def send(self, lanes: Lanes, actions: Array) -> None:
        self._sent = time.perf_counter()
        self._inner.send(lanes, actions)

    def receive(self, timeout_s: float | None = None) -> Lanes:
        lanes = self._inner.receive(timeout_s)
        time.sleep((time.perf_counter() - self._sent) * (self._factor - 1))
        return lanes

    def fileno(self) -> int:
        return self._inner.fileno()

    def position(self, lane: int) -> LanePosition:
        return self._inner.position(lane)

    def close(self) -> None:
        self._inner.close()


class SlowEnvironment:
    """Wraps what makes a plain environment, so that each of its steps takes `factor` times as long."""

    def __init__(self, factor: float) -> None:
        self._factor = factor

    def __call__(self, environment: object) -> object:
        step = environment.step  # type: ignore[attr-defined]  # any Gymnasium environment; envs owns its type

        def slow_step(action: object) -> object:
            start = time.perf_counter()
            result = step(action)
            time.sleep((time.perf_counter() - start) * (self._factor - 1))
            return result

        environment.step = slow_step  # type: ignore[attr-defined]  # as above
        return environment
