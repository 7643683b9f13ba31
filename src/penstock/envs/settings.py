"""What a person can choose about environments. Knows no environment library, so that reading settings stays fast."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from penstock.core.errors import Refused

Parallel = Literal["vector", "serial", "threads", "processes"]
Stepping = Literal["together", "drift"]


@dataclass(frozen=True, kw_only=True)
class EnvSettings:
    """Which environment, how many lanes of it, and how they are stepped."""

    id: str = ""
    """A Gymnasium id (CartPole-v1, ALE/Pong-v5) or module:Name."""

    arguments: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments the environment is made with."""

    wrappers: tuple[str, ...] = ()
    """module:function, each given the environment and returning the wrapped one; the first is the innermost."""

    n_envs: int = 8
    """Lanes over all blocks."""

    n_blocks: int = 4
    """Blocks the lanes are divided into; a forward pass always has one block's shape."""

    parallel: Literal["auto", "vector", "serial", "threads", "processes"] = "auto"
    """How a block steps its lanes. vector: the environment's own vector form, which has random numbers of its own; serial,
    threads, processes: one environment a lane, which differ in speed only. auto: vector where there is one."""

    stepping: Literal["auto", "together", "drift"] = "auto"
    """Whether lanes of a block wait for each other at every step. Only speed."""

    @property
    def lanes_per_block(self) -> int:
        """How many lanes one block has; refuses numbers that do not divide."""
        if self.n_envs < 1 or self.n_blocks < 1:
            raise Refused(f"envs.n_envs ({self.n_envs}) and envs.n_blocks ({self.n_blocks}) must be 1 or more")
        lanes, left_over = divmod(self.n_envs, self.n_blocks)
        if left_over:
            below, above = lanes * self.n_blocks, (lanes + 1) * self.n_blocks
            near = f"{below} or {above}" if below else f"{above}"
            raise Refused(f"envs.n_envs {self.n_envs} does not divide into {self.n_blocks} blocks; take {near}")
        return lanes
