"""What a person may say about the network and the normalisers. Knows no tensor library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import Refused
from penstock.core.specs import DiscreteSpec, EnvironmentSpec


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The section `model`."""

    hidden_sizes: tuple[int, ...] = (64, 64)
    """Units of each hidden layer; the policy and the value have a tower each."""
    activation: Literal["tanh", "relu"] = "tanh"
    """What follows each hidden layer."""
    ortho_init: bool = True
    """Orthogonal initial weights (gain sqrt 2; policy head 0.01, value head 1); false: torch's default."""
    log_std_init: float = 0.0
    """Logarithm of the initial standard deviation of Box actions."""
    custom: str | None = None
    """Your own module, as "module:Class": from observation to features, or a full forward(obs, memory)."""
    normalize_observation: bool = False
    """Feed the policy observations less their running mean, over their running deviation."""
    normalize_reward: bool = False
    """Divide rewards by the running deviation of the discounted return."""
    clip_observation: float = 10.0
    """Normalised observations stay within plus and minus this."""
    clip_reward: float = 10.0
    """Normalised rewards stay within plus and minus this."""

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.hidden_sizes):
            raise Refused(f"model.hidden_sizes must be positive, not {self.hidden_sizes}; say (64, 64), for example")
        if self.activation not in ("tanh", "relu"):
            raise Refused(f"model.activation is 'tanh' or 'relu', not '{self.activation}'")
        for name in ("clip_observation", "clip_reward"):
            if not getattr(self, name) > 0:
                raise Refused(f"model.{name} must be above 0, not {getattr(self, name)}")
        if not math.isfinite(self.log_std_init):
            raise Refused(f"model.log_std_init must be finite, not {self.log_std_init}")

    def check_for(self, spec: EnvironmentSpec) -> None:
        """Refuse what makes no sense for this environment."""
        if self.normalize_observation and isinstance(spec.observation, DiscreteSpec):
            raise Refused(f"model.normalize_observation needs a Box observation; that of {spec.id} is Discrete")
