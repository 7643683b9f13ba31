"""What a person may say about how components compute. None of it depends on the machine that the run happens to be on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class ComputeSettings:
    """Devices, threads and number formats."""

    inference: Literal["local"] = "local"
    """Where policies act: local, in the sampler."""
    backend: Literal["auto", "numpy", "torch"] = "auto"
    """What samplers compute with. auto: numpy for the built-in MLP, torch for networks of your own."""
    device: str = "cpu"
    """Where the learner trains."""
    sampler_threads: int = 1
    """Threads of each sampler's forward passes."""
    learner_threads: int = 1
    """Threads of the learner's updates."""
    flush_denormal: bool = True
    """Treat denormal numbers as zero while learning."""
