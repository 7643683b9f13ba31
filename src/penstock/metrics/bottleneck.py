"""From shares of time to one sentence: which part everything else waits for, and what to try.

A pure function. It knows no clock and no process; whoever has measured hands in a `Shares`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.metrics.wording import percent

SATURATED = 0.85
"""A part that is busy this share of the time leaves nothing to gain by feeding it better."""
STANDING_OUT = 0.25
"""A wait of this share of the time for one block alone, or a lead of one worker over the others, is worth a name."""
SPARE = 0.4
"""Of a core: idle so much of the time, it could take another worker."""
SLEEPING = 0.5
"""Samplers that compute for less than this share of their busy time wait for environments that sleep."""


@dataclass(frozen=True, kw_only=True)
class Shares:
    """Where the time of a stretch of the run went. Every share is 0 to 1."""

    schedule: str
    staleness: int = 0
    learner_busy: float
    """Of the stretch: the learner trained."""
    sampler_busy: tuple[float, ...] = ()
    """Of the stretch, one per worker: it had a segment to fill. Empty when all runs in one process."""
    environment_share: float = 0.0
    """Of the samplers' busy time: spent in environments, waiting for them included."""
    inference_share: float = 0.0
    """Of the samplers' busy time: spent in forward passes, or waiting for those of the inference server."""
    inference_server: bool = False
    """Forward passes are computed there, not in the samplers."""
    sampler_cpu: float | None = None
    """Of the samplers' busy time: a processor was at work. None: not known."""
    supervisor_busy: float = 0.0
    """Of the stretch: the supervisor was not waiting for events."""
    slowest_block: int | None = None
    slowest_block_wait: float = 0.0
    """Of the stretch: the learner waited for this block alone, all others being ready."""
    cores: int = 1

    @property
    def num_workers(self) -> int:
        """Processes that compute: samplers, learner, and the inference server where there is one."""
        return len(self.sampler_busy) + 1 + self.inference_server

    @property
    def mean_sampler(self) -> float:
        return sum(self.sampler_busy) / len(self.sampler_busy) if self.sampler_busy else 0.0


def bottleneck(shares: Shares) -> str:
    """One sentence: the part that the others wait for, and what to try. The first rule that applies speaks."""
    return next(sentence for rule in _RULES if (sentence := rule(shares)))


def _supervisor(shares: Shares) -> str | None:
    if shares.supervisor_busy < SATURATED:
        return None
    return f"The supervisor is busy {percent(shares.supervisor_busy)} of the time: try longer segments (learner.n_steps)."


def _one_process(shares: Shares) -> str | None:
    if shares.sampler_busy:
        return None
    sampling = max(0.0, 1.0 - shares.learner_busy)
    parts = {
        "training": shares.learner_busy,
        "environments": sampling * shares.environment_share,
        "inference": sampling * shares.inference_share,
    }
    name = max(parts, key=lambda part: parts[part])
    advice = "try --workers 1" if shares.cores > 1 else "one core does it all"
    return f"Everything takes turns in one process, {name} most of all ({percent(parts[name])}): {advice}."


def _one_block(shares: Shares) -> str | None:
    if shares.slowest_block is None or shares.slowest_block_wait < STANDING_OUT:
        return None
    advice = "try --schedule async, which overtakes it" if shares.schedule != "async" else "see why it is slower"
    return (
        f"The learner waits {percent(shares.slowest_block_wait)} of the time for block {shares.slowest_block} alone: {advice}."
    )


def _turns(shares: Shares) -> str | None:
    """Under `sync` one side always waits for the other, whichever is slower; that is the thing to say."""
    if shares.schedule != "sync":
        return None
    slower = "training" if shares.learner_busy > shares.mean_sampler else "sampling"
    return f"Under sync, sampling and training take turns, {slower} longer: try --schedule overlap, which does both at once."


def _learner(shares: Shares) -> str | None:
    if shares.learner_busy < SATURATED or shares.learner_busy < shares.mean_sampler - STANDING_OUT:
        return None
    spare = shares.cores - len(shares.sampler_busy) * shares.mean_sampler - 1
    threads = ", or compute.learner_threads=2" if spare >= 0.5 else ""
    return (
        f"The learner is the bottleneck (busy {percent(shares.learner_busy)}): "
        f"try a larger learner.batch_size, fewer n_epochs{threads}."
    )


def _one_worker(shares: Shares) -> str | None:
    if len(shares.sampler_busy) < 2:
        return None
    busiest = max(range(len(shares.sampler_busy)), key=lambda worker: shares.sampler_busy[worker])
    others = [busy for worker, busy in enumerate(shares.sampler_busy) if worker != busiest]
    if shares.sampler_busy[busiest] < SATURATED or shares.sampler_busy[busiest] - max(others) < STANDING_OUT:
        return None
    return (
        f"All wait for worker {busiest} (busy {percent(shares.sampler_busy[busiest])}, the others "
        f"{percent(max(others))} at most): try n_blocks divisible by the workers, or --schedule async."
    )


def _server(shares: Shares) -> str | None:
    """Before any block is named: where blocks take turns at one server, one of them is always the last."""
    waiting = shares.inference_server and shares.inference_share > shares.environment_share
    if not waiting or shares.mean_sampler < SATURATED or shares.mean_sampler < shares.learner_busy:
        return None
    return (
        f"The inference server is the bottleneck (samplers busy {percent(shares.mean_sampler)}, "
        f"{percent(shares.inference_share)} of it waiting for its answers): "
        "try larger blocks (more envs.n_envs) or --inference local."
    )


def _samplers(shares: Shares) -> str | None:
    if shares.mean_sampler < SATURATED:
        return None
    busy = f"busy {percent(shares.mean_sampler)}"
    workers = len(shares.sampler_busy)
    if shares.sampler_cpu is not None and shares.sampler_cpu < SLEEPING:
        return (
            f"Environments that sleep are the bottleneck (samplers {busy}, computing {percent(shares.sampler_cpu)} of "
            f"it): try more envs.n_envs, envs.parallel=threads or --workers {2 * workers}."
        )
    idle_cores = shares.cores - workers * shares.mean_sampler - shares.learner_busy
    more = f"--workers {workers + 1}" if idle_cores >= SPARE else ""
    if shares.inference_share > shares.environment_share:
        advice = " or ".join(filter(None, ("larger blocks (more envs.n_envs)", more)))
        return f"Inference is the bottleneck (samplers {busy}, {percent(shares.inference_share)} in it): try {advice}."
    advice = f"try {more}" if more else "all cores are spoken for; faster environments or more cores would help"
    return f"Environments are the bottleneck (samplers {busy}, {percent(shares.environment_share)} in them): {advice}."


def _nothing(shares: Shares) -> str:
    """Neither side is full: each waits for the other in turn, which more room between them smooths out."""
    both = f"learner {percent(shares.learner_busy)}, samplers {percent(shares.mean_sampler)} busy"
    if shares.num_workers > shares.cores:
        return f"Neither side is full ({both}): {shares.num_workers} processes share {shares.cores} cores."
    advice = f"--staleness {shares.staleness + 1}" if shares.schedule == "overlap" else "more blocks (envs.n_blocks)"
    return f"Neither side is full ({both}): try {advice} to smooth out uneven rounds."


_RULES: tuple[Callable[[Shares], str | None], ...] = (
    _supervisor,
    _one_process,
    _server,
    _one_block,
    _turns,
    _learner,
    _one_worker,
    _samplers,
    _nothing,
)
