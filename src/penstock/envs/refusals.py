"""One line for each way in which an environment cannot be had. Knows how libraries complain; makes nothing itself."""

from __future__ import annotations

import difflib
import traceback
from collections.abc import Iterable

from penstock.core.errors import MissingExtra, PenstockError, Refused, UnknownName

EXTRA_OF_MODULE = {
    "ale_py": "atari",
    "mujoco": "mujoco",
    "imageio": "mujoco",  # Gymnasium's MuJoCo environments import it to render, whether they render or not
    "Box2D": "box2d",
    "pygame": "box2d",  # likewise
    "envpool": "envpool",
    "vizdoom": "vizdoom",
    "minigrid": "minigrid",
    "pettingzoo": "multiagent",
    "mpe2": "multiagent",
}
MODULE_OF_NAMESPACE = {"ALE": "ale_py", "envpool": "penstock.envs.pool_registration"}
MODULE_OF_PREFIX = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid", "Vizdoom": "vizdoom.gymnasium_wrapper"}


def module_that_registers(name: str) -> str | None:
    """The optional module that has to be imported before this id exists."""
    namespace = name.partition("/")[0]
    by_prefix = (module for prefix, module in MODULE_OF_PREFIX.items() if name.startswith(prefix))
    return MODULE_OF_NAMESPACE.get(namespace) or next(by_prefix, None)


def one_line(error: BaseException) -> str:
    """What went wrong, without line breaks or terminal colours."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def unknown_environment(name: str, known: Iterable[str]) -> UnknownName:
    """Names the nearest; the whole registry would not fit a line."""
    near = difflib.get_close_matches(name, sorted(known), n=3, cutoff=0.5)
    hint = "" if near else "(an environment of your own is named module:Name)"
    return UnknownName("environment", name, near, hint=hint)


def missing_module(name: str, module: str) -> Refused:
    """An optional dependency that is not installed."""
    top = module.partition(".")[0]
    if top in EXTRA_OF_MODULE:
        return MissingExtra(f"environment '{name}'", EXTRA_OF_MODULE[top])
    return Refused(f"environment '{name}' needs the Python module '{top}', which is not installed; install it first")


def cannot_make(name: str, error: BaseException) -> PenstockError:
    """What to tell a person when making `name` raised `error`."""
    if isinstance(error, PenstockError):
        return error
    for cause in (error, error.__cause__, error.__context__):
        if isinstance(cause, ModuleNotFoundError) and cause.name:
            return missing_module(name, cause.name)
    return Refused(f"environment '{name}' cannot be made: {one_line(error)}", details=traceback_of(error))


def traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))
