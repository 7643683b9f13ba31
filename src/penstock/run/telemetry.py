"""What a run has done so far: counts, shares of time, the return window; and the records made of them.

It decides nothing. The supervisor feeds it messages; sinks, panel, callback and summary read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.metrics.episodes import ReturnWindow
from penstock.transport.messages import Done, Trained


@dataclass
class Shares:
    """Seconds of one sampler by what it did, over the whole run."""

    environment_s: float = 0.0
    inference_s: float = 0.0
    idle_s: float = 0.0
    elapsed_s: float = 0.0
    cpu_s: float | None = 0.0

    def add(self, message: Done) -> None:
        self.environment_s += message.environment_s
        self.inference_s += message.inference_s
        self.idle_s += message.idle_s
        self.elapsed_s += message.elapsed_s
        self.cpu_s = None if self.cpu_s is None or message.cpu_s is None else self.cpu_s + message.cpu_s

    @property
    def busy(self) -> float:
        """Share of the time in which it had a segment to fill."""
        return 1.0 - self.idle_s / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass
class Telemetry:
    """All counts of a run."""

    staleness_bound: int
    frame_skip: int
    inline: bool = False
    """Samplers and learner take turns in one process, so that nobody waits for anybody."""
    env_steps: int = 0
    env_steps_collected: int = 0
    samples_consumed: int = 0
    updates: int = 0
    version: int = 0
    masked_steps: int = 0
    short_segments: int = 0
    dropped_segments: int = 0
    chaos_events: int = 0
    digest: str | None = None
    first_issue_s: float | None = None
    last_trained_s: float | None = None
    learner_busy_s: float = 0.0
    supervisor_busy_s: float = 0.0
    staleness: Counter[int] = field(default_factory=Counter)
    samplers: dict[int, Shares] = field(default_factory=dict)
    returns: ReturnWindow = field(default_factory=ReturnWindow)

    def segment_done(self, sampler: int, message: Done) -> None:
        """Count one finished segment."""
        self.env_steps_collected += message.rows
        self.short_segments += message.short
        self.chaos_events += message.chaos_events
        self.samplers.setdefault(sampler, Shares()).add(message)

    def batch_trained(self, message: Trained, now_s: float) -> None:
        """Count one trained batch."""
        self.version, self.digest = message.version, message.digest
        self.env_steps += message.rows
        self.masked_steps += message.masked_rows
        self.samples_consumed += message.samples
        self.updates += message.updates
        self.chaos_events += message.chaos_events
        self.learner_busy_s += message.busy_s
        self.last_trained_s = now_s
        for staleness, rows in enumerate(message.staleness):
            if rows:
                self.staleness[staleness] += rows
        self.episodes_finished(message.episode_returns, message.episode_lengths)

    def episodes_finished(self, returns: Sequence[float], lengths: Sequence[int]) -> None:
        """Count episodes, in the order in which they count."""
        for value, length in zip(returns, lengths, strict=True):
            self.returns.add(value, length)

    @property
    def staleness_max(self) -> int | None:
        return max(self.staleness) if self.staleness else None

    @property
    def staleness_mean(self) -> float | None:
        rows = self.staleness.total()
        return sum(age * count for age, count in self.staleness.items()) / rows if rows else None

    @property
    def train_wall_s(self) -> float | None:
        if self.first_issue_s is None or self.last_trained_s is None:
            return None
        return self.last_trained_s - self.first_issue_s

    @property
    def sps(self) -> float | None:
        """Trained environment steps a second, from the first segment issued to the last batch trained."""
        return self.env_steps / self.train_wall_s if self.train_wall_s else None

    @property
    def learner_busy(self) -> float | None:
        """Share of the training time in which the learner trained."""
        return min(1.0, self.learner_busy_s / self.train_wall_s) if self.train_wall_s else None

    @property
    def supervisor_busy(self) -> float | None:
        """Share of the training time in which the supervisor did not wait for events."""
        return min(1.0, self.supervisor_busy_s / self.train_wall_s) if self.train_wall_s else None

    @property
    def sampler_busy(self) -> tuple[float, ...]:
        """Share of its time in which each sampler had a segment to fill; empty where all takes turns in one process."""
        return () if self.inline else tuple(self.samplers[index].busy for index in sorted(self.samplers))

    @property
    def sampler_cpu(self) -> float | None:
        """Share of the samplers' busy time in which a processor was at work; None where that is not known."""
        busy_s = sum(sampler.elapsed_s - sampler.idle_s for sampler in self.samplers.values())
        spent = [sampler.cpu_s for sampler in self.samplers.values()]
        known = [cpu_s for cpu_s in spent if cpu_s is not None]
        return min(1.0, sum(known) / busy_s) if busy_s > 0 and len(known) == len(spent) else None

    @property
    def environment_share(self) -> float | None:
        """Share of the samplers' busy time spent in environments."""
        return self._share_of_busy(sum(sampler.environment_s for sampler in self.samplers.values()))

    @property
    def inference_share(self) -> float | None:
        """Share of the samplers' busy time spent in forward passes."""
        return self._share_of_busy(sum(sampler.inference_s for sampler in self.samplers.values()))

    def _share_of_busy(self, seconds: float) -> float | None:
        busy = sum(sampler.environment_s + sampler.inference_s for sampler in self.samplers.values())
        return seconds / busy if busy > 0 else None

    def record(self, message: Trained, elapsed_s: float) -> dict[str, Any]:
        """What is written down about this version; names are those of metrics/names.py."""
        trained_rows = sum(message.staleness)
        ages = [age for age, rows in enumerate(message.staleness) if rows]
        return {
            "version": self.version,
            "updates": self.updates,
            "env_steps": self.env_steps,
            "env_steps_collected": self.env_steps_collected,
            "samples_consumed": self.samples_consumed,
            "episodes": self.returns.episodes,
            "return_mean": self.returns.mean,
            "return_std": self.returns.std,
            "return_last": self.returns.last,
            "length_mean": self.returns.length_mean,
            "staleness_mean": sum(a * n for a, n in enumerate(message.staleness)) / trained_rows if trained_rows else None,
            "staleness_max": max(ages) if ages else None,
            "staleness_histogram": list(message.staleness),
            "masked_steps": self.masked_steps,
            "short_segments": self.short_segments,
            "dropped_segments": self.dropped_segments,
            "sps": self.sps,
            "learner_busy": self.learner_busy,
            "learner_wait": None if self.learner_busy is None else 1.0 - self.learner_busy,
            "sampler_busy": list(self.sampler_busy) or None,
            "environment_share": self.environment_share,
            "inference_share": self.inference_share,
            "wall_s": elapsed_s,
            "digest": self.digest,
            **message.metrics,
        }
