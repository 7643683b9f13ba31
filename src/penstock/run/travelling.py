"""Whether a person's own code can be handed to other processes: said at second zero, by name. Starts nothing."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import cloudpickle

from penstock.core.errors import Refused
from penstock.envs.making import EnvironmentMaker
from penstock.envs.refusals import one_line, traceback_of


def check_travels(maker: EnvironmentMaker, model: Any) -> None:
    """Refuse what a worker could not be given: it is named with what in it does not travel, and why."""
    for what, part in (*maker.parts(), ("model", model)):
        error = _complaint(part)
        if error is not None:
            culprit = _culprit(part, set())
            raise Refused(
                f"{what} cannot be handed to worker processes: {one_line(error)}{f' (in {culprit})' if culprit else ''}; "
                "make that where it is needed, in __init__ or inside the factory, or train in one process (workers=0)",
                details=traceback_of(error),
            )


def _complaint(part: Any) -> Exception | None:
    """Why it does not travel; None if it does. What a person's own class does when it is pickled can raise anything."""
    try:
        cloudpickle.dumps(part)
    except Exception as error:
        return error
    return None


def _culprit(part: Any, seen: set[int]) -> str:
    """The path to what does not travel, by name, as far as it can be followed."""
    seen.add(id(part))
    for name, inner in _inside(part):
        if id(inner) not in seen and _complaint(inner) is not None:
            deeper = _culprit(inner, seen)
            return f"{name}.{deeper}" if deeper else name
    return ""


def _inside(part: Any) -> Iterator[tuple[str, Any]]:
    """What travels along with a function, a class or an object because it is a part of it."""
    if inspect.isfunction(part):
        used = inspect.getclosurevars(part)
        yield from (*used.nonlocals.items(), *used.globals.items())
    elif hasattr(part, "__dict__"):
        yield from ((name, inner) for name, inner in vars(part).items() if not name.startswith(("__", "_abc_")))
