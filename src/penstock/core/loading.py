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
    here = str(Path.cwd())
    if here not in sys.path:  # a console script does not have the working directory on its path; `python -m` does
        sys.path.insert(0, here)
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
