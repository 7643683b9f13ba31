"""The presets that are shipped: one file each in `presets/`, found by their own name or by environment and algorithm.

A preset is a layer of settings with a reference score beside it. Knows files, not which settings exist.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from penstock.core.errors import Refused, UnknownName

_SHIPPED = Path(__file__).parent / "presets"


@dataclass(frozen=True, kw_only=True)
class Preset:
    """Settings that are known to work, for one environment and one algorithm."""

    name: str
    env: str
    """Its id, or a pattern of ids."""
    algo: str
    about: str
    """What it is for, in a sentence."""
    reference: str
    """The score that others published, and where."""
    steps: int
    """The budget that goes with the reference."""
    until_return: float | None = None
    variant: bool = False
    """Never chosen but by its name."""
    settings: Mapping[str, Mapping[str, Any]]
    """Section to field to value, as the file has them."""


@cache
def presets() -> Mapping[str, Preset]:
    """All that are shipped, by name."""
    found = [read_preset(path) for path in sorted(_SHIPPED.glob("*.toml"))]
    return {preset.name: preset for preset in found}


def read_preset(path: Path) -> Preset:
    """One preset file."""
    document = tomllib.loads(path.read_text("utf-8"))
    head = document.pop("preset", {})
    try:
        return msgspec.convert({**head, "settings": document}, Preset)
    except msgspec.ValidationError as error:
        raise Refused(f"{path.name} is not a preset: {error}") from error


def preset_named(name: str) -> Preset:
    """The preset of this name."""
    if name not in presets():
        raise UnknownName("preset", name, presets(), hint="(penstock presets lists them; none: no preset)")
    return presets()[name]


def _is_for(preset: Preset, env: str) -> bool:
    """Without a version an environment is its newest: CartPole is CartPole-v1. EnvPool's is the same in another place."""
    if env.startswith("envpool/"):
        plain = env.removeprefix("envpool/")
        return preset.env in (plain, f"ALE/{plain}")
    return fnmatchcase(env, preset.env) or env == preset.env.rpartition("-v")[0]


def preset_for(env: str, algo: str | None) -> Preset | None:
    """The preset of an environment under an algorithm; under none given, PPO's or else the first.

    One made for this environment goes before one for its kind (`ALE/*`); variants are for those who name them.
    """
    fitting = [p for p in presets().values() if _is_for(p, env) and algo in (None, p.algo) and not p.variant]
    return min(fitting, key=lambda preset: ("*" in preset.env, preset.algo != "ppo", preset.name), default=None)
