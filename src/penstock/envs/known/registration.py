"""Registers the shipped environments with Gymnasium, by name only: their modules load when one is made."""

from __future__ import annotations

_ENTRY_POINTS = {
    "Counting": "counting:Counting",
    "ConstantReward": "values:ConstantReward",
    "TwoState": "values:TwoState",
    "TimeLimit": "time_limit:TimeLimit",
    "FinalRow": "final_row:FinalRow",
    "MatchCue": "credit:MatchCue",
    "DelayedReward": "credit:DelayedReward",
    "Target": "target:Target",
    "Mixed": "mixed:Mixed",
    "Masked": "mixed:Masked",
    "Latency": "latency:make_latency",
    "LatencyCartPole": "latency:make_latency_cartpole",
}


def register_known() -> None:
    """Idempotent, so that it can stand before every look-up."""
    from gymnasium.envs.registration import register, registry

    for name, entry_point in _ENTRY_POINTS.items():
        identifier = f"penstock/{name}-v0"
        if identifier not in registry:
            register(identifier, f"penstock.envs.known.{entry_point}")
