"""Names that point at code: "module:Name" to the thing itself.

This is how torch-free rooms refer to classes that need torch, and how people name classes of their own.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from penstock.core.errors import Refused


def load_object(path: str) -> Any:
    """Import `module` of "module:Name" and return its attribute; refuses by name what is not there."""
    module_name, _, attribute = path.partition(":")
    if not module_name or not attribute:
        raise Refused(f"'{path}' is not of the form module:Name")
    if module_name.partition(".")[0] != "penstock":
        find_in_working_directory()
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise Refused(f"cannot import '{module_name}' of '{path}': no module named '{error.name}'") from error
    try:
        found: Any = module
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError as error:
        raise Refused(f"module '{module_name}' has no '{attribute}' (from '{path}')") from error
    return found


def find_in_working_directory() -> None:
    """Let modules of a person's own be found where they are: a console script does not have its working directory on its
    path. Behind all else, so that no file there can stand in for a library."""
    try:
        here = str(Path.cwd())
    except FileNotFoundError:
        return  # it has been deleted, so nothing is found there
    if here not in sys.path:
        sys.path.append(here)
