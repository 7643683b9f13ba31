"""The policy: from observations to a distribution over actions and a value. Built from settings and a seed alone.

Three bodies, one face: the built-in towers; features under heads of ours, from built-in convolutions or a person's module;
and a person's whole forward(observation, memory). Knows no algorithm, no environment code and no worker.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from penstock.core.errors import Refused
from penstock.core.loading import load_object
from penstock.core.seeds import Purpose, derived_seed
from penstock.core.specs import MASK, OBSERVED, BoxSpec, CompositeSpec, EnvironmentSpec, Leaf, MultiDiscreteSpec, leaves
from penstock.models.distributions import Categorical, DiagonalGaussian, Distribution, Joint, MultiCategorical
from penstock.models.features import action_size, box_size, observation_size, parameters_of
from penstock.models.mlp import Mlp, SettledTowers, run_towers
from penstock.models.networks import ImageNetwork
from penstock.models.reading import flat_columns, readable
from penstock.models.sampling import FORBIDDEN
from penstock.models.settings import ModelSettings
from penstock.models.tensors import Tensors, tensors_of

HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN = math.sqrt(2.0), 0.01, 1.0


class Policy(nn.Module):
    """What every policy has: a body, and for Box actions a `log_std` of its own that no state changes."""

    log_std: nn.Parameter | None

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        super().__init__()
        self.spec = spec
        boxes = box_size(spec)
        start = torch.full((boxes,), settings.log_std_init)
        self.register_parameter("log_std", nn.Parameter(start) if boxes else None)

    def forward(self, observation: Tensors) -> tuple[Tensor, Tensor]:
        """Parameters of the distribution, [rows, n], and values, [rows], of observations [rows, ...]."""
        if not self.spec.masked:
            return self.compute(observation)
        assert isinstance(observation, dict)
        parameters, value = self.compute(observation.get(OBSERVED, observation))
        return parameters.masked_fill(~observation[MASK], float(FORBIDDEN)), value

    def compute(self, seen: Tensors) -> tuple[Tensor, Tensor]:
        """The same of what the network sees: observations without a mask."""
        raise NotImplementedError

    def distribution(self, parameters: Tensor) -> Distribution:
        """The distribution that these rows of parameters describe."""
        action = self.spec.action
        if not isinstance(action, CompositeSpec):
            return self._leaf_distribution(action, parameters, self.log_std)
        parts, columns, boxes = {}, 0, 0
        for place in leaves(action):
            width, box = parameters_of(place.leaf), place.leaf.size if isinstance(place.leaf, BoxSpec) else 0
            log_std = None if self.log_std is None else self.log_std[boxes : boxes + box]
            parts[place.name] = self._leaf_distribution(place.leaf, parameters[:, columns : columns + width], log_std)
            columns, boxes = columns + width, boxes + box
        return Joint(parts)

    def gives_deviations(self, parameters: Tensor) -> bool:
        """Whether these rows hold a deviation for every state, as a whole forward of a person's own may give."""
        return isinstance(self.spec.action, BoxSpec) and parameters.shape[1] == 2 * self.spec.action.size

    def _leaf_distribution(
        self, leaf: Leaf, parameters: Tensor, log_std: Tensor | None
    ) -> Categorical | MultiCategorical | DiagonalGaussian:
        if isinstance(leaf, MultiDiscreteSpec):
            return MultiCategorical(parameters, leaf.counts)
        if log_std is None or not isinstance(leaf, BoxSpec):
            return Categorical(parameters)
        if self.gives_deviations(parameters):
            mean, log_std = parameters.chunk(2, 1)
            return DiagonalGaussian(mean, log_std)
        return DiagonalGaussian(parameters, log_std)


class TowerPolicy(Policy):
    """The built-in one for numbers: a tower for the policy and one for the value, over the flat observation."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        super().__init__(spec, settings)
        widths = (observation_size(spec), *settings.hidden_sizes)
        self.policy = Mlp((*widths, action_size(spec)), settings.activation)
        self.value = Mlp((*widths, 1), settings.activation)
        self._settled: SettledTowers | None = None
        if settings.ortho_init:
            for tower, gain in ((self.policy, POLICY_GAIN), (self.value, VALUE_GAIN)):
                for layer in tower:
                    initialize_orthogonally(layer, gain if layer is tower[-1] else HIDDEN_GAIN)

    def compute(self, seen: Tensors) -> tuple[Tensor, Tensor]:
        flat = flat_columns(self.spec, seen)
        towers = None if flat.requires_grad or not torch.is_grad_enabled() else self._settled_towers()
        parameters, value = run_towers(towers, flat) if towers else (self.policy(flat), self.value(flat))
        return parameters, value.squeeze(1)

    def _settled_towers(self) -> SettledTowers | None:
        """For the short way, once both towers are settled; made anew if they were settled elsewhere since."""
        if self.policy.settled is None or self.value.settled is None:
            return None
        if self._settled is None or self._settled.towers[0][0] is not self.policy.settled:
            self._settled = SettledTowers((self.policy, self.value))
        return self._settled

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_settled": None}  # a copy's parameters lie elsewhere


class FeaturePolicy(Policy):
    """A module from observation to features [rows, n], under linear heads of ours: a person's, or our convolutions."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings, body: nn.Module) -> None:
        super().__init__(spec, settings)
        self.body = body
        width = self._feature_width()
        self.policy_head = nn.Linear(width, action_size(spec))
        self.value_head = nn.Linear(width, 1)
        if settings.ortho_init:
            initialize_orthogonally(self.policy_head, POLICY_GAIN)
            initialize_orthogonally(self.value_head, VALUE_GAIN)

    def compute(self, seen: Tensors) -> tuple[Tensor, Tensor]:
        features = self._features(seen)
        return self.policy_head(features), self.value_head(features).squeeze(1)

    def _features(self, seen: Tensors) -> Tensor:
        given = seen if isinstance(self.body, ImageNetwork) else readable(self.spec, seen)
        features: Tensor = self.body(given)
        return features

    def _feature_width(self) -> int:
        with torch.no_grad():
            features = self._features(two_observations(self.spec))
        if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
            given = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
            raise Refused(f"model.custom must turn 2 observations into features of shape (2, n), not {given}")
        return features.shape[1]


