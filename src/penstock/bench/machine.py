"""What a figure was measured on. Reads; measures nothing."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path
from typing import Any

from penstock.run.summary import version_info
from penstock.run.wiring import num_cores

QUIET_LOAD = 0.5
"""Above this many running processes on average over the last minute, somebody else is using the machine."""

_BFLOAT16 = {"amx_bf16", "avx512_bf16", "bf16"}


def describe() -> dict[str, Any]:
    """Processor, cores, versions, commit, and how busy the machine was before anything was measured."""
    return {
        "cpu": cpu_model(),
        "cores": num_cores(),
        "python": platform.python_version(),
        "numpy": importlib.metadata.version("numpy"),
        **version_info(),
        "load_before": load(),
    }


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name for itself."""
    for line in _lines(cpuinfo):
        name, _, value = line.partition(":")
        if name.strip() == "model name" and value.strip():
            return value.strip()
    return platform.processor() or platform.machine()


def has_bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether the processor multiplies bfloat16 itself."""
    for line in _lines(cpuinfo):
        name, _, value = line.partition(":")
        if name.strip().lower() in ("flags", "features"):
            return bool(_BFLOAT16 & set(value.lower().split()))
    return False


def load() -> float | None:
    """Running processes, mean of the last minute; None where the system does not say."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def warn_if_busy(machine: dict[str, Any]) -> None:
    """Figures of a busy machine are low; say so before somebody believes them."""
    before = machine["load_before"]
    if before is not None and before > QUIET_LOAD:
        warning = f"the machine is not quiet (load {before}): figures may be low; wait for its other work to end"
        print(f"penstock: {warning}", file=sys.stderr, flush=True)


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
