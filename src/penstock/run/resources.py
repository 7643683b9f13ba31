"""Whether there is room for a run: memory, descriptors, disk. Asked before anything is started; knows no process."""

from __future__ import annotations

import shutil

from penstock.core.errors import Refused
from penstock.envs.descriptors import descriptors_of, most_descriptors
from penstock.envs.opening import choose_parallel
from penstock.memory.arena import require_bytes
from penstock.models.layout import mlp_layout
from penstock.run.wiring import Wiring
from penstock.store.slots import segment_layout

COPIES_TO_LEARN = 5
"""Of the weights in the learner: themselves, their gradient, Adam's two moments, and one on its way elsewhere."""
COPIES_TO_ACT = 3
"""In each sampler, or in the inference server alone: as the board has them, as an actor has them, and an actor of the version
before."""
COPIES_IN_A_CHECKPOINT = 3
FILES_BESIDE_BYTES = 16 << 20
"""What records and journal may take in a while."""


def check_resources(wiring: Wiring) -> None:
    """Refuse what would run out later, each with the number needed and the number there."""
    weights_bytes = 4 * num_weights(wiring)
    _check_memory(wiring, weights_bytes)
    _check_descriptors(wiring)
    _check_disk(wiring, weights_bytes)


def num_weights(wiring: Wiring) -> int:
    """Of the built-in towers; of other networks nobody knows before they are built, which the learner does."""
    model, spec = wiring.job.model, wiring.probe.spec
    own = wiring.custom_model is not None or model.custom is not None
    return 0 if own or model.convolves(spec) else mlp_layout(spec, model).size


def copies_of_weights(wiring: Wiring) -> int:
    """How often all weights are kept: on the board, in the learner, and by whoever acts."""
    actors = 1 if wiring.has_server else wiring.num_workers
    return wiring.job.flow.bound + 2 + COPIES_TO_LEARN + COPIES_TO_ACT * actors


def _check_memory(wiring: Wiring, weights_bytes: int) -> None:
    plan = wiring.memory
    copies = copies_of_weights(wiring)
    needed = segment_layout(wiring.probe.spec, plan.shape).total_bytes(plan.num_slots) + copies * weights_bytes
    slots = f"{plan.num_slots} slots of {plan.shape.steps} steps x {plan.shape.lanes} lanes"
    require_bytes(needed, f"a run with {slots} and {copies} copies of {weights_bytes // 4:,} weights")


def _check_descriptors(wiring: Wiring) -> None:
    job = wiring.job
    lanes = -(-job.env.n_blocks // wiring.num_workers) * job.env.lanes_per_block
    needed, most = descriptors_of(choose_parallel(job.env, wiring.probe), lanes), most_descriptors()
    if needed > most:
        raise Refused(
            f"{lanes} lanes in one worker need {needed:,} descriptors but {most:,} are allowed; use more --workers, fewer "
            f"n_envs, envs.parallel=serial, or raise the limit (ulimit -Hn)"
        )


def _check_disk(wiring: Wiring, weights_bytes: int) -> None:
    needed = (wiring.job.checkpoint.keep + 1) * COPIES_IN_A_CHECKPOINT * weights_bytes + FILES_BESIDE_BYTES
    place = next(place for place in (wiring.run_dir.absolute(), *wiring.run_dir.absolute().parents) if place.exists())
    free = shutil.disk_usage(place).free
    if needed > free:
        raise Refused(
            f"{_mib(needed)} are needed for checkpoints and records but {_mib(free)} are free in {place}; "
            f"make room or name another place with --out"
        )


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.0f} MiB"
