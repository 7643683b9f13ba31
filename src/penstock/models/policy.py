"""The policy: from observations to a distribution over actions and a value. Built from settings and a seed alone.

Three bodies, one face: the built-in towers, a person's module from observation to features, and a person's whole
forward(observation, memory). Knows no algorithm, no environment code and no worker.
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import torch
from torch import Tensor, nn

from penstock.core.errors import Refused
from penstock.core.loading import load_object
from penstock.core.seeds import Purpose, derived_seed
from penstock.core.specs import BoxSpec, EnvironmentSpec
from penstock.models.distributions import Categorical, DiagonalGaussian, Distribution
from penstock.models.layout import action_size, observation_size
from penstock.models.mlp import Mlp, SettledTowers, run_towers
from penstock.models.settings import ModelSettings

HIDDEN_GAIN, POLICY_GAIN, VALUE_GAIN = math.sqrt(2.0), 0.01, 1.0


class Policy(nn.Module):
    """What every policy has: a body, and for Box actions a `log_std` of its own that no state changes."""

    log_std: nn.Parameter | None

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        super().__init__()
        self.spec = spec
        boxed = isinstance(spec.action, BoxSpec)
        start = torch.full((action_size(spec),), settings.log_std_init)
        self.register_parameter("log_std", nn.Parameter(start) if boxed else None)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        """Parameters of the distribution, [rows, n], and values, [rows], of observations [rows, ...]."""
        raise NotImplementedError

    def distribution(self, parameters: Tensor) -> Distribution:
        """The distribution that these rows of parameters describe."""
        if self.log_std is None:
            return Categorical(parameters)
        if parameters.shape[1] == 2 * len(self.log_std):  # a whole forward may give a deviation for every state
            mean, log_std = parameters.chunk(2, 1)
            return DiagonalGaussian(mean, log_std)
        return DiagonalGaussian(parameters, self.log_std)

    def readable(self, observation: Tensor) -> Tensor:
        """Observations as floating-point rows: a Box in its own shape, a Discrete one-hot."""
        if isinstance(self.spec.observation, BoxSpec):
            return observation.float()
        return nn.functional.one_hot(observation.long(), self.spec.observation.n).float()


class TowerPolicy(Policy):
    """The built-in one: a tower for the policy and one for the value, over the flat observation."""

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

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        flat = self.readable(observation).reshape(len(observation), -1)
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
    """A person's module from observation to features [rows, n], under linear heads of ours."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings, body: nn.Module) -> None:
        super().__init__(spec, settings)
        self.body = body
        width = self._feature_width()
        self.policy_head = nn.Linear(width, action_size(spec))
        self.value_head = nn.Linear(width, 1)
        if settings.ortho_init:
            initialize_orthogonally(self.policy_head, POLICY_GAIN)
            initialize_orthogonally(self.value_head, VALUE_GAIN)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        features = self.body(self.readable(observation))
        return self.policy_head(features), self.value_head(features).squeeze(1)

    def _feature_width(self) -> int:
        with torch.no_grad():
            features = self.body(self.readable(torch.zeros(2, *self.spec.observation.shape)))
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

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        parameters, value, memory = self.body(self.readable(observation), None)
        if memory is not None:
            raise Refused("model.custom returned a memory, which is not carried from step to step yet; return None")
        return parameters, value.reshape(-1)

    @torch.no_grad()
    def _check_shapes(self) -> None:
        parameters, value = self(torch.zeros(2, *self.spec.observation.shape))
        width = action_size(self.spec)
        widths = (width, 2 * width) if self.log_std is not None else (width,)
        if parameters.ndim != 2 or len(parameters) != 2 or parameters.shape[1] not in widths or len(value) != 2:
            wanted = " or ".join(f"(2, {width})" for width in widths)
            raise Refused(
                f"model.custom must turn 2 observations into parameters of shape {wanted} and 2 values for {self.spec.id}, "
                f"not {tuple(parameters.shape)} and {len(value)}"
            )


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