class WholePolicy(Policy):
    """A person's forward(observation, memory) -> (distribution parameters, value, memory)."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings, body: nn.Module) -> None:
        super().__init__(spec, settings)
        self.body = body
        self._check_shapes()

    def compute(self, seen: Tensors) -> tuple[Tensor, Tensor]:
        parameters, value, memory = self.body(readable(self.spec, seen), None)
        if memory is not None:
            raise Refused("model.custom returned a memory, which is not carried from step to step yet; return None")
        return parameters, value.reshape(-1)

    @torch.no_grad()
    def _check_shapes(self) -> None:
        parameters, value = self.compute(two_observations(self.spec))
        width = action_size(self.spec)
        widths = (width, 2 * width) if isinstance(self.spec.action, BoxSpec) else (width,)
        if parameters.ndim != 2 or len(parameters) != 2 or parameters.shape[1] not in widths or len(value) != 2:
            wanted = " or ".join(f"(2, {width})" for width in widths)
            raise Refused(
                f"model.custom must turn 2 observations into parameters of shape {wanted} and 2 values for {self.spec.id}, "
                f"not {tuple(parameters.shape)} and {len(value)}"
            )


def two_observations(spec: EnvironmentSpec) -> Tensors:
    """Two rows of zeros, as a network sees them, to try it on."""
    rows = np.zeros((2, *spec.observation.shape), spec.observation.dtype)
    tensors = tensors_of(rows)
    return tensors.get(OBSERVED, tensors) if spec.masked and isinstance(tensors, dict) else tensors


def initialize_orthogonally(layer: nn.Module, gain: float) -> None:
    """Orthogonal weights (Saxe et al. 2014, arXiv:1312.6120), biases 0."""
    assert isinstance(layer, nn.Linear)
    nn.init.orthogonal_(layer.weight, gain)
    nn.init.zeros_(layer.bias)


def build_policy(spec: EnvironmentSpec, settings: ModelSettings, seed: int, custom: Any = None) -> Policy:
    """The policy with its initial weights, the same for the same seed.

    `custom` is a module class or factory handed over as itself; it goes before `settings.custom`, its name.
    """
    settings.check_for(spec)
    maker = custom if custom is not None else (load_object(settings.custom) if settings.custom else None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derived_seed(seed, Purpose.INITIAL_WEIGHTS))
        if maker is None and settings.convolves(spec):
            return FeaturePolicy(spec, settings, ImageNetwork(spec, settings))
        if maker is None:
            return TowerPolicy(spec, settings)
        return _around(_make_body(maker, spec), spec, settings)


def _make_body(maker: Any, spec: EnvironmentSpec) -> nn.Module:
    """Call a person's class with the environment's spec if it takes an argument, else with none."""
    if isinstance(maker, nn.Module):
        made = type(maker).__name__
        raise Refused(f"model is an instance of {made}; pass the class, or a function that makes one: lambda: {made}(...)")
    body = maker(spec) if _required_or_named_spec(maker) else maker()
    if not isinstance(body, nn.Module):
        raise Refused(f"model.custom must make a torch.nn.Module; '{maker}' made {type(body).__name__}")
    for part in body.modules():
        if isinstance(part, nn.modules.batchnorm._BatchNorm):
            raise Refused(f"model.custom holds {type(part).__name__}, which mixes rows; use LayerNorm, for example")
    return body


def _around(body: nn.Module, spec: EnvironmentSpec, settings: ModelSettings) -> Policy:
    parameters = inspect.signature(body.forward).parameters
    required = [p for p in parameters.values() if p.default is p.empty]
    whole = "memory" in parameters or len(required) == 2
    return WholePolicy(spec, settings, body) if whole else FeaturePolicy(spec, settings, body)


def _required_or_named_spec(maker: Any) -> bool:
    parameters = inspect.signature(maker).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return any(p.name == "spec" or (p.default is p.empty and p.kind not in variadic) for p in parameters)
