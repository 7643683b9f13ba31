"""Keeps an environment library's warnings off a person's terminal. Knows nothing of which environment."""

from __future__ import annotations

import contextlib
import sys
import threading
import warnings
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_inside = 0
_undo = contextlib.ExitStack()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings until the last thread inside has left.

    The filters are global to the process, so threads that overlap share one silence rather than undo each other's.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def send_mujoco_warnings_through_python() -> None:
    """MuJoCo's own way is a line on the terminal and a MUJOCO_LOG.TXT in the working directory, once per instance."""
    mujoco: Any = sys.modules.get("mujoco")
    if mujoco is not None and mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_warn)


def _warn(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)


def _enter() -> None:
    global _inside
    import gymnasium.logger

    with _lock:
        _inside += 1
        if _inside == 1:
            _undo.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            _undo.callback(setattr, gymnasium.logger, "min_level", gymnasium.logger.min_level)
            gymnasium.logger.min_level = gymnasium.logger.ERROR


def _leave() -> None:
    global _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            _undo.close()
