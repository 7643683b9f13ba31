"""The summary: every key always there, null where it has no meaning, strict JSON."""

from __future__ import annotations

import importlib.metadata
import math
import subprocess
from pathlib import Path
from typing import Any

from penstock.run.recorder import Recorder
from penstock.run.supervisor import Ending
from penstock.run.wiring import Wiring


def summarise(wiring: Wiring, recorder: Recorder, ending: Ending, *, wall_s: float, num_workers: int) -> dict[str, Any]:
    """What the run came to. `docs/metrics.md` says what each key means."""
    job, telemetry = wiring.job, recorder.telemetry
    solved_steps, solved_s = recorder.solved_at or (None, None)
    summary = {
        "run_dir": str(wiring.run_dir),
        "version_info": version_info(),
        "env_id": job.env.id,
        "algo": job.algo,
        "schedule": job.flow.schedule,
        "seed": job.run.seed,
        "workers": num_workers,
        "config_digest": wiring.settings_digest,
        "version": telemetry.version,
        "updates": telemetry.updates,
        "env_steps": telemetry.env_steps,
        "global_step": telemetry.env_steps,
        "env_steps_collected": telemetry.env_steps_collected,
        "env_frames": telemetry.env_steps * telemetry.frame_skip,
        "samples_consumed": telemetry.samples_consumed,
        "replay_ratio": None,
        "samples_per_insert": None,
        "staleness_bound": telemetry.staleness_bound,
        "staleness_max": telemetry.staleness_max,
        "staleness_mean": telemetry.staleness_mean,
        "dropped_segments": telemetry.dropped_segments,
        "short_segments": telemetry.short_segments,
        "masked_steps": telemetry.masked_steps,
        "worker_restarts": 0,
        "chaos_events": telemetry.chaos_events,
        "wall_s": wall_s,
        "train_wall_s": telemetry.train_wall_s,
        "sps": telemetry.sps,
        "return_mean": telemetry.returns.mean,
        "return_std": telemetry.returns.std,
        "episodes": telemetry.returns.episodes,
        "eval_return_mean": None,
        "eval_return_std": None,
        "eval_episodes": None,
        "solved_at_steps": solved_steps,
        "solved_at_s": solved_s,
        "digest": telemetry.digest,
        "bottleneck": recorder.bottleneck(),
        "stop_reason": ending.reason,
    }
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in summary.items()}


def version_info() -> dict[str, str | None]:
    """Which build this was. Reads package metadata: importing torch here would cost a second."""
    return {"package": _version("penstock"), "torch": _version("torch"), "commit": _commit()}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit() -> str | None:
    """The commit of a source checkout; None for an installed package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
