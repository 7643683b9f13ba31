"""What `doctor` looks at: one small function for each fact about this machine. Starts no run and changes nothing.

torch and the extras are looked at from outside: torch in a process of its own, extras by whether they could be imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from penstock.core.errors import MissingExtra
from penstock.memory.arena import available_bytes

Status = Literal["ok", "warn", "fail", "-"]
"""The last: not there, and not needed."""

EXTRAS: dict[str, tuple[str, ...]] = {
    "atari": ("ale_py",),
    "mujoco": ("mujoco",),
    "box2d": ("Box2D",),
    "envpool": ("envpool",),
    "minigrid": ("minigrid",),
    "vizdoom": ("vizdoom",),
    "multiagent": ("pettingzoo", "mpe2"),
    "page": ("nicegui",),
    "video": ("av",),
    "logs": ("tensorboard", "wandb"),
    "export": ("onnx", "onnxruntime"),
    "cluster": ("ray",),
    "sweep": ("optuna", "matplotlib"),
}
"""Extra to the modules it brings."""

OLDEST_PYTHON = (3, 11)
OLDEST_TORCH = (2, 6)
FEW_BYTES = 1 << 30
FEW_DESCRIPTORS = 1024

_LOOK_AT_TORCH = (
    "import json, torch; print(json.dumps([torch.__version__, torch.get_num_threads(), torch.cuda.is_available()]))"
)


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the table."""

    what: str
    status: Status
    found: str
    advice: str = ""


def every_check() -> list[Check]:
    """All of them, in the order in which a person would ask."""
    return [
        python(),
        torch(),
        gymnasium(),
        processors(),
        bfloat16(),
        memory(),
        shared_memory(),
        events(),
        descriptors(),
        terminal(),
        *(extra(name, modules) for name, modules in EXTRAS.items()),
    ]


def python() -> Check:
    """3.11 or newer."""
    found = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check("python", "ok", found)
    return Check("python", "fail", found, "use Python 3.11 or newer")


def torch() -> Check:
    """There, new enough, and able to start."""
    if importlib.util.find_spec("torch") is None:
        return Check("torch", "fail", "not installed", "pip install 'torch>=2.6'")
    looked = subprocess.run([sys.executable, "-c", _LOOK_AT_TORCH], capture_output=True, text=True, check=False)
    if looked.returncode != 0:
        cause = (looked.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        return Check("torch", "fail", f"does not import: {cause}", "install it anew: pip install --force-reinstall torch")
    version, threads, cuda = json.loads(looked.stdout.strip().splitlines()[-1])
    found = f"{version}, {threads} threads by default, {'CUDA' if cuda else 'no CUDA'}"
    if _release(version) < OLDEST_TORCH:
        return Check("torch", "fail", found, "pip install --upgrade 'torch>=2.6'")
    return Check("torch", "ok", found)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("+")[0].split(".")[:2])


def gymnasium() -> Check:
    """There and of the 1.x line."""
    try:
        version = importlib.metadata.version("gymnasium")
    except importlib.metadata.PackageNotFoundError:
        return Check("gymnasium", "fail", "not installed", "pip install 'gymnasium>=1.0'")
    if int(version.split(".")[0]) < 1:
        return Check("gymnasium", "fail", version, "pip install --upgrade 'gymnasium>=1.0'")
    return Check("gymnasium", "ok", version)


def processors() -> Check:
    """Cores that this process may use, and what the container allows of them."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = cpu_quota()
    found = f"{cores} cores" + (f", the cgroup allows the time of {quota:.1f}" if quota is not None else "")
    if min(cores, quota or cores) < 2:
        return Check("processors", "warn", found, "with less than two cores, sampling and learning only take turns")
    return Check("processors", "ok", found)


def cpu_quota(cgroup: Path = Path("/sys/fs/cgroup")) -> float | None:
    """How many cores' worth of time the cgroup allows; None: no limit."""
    if (unified := _words(cgroup / "cpu.max")) and len(unified) == 2:
        return None if unified[0] == "max" else int(unified[0]) / int(unified[1])
    quota, period = _words(cgroup / "cpu/cpu.cfs_quota_us"), _words(cgroup / "cpu/cpu.cfs_period_us")
    if quota and period and int(quota[0]) > 0:
        return int(quota[0]) / int(period[0])
    return None


def _words(path: Path) -> list[str]:
    try:
        return path.read_text().split()
    except OSError:
        return []


def bfloat16(cpuinfo: Path = Path("/proc/cpuinfo")) -> Check:
    """Whether the processor multiplies bfloat16 itself; without, it would be slower than float32."""
    flags = {word.lower() for word in _words(cpuinfo)}
    have = [name for name in ("amx_bf16", "avx512_bf16", "bf16") if name in flags]
    return Check("bfloat16", "ok", ", ".join(have)) if have else Check("bfloat16", "-", "not in this processor")


def memory() -> Check:
    """What may still be allocated, by the machine and by the cgroup."""
    available = available_bytes()
    found = f"{available / 2**30:.1f} GiB available"
    if available < FEW_BYTES:
        return Check("memory", "warn", found, "close something, or use fewer n_envs and workers")
    return Check("memory", "ok", found)


def shared_memory() -> Check:
    """memfd, so that the size of /dev/shm does not matter."""
    if hasattr(os, "memfd_create"):
        return Check("shared memory", "ok", "memfd; /dev/shm is not used, its size does not matter")
    return Check("shared memory", "warn", "no memfd", "unlinked temporary files are used instead; Linux has memfd")


def events() -> Check:
    """Waking up without polling, and noticing an ended process without races."""
    have = {"eventfd": hasattr(os, "eventfd"), "pidfd": hasattr(os, "pidfd_open")}
    missing = [name for name, there in have.items() if not there]
    if missing:
        return Check("events", "warn", f"no {' and no '.join(missing)}", "pipes are used instead; Linux 5.3 has both")
    return Check("events", "ok", "eventfd, pidfd")


def descriptors() -> Check:
    """How many files this process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    found = f"{_limit(soft)} allowed (at most {_limit(hard)})"
    if soft != resource.RLIM_INFINITY and soft < FEW_DESCRIPTORS:
        return Check("descriptors", "warn", found, f"ulimit -n {FEW_DESCRIPTORS} before many workers or environments")
    return Check("descriptors", "ok", found)


def _limit(number: int) -> str:
    return "unlimited" if number == resource.RLIM_INFINITY else str(number)


def terminal() -> Check:
    """Whether the panel can be drawn."""
    from penstock.metrics.panel import draws

    if not draws(sys.stderr):
        return Check("terminal", "-", "none to draw on; plain lines are printed instead of the panel")
    columns, lines = shutil.get_terminal_size()
    found = f"{columns} x {lines}"
    if columns < 80 or lines < 24:
        return Check("terminal", "warn", found, "make it 80 x 24 or larger for the panel")
    return Check("terminal", "ok", found)


def extra(name: str, modules: tuple[str, ...]) -> Check:
    """Whether what an extra brings can be imported."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    if not missing:
        return Check(f"extra {name}", "ok", ", ".join(modules))
    return Check(f"extra {name}", "-", f"without {', '.join(missing)}", str(MissingExtra("it", name)).partition(": ")[2])
