"""`penstock presets [NAME]`. Knows how a preset looks on paper, not what its settings do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import tomli_w

from penstock.cli.commands import Presets
from penstock.config.presets import Preset, preset_named, presets


def carry_out(command: Presets) -> int:
    """Print the list, or the presets of one name or one environment."""
    if command.name is None:
        print("\n".join(listed(presets().values())))
        return 0
    own = [preset for preset in presets().values() if preset.env == command.name]
    print("\n\n".join(printed(preset) for preset in own or [preset_named(command.name)]))
    return 0


def listed(shipped: Iterable[Preset]) -> list[str]:
    """One line per preset and one for its reference score."""
    lines = []
    for preset in shipped:
        lines.append(f"{preset.name:<28} {preset.env:<26} {preset.algo:<6} {preset.steps:>12,} steps")
        lines.append(f"{'':<28} {preset.reference}")
    return lines


def printed(preset: Preset) -> str:
    """One preset in full; its settings as they would stand in a config.toml."""
    until = f", until a mean return of {preset.until_return:g}" if preset.until_return is not None else ""
    head = [
        f"# {preset.name}: {preset.env} with {preset.algo}, {preset.steps:,} steps{until}",
        f"# {preset.about}",
        f"# Reference: {preset.reference}",
        f"# penstock train {preset.env} --preset {preset.name}",
        "",
    ]
    return "\n".join(head) + tomli_w.dumps(_plain(preset.settings)).rstrip()


def _plain(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {section: dict(table) for section, table in settings.items()}
