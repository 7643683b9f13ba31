"""What environments of certain libraries need before they fit: told from the registry's entry alone.

Knows which library's ids look how; loads nothing of theirs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv

_GRIDS = ("MiniGrid-", "BabyAI-")
"""Ids whose observations are a grid of codes, and a sentence beside what can be learned from."""


def adapted(registered: Any, environment: Any) -> Any:
    """An environment just made from this entry, in a form that can be trained on."""
    if registered.id.startswith(_GRIDS):
        from penstock.envs.wrappers import spread_tiles, without_text

        return spread_tiles(without_text(environment))
    return environment


@dataclass(frozen=True)
class OwnForm:
    """An environment that is made by an adapter of ours, single and vectorised, rather than by Gymnasium."""

    kind: Literal["arcade", "pool"]
    name: str
    """What the library calls it."""
    arguments: Mapping[str, Any]

    def single(self) -> Any:
        if self.kind == "arcade":
            from penstock.envs.arcade import ArcadeGame

            return ArcadeGame(self.name, **self.arguments)
        from penstock.envs.pools import PoolEnvironment

        return PoolEnvironment(self.name, **self.arguments)

    def vector(self, num_lanes: int) -> VectorEnv[Any, Any, Any]:
        if self.kind == "arcade":
            from penstock.envs.arcade import ArcadeVector

            return ArcadeVector(self.name, num_lanes, **self.arguments)
        from penstock.envs.pools import PoolVector

        return PoolVector(self.name, num_lanes, **self.arguments)


def own_form(registered: Any, arguments: Mapping[str, Any]) -> OwnForm | None:
    """The form in which an entry of Gymnasium's registry is to be had; None where Gymnasium's is as good."""
    if registered.namespace == "envpool":
        return OwnForm("pool", str(registered.kwargs["task"]), arguments)
    if registered.namespace == "ALE" and arguments.get("preprocessing", True) and "game" in registered.kwargs:
        return OwnForm("arcade", str(registered.kwargs["game"]), without_ours(registered, arguments))
    return None


def without_ours(registered: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are for the environment itself, and what keeps it from writing where the run was started."""
    ours = {"preprocessing"} if registered.namespace == "ALE" else set()
    added = {"doom_config_path": os.devnull} if registered.id.startswith("Vizdoom") else {}
    return {**added, **{name: value for name, value in arguments.items() if name not in ours}}
