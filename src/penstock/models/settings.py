"""What a person may say about the network and the normalisers. Knows no tensor library."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from penstock.core.errors import Refused
from penstock.core.specs import BoxSpec, EnvironmentSpec

SMALLEST_NATURE_IMAGE = 36
"""Pixels a side: what the Nature network's three convolutions leave one pixel of."""


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The section `model`."""

    network: Literal["auto", "mlp", "nature", "impala"] = "auto"
    """mlp: a tower each for policy and value over the flat observation; nature, impala: convolutions over the images of the
    observation, beside which its other parts are laid, under common features. auto: nature where there is an image."""
    hidden_sizes: tuple[int, ...] = (64, 64)
    """Units of each hidden layer of the mlp; the policy and the value have a tower each."""
    feature_size: int = 512
    """Units of the common features over convolutions."""
    memory_format: Literal["auto", "contiguous", "channels_last"] = "auto"
    """How images lie in memory inside convolutions. auto: channels_last, which is faster on every machine measured."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """What networks with convolutions multiply in. Weights, losses and optimiser stay float32."""
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
    reward_sign: bool = False
    """Learn from the sign of rewards alone, as is usual for Atari; returns that are reported stay raw."""
    clip_observation: float = 10.0
    """Normalised observations stay within plus and minus this."""
    clip_reward: float = 10.0
    """Normalised rewards stay within plus and minus this."""

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.hidden_sizes):
            raise Refused(f"model.hidden_sizes must be positive, not {self.hidden_sizes}; say (64, 64), for example")
        if self.feature_size < 1:
            raise Refused(f"model.feature_size must be 1 or more, not {self.feature_size}")
        if self.reward_sign and self.normalize_reward:
            raise Refused("model.reward_sign and model.normalize_reward exclude each other; set one of them")
        if self.activation not in ("tanh", "relu"):
            raise Refused(f"model.activation is 'tanh' or 'relu', not '{self.activation}'")
        for name in ("clip_observation", "clip_reward"):
            if not getattr(self, name) > 0:
                raise Refused(f"model.{name} must be above 0, not {getattr(self, name)}")
        if not math.isfinite(self.log_std_init):
            raise Refused(f"model.log_std_init must be finite, not {self.log_std_init}")

    def check_for(self, spec: EnvironmentSpec) -> None:
        """Refuse what makes no sense for this environment."""
        boxes = [place.leaf for place in spec.seen_places if isinstance(place.leaf, BoxSpec)]
        if self.normalize_observation and all(box.is_image for box in boxes):
            raise Refused(f"model.normalize_observation needs a Box of numbers among the observations of {spec.id}")
        if self.network in ("nature", "impala") and not any(box.is_image for box in boxes):
            raise Refused(f"model.network={self.network} needs an image, but {spec.id} observes none; use mlp or auto")
        if self.precision == "bfloat16" and (self.custom is None and not self.convolves(spec)):
            raise Refused(f"model.precision=bfloat16 is for networks with convolutions; that for {spec.id} has none")

    def convolves(self, spec: EnvironmentSpec) -> bool:
        """Whether the built-in network for this environment has convolutions."""
        images = any(isinstance(place.leaf, BoxSpec) and place.leaf.is_image for place in spec.seen_places)
        return self.network in ("nature", "impala") or (self.network == "auto" and images)
