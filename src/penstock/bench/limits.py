"""What this machine would do if nothing waited and nothing was copied, from its parts measured one after the other.

The bar: 1 / (t_env + t_inference + epochs * t_update) per step and core, times cores, each t the seconds of one step (one row)
in the frozen reference kernels, on one thread. Never looks at how Penstock computes; the message round trip alone is
Penstock's own, stands beside, and does not enter the limit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from penstock.bench import echo, machine
from penstock.bench.figures import Spread
from penstock.bench.jobs import Job
from penstock.bench.timing import one_thread, rate

ARCADE_STEPS = 20
ENVIRONMENT_STEPS = 1000
"""Steps of one lane in one call of the environment kernels."""
PRODUCT_SIZE = 1024


@dataclass(frozen=True, slots=True)
class Part:
    """One measured rate, in units a second."""

    name: str
    unit: str
    rate: Spread


@dataclass(frozen=True, slots=True)
class Limit:
    """The limit of one job and what it was made of, in seconds of one core a step."""

    job: str
    env_s: float
    inference_s: float
    update_s: float
    epochs: int
    cores: int
    sps: float
    products_sps: float
    """The same with products alone, at the measured float32 rate, in place of inference and updates."""


def limit_sps(*, env_s: float, inference_s: float, update_s: float, epochs: int, cores: int) -> float:
    """Steps a second of all cores when none of them ever waits."""
    return cores / (env_s + inference_s + epochs * update_s)


def measure_limits(jobs: Sequence[Job], *, seconds: float) -> dict[str, Any]:
    """Every part, one after the other, `seconds` each; then the limit of each job."""
    described = machine.describe()
    machine.warn_if_busy(described)
    with one_thread():
        common = list(_machine_parts(seconds))
        parts = {job.name: list(_job_parts(job, seconds)) for job in jobs}
    products = _named(common, "product float32")
    limits = [limit_of(job, parts[job.name], products.rate.median, described["cores"]) for job in jobs]
    return {
        "bench": "limits",
        "machine": described,
        "settings": {"seconds": seconds, "jobs": [asdict(job) for job in jobs]},
        "parts": {"machine": _plain(common), **{name: _plain(found) for name, found in parts.items()}},
        "limits": {limit.job: asdict(limit) for limit in limits},
    }


def limit_of(job: Job, parts: Sequence[Part], products_per_s: float, cores: int) -> Limit:
    """The job's limit. Of two ways to step, or to compute a forward pass, the faster one counts."""
    env_s = 1 / max(part.rate.median for part in parts if part.name.startswith("environment"))
    inference_s = 1 / max(part.rate.median for part in parts if part.name.startswith("forward"))
    update_s = 1 / max(part.rate.median for part in parts if part.name.startswith(f"PPO update, minibatch {job.batch_size}"))
    forward, update = _operations(job)
    counts = {"epochs": job.n_epochs, "cores": cores}
    return Limit(
        job=job.name,
        env_s=env_s,
        inference_s=inference_s,
        update_s=update_s,
        sps=limit_sps(env_s=env_s, inference_s=inference_s, update_s=update_s, **counts),
        products_sps=limit_sps(env_s=env_s, inference_s=forward / products_per_s, update_s=update / products_per_s, **counts),
        **counts,
    )


def _named(parts: Iterable[Part], name: str) -> Part:
    return next(part for part in parts if part.name == name)


def _plain(parts: Sequence[Part]) -> list[dict[str, Any]]:
    return [asdict(part) for part in parts]


def _operations(job: Job) -> tuple[int, int]:
    if job.network == "nature":
        from penstock.bench import image_kernels

        return image_kernels.forward_operations(job.action_size), image_kernels.update_operations(job.action_size)
    from penstock.bench import reference_kernels as kernels

    sizes = job.observation_size, job.action_size
    return kernels.forward_operations(*sizes), kernels.update_operations(*sizes)


def _machine_parts(seconds: float) -> Iterable[Part]:
    import torch

    from penstock.bench import reference_kernels as kernels

    yield Part("product float32", "operations", rate(kernels.matrix_product(PRODUCT_SIZE, torch.float32), seconds))
    if machine.has_bfloat16():
        yield Part("product bfloat16", "operations", rate(kernels.matrix_product(PRODUCT_SIZE, torch.bfloat16), seconds))
    with echo.bell_round_trips() as ring:
        yield Part(f"{echo.BELL} round trip", "round trips", rate(ring, seconds))
    with echo.message_round_trips() as exchange:
        yield Part("message round trip", "round trips", rate(exchange, seconds))


def _job_parts(job: Job, seconds: float) -> Iterable[Part]:
    return _image_parts(job, seconds) if job.network == "nature" else _small_parts(job, seconds)


def _image_parts(job: Job, seconds: float) -> Iterable[Part]:
    """In each of the ways in which images may lie in memory, in the job's precision; the faster ones count."""
    from penstock.bench import image_kernels as kernels

    lanes, half = job.lanes_per_block, job.precision == "bfloat16"
    game = job.env_id.removeprefix("ALE/").rpartition("-v")[0].lower()
    kernel = kernels.arcade_vector(game, lanes, ARCADE_STEPS)
    yield Part(f"environment, vector form of {lanes}", "steps", rate(kernel, seconds))
    for channels_last in (False, True):
        how = f"{job.precision}, {'channels-last' if channels_last else 'contiguous'}"
        forward = kernels.nature_forward(job.action_size, lanes, channels_last=channels_last, half=half)
        yield Part(f"forward of {lanes}, {how}", "rows", rate(forward, seconds))
        update = kernels.nature_update(job.action_size, job.batch_size, channels_last=channels_last, half=half)
        yield Part(f"PPO update, minibatch {job.batch_size}, {how}", "rows", rate(update, seconds))


def _small_parts(job: Job, seconds: float) -> Iterable[Part]:
    from penstock.bench import reference_kernels as kernels

    lanes, sizes = job.lanes_per_block, (job.observation_size, job.action_size)
    yield Part("environment, plain", "steps", rate(kernels.plain_environment(job.env_id, ENVIRONMENT_STEPS), seconds))
    if kernels.has_vector_form(job.env_id):
        kernel = kernels.vector_environment(job.env_id, lanes, ENVIRONMENT_STEPS)
        yield Part(f"environment, vector form of {lanes}", "steps", rate(kernel, seconds))
    yield Part(f"forward of {lanes}, NumPy", "rows", rate(kernels.numpy_forward(*sizes, lanes), seconds))
    yield Part(f"forward of {lanes}, torch", "rows", rate(kernels.torch_forward(*sizes, lanes), seconds))
    update = kernels.ppo_update(*sizes, job.batch_size, discrete=job.discrete)
    yield Part(f"PPO update, minibatch {job.batch_size}", "rows", rate(update, seconds))
