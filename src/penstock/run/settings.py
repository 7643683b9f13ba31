"""What a person may say about a run as a whole."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import Refused


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Budget, seed, workers, and trouble on request."""

    seed: int = 0
    """Every random draw follows from it."""
    steps: int = 1_000_000
    """Agent decisions trained on over all lanes; the run ends with the first whole batch at or past it."""
    minutes: float | None = None
    """Stop at the first version boundary after this long."""
    until_return: float | None = None
    """Stop when the mean of the last 100 training episodes reaches this."""
    workers: int | None = None
    """Sampler processes; 0: everything in one process; none: one less than there are cores, or as many as there are cores
    where environments take longer than learning from them."""
    chaos: str | None = None
    """Trouble on request: delays[:ms],slow:WORKER=FACTOR."""
    digest: Literal["standard", "full"] = "standard"
    """full: observations enter the digest too."""
    lease_s: float = 300.0
    """A segment that takes longer than this for each block of its worker is given up (async) or ends the worker (else).
    The learner has as long for an update."""
    experiment: bool = False
    """Let through what an algorithm calls unsound: more staleness than its correction can stand, as an experiment's control."""
    debug: bool = False
    """Check the law's invariants after every event."""

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise Refused(f"--seed must be 0 or more, not {self.seed}")
        if self.steps < 1:
            raise Refused(f"--steps must be 1 or more, not {self.steps}")
        if self.workers is not None and self.workers < 0:
            raise Refused(f"--workers must be 0 or more, not {self.workers}")
        if self.minutes is not None and not self.minutes > 0:
            raise Refused(f"--minutes must be above 0, not {self.minutes}")
        if self.until_return is not None and math.isnan(self.until_return):
            raise Refused("--until-return must be a number, or none for no target; not nan")
        if not self.lease_s > 0:
            raise Refused(f"run.lease_s must be above 0, not {self.lease_s}")
