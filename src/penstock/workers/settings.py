"""What a person may say about how components compute. None of it depends on the machine that the run happens to be on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import Refused

_DEVICE = re.compile(r"(cpu|cuda|mps|xpu)(:[0-9]+)?")
"""Those that torch trains on. Which of them are there is the learner's to see: this room's settings load no torch."""


@dataclass(frozen=True, kw_only=True)
class ComputeSettings:
    """Devices, threads and number formats."""

    inference: Literal["local", "server"] = "local"
    """Where policies act: local, in each sampler, or server, in one process that acts for all of them."""
    backend: Literal["auto", "numpy", "torch"] = "auto"
    """What policies act with. auto: numpy for the built-in MLP, torch for networks of your own."""
    device: str = "cpu"
    """Where the learner trains and, with inference=server, where networks act that act with torch: cpu, cuda, mps or xpu,
    with a number where there are several (cuda:1)."""
    sampler_threads: int = 1
    """Threads of the forward passes, in each sampler or in the inference server."""
    learner_threads: int = 1
    """Threads of the learner's updates."""
    flush_denormal: bool = True
    """Treat denormal numbers as zero while learning."""

    def __post_init__(self) -> None:
        for name in ("sampler_threads", "learner_threads"):
            if getattr(self, name) < 1:
                raise Refused(f"compute.{name} must be 1 or more, not {getattr(self, name)}")
        if not _DEVICE.fullmatch(self.device):
            raise Refused(
                f"--device {self.device} is none: those are cpu, cuda, mps and xpu, or one of several, such as cuda:1"
            )
