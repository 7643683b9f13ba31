"""Actions as environments take them, from the rows in which they are stored. Knows Gymnasium's spaces and no environment."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces


def given(action: Any, space: Any) -> Any:
    """A row of an action as a Gymnasium space of this kind has it: a dict, a tuple, a number, an array of its dtype."""
    match space:
        case spaces.Dict():
            return {name: given(action[name], part) for name, part in space.spaces.items()}
        case spaces.Tuple():
            return tuple(given(action[str(index)], part) for index, part in enumerate(space.spaces))
        case spaces.Discrete():
            return int(action)
    return action.astype(space.dtype)
