"""What a learner is fed: M segments of one shape, stacked. Plain NumPy; knows no tensor library, slot or worker."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.core.specs import Array


@dataclass(frozen=True, kw_only=True)
class Batch:
    """M segments of T steps of B lanes in NEXT_STEP form. Only rows with `valid` are data."""

    version: int
    """The version that will train it: how many batches were trained before."""
    observation: Array
    """[M, T+1, B, ...], as the policy expects it: normalised where the model asks for it."""
    action: Array
    """[M, T, B, ...], as drawn."""
    log_prob: Array
    """[M, T, B], by the policy that acted."""
    reward: Array
    """[M, T, B], normalised where the model asks for it."""
    value: Array
    """[M, T+1, B], by the policy that acted; the row after a lane's last valid one is its bootstrap."""
    terminated: Array
    """[M, T, B]."""
    truncated: Array
    """[M, T, B]."""
    valid: Array
    """[M, T, B]; false on reset rows and on rows after a cut."""
    behaviour: Array | None = None
    """The flat weights of the version that acted, where an algorithm's correction needs them and it is another than this."""
