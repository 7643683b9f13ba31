"""What environments of certain libraries need before they fit: told from the registry's entry alone.

Knows which library's ids look how; loads nothing of theirs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WITH_TEXT = ("MiniGrid-", "BabyAI-")
"""Ids whose observations hold a sentence beside what can be learned from."""


def adapted(registered: Any, environment: Any) -> Any:
    """An environment just made from this entry, in a form that can be trained on."""
    if registered.id.startswith(_WITH_TEXT):
        from penstock.envs.wrappers import without_text

        return without_text(environment)
    return environment


def is_arcade(registered: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether an entry of Gymnasium's registry is a game to be had in this form."""
    if registered is None or registered.namespace != "ALE":
        return False
    return bool(arguments.get("preprocessing", True)) and "game" in registered.kwargs


def game_and_settings(registered: Any, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """What `ArcadeVector` and `ArcadeGame` are made with."""
    return str(registered.kwargs["game"]), without_ours(registered, arguments)


def without_ours(registered: Any, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are for the environment itself."""
    ours = {"preprocessing"} if registered.namespace == "ALE" else set()
    return {name: value for name, value in arguments.items() if name not in ours}
