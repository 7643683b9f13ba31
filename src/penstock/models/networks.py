"""Networks with convolutions: images to features, beside whatever else is observed. Knows no action and no algorithm.

An image is [rows, channels, height, width] inside, whatever the environment's order; its bytes become numbers from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from penstock.core.specs import BoxSpec, EnvironmentSpec, Place
from penstock.models.features import columns_of
from penstock.models.reading import columns_tensor
from penstock.models.settings import SMALLEST_NATURE_IMAGE, ModelSettings
from penstock.models.tensors import Tensors

Convolution = tuple[int, int, int]
"""Channels, side of the kernel, stride."""

NATURE: Sequence[Convolution] = ((32, 8, 4), (64, 4, 2), (64, 3, 1))
"""Mnih et al. 2015, Methods, "Model architecture"."""
SMALL: Sequence[Convolution] = ((16, 2, 1), (32, 2, 1), (64, 2, 1))
"""For images too small for those, such as a grid of tiles."""
IMPALA_CHANNELS = (16, 32, 32)
"""Espeholt et al. 2018 (arXiv:1802.01561), figure 3, the larger network."""


class ImageNetwork(nn.Module):
    """Every image through convolutions of its own; then one layer of features over all that is observed."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        super().__init__()
        self.images = nn.ModuleDict()
        self._places: list[tuple[Place, str | None]] = []
        width = 0
        for index, place in enumerate(spec.seen_places):
            if isinstance(place.leaf, BoxSpec) and place.leaf.is_image:
                reader = ImageReader(place.leaf, settings)
                self.images[str(index)] = reader
                self._places.append((place, str(index)))
                width += reader.width
            else:
                self._places.append((place, None))
                width += columns_of(place.leaf)
        self.features = nn.Linear(width, settings.feature_size)
        self._half = settings.precision == "bfloat16"
        if settings.ortho_init:
            initialize_convolutions(self)

    def forward(self, observation: Tensors) -> Tensor:
        """[rows, feature_size] in float32."""
        parts = list(self._parts(observation))
        with torch.autocast(parts[0].device.type, torch.bfloat16, enabled=self._half):
            joined = [self.images[key](part) if key else part for part, (_, key) in zip(parts, self._places, strict=True)]
            features = torch.relu(self.features(joined[0] if len(joined) == 1 else torch.cat(joined, 1)))
        return features.float()

    def _parts(self, observation: Tensors) -> Iterator[Tensor]:
        for place, key in self._places:
            part = observation if isinstance(observation, Tensor) else observation[place.name]
            yield part if key else columns_tensor(place.leaf, part)


class ImageReader(nn.Module):
    """One image to a row of numbers."""

    def __init__(self, image: BoxSpec, settings: ModelSettings) -> None:
        super().__init__()
        self._rank = len(image.shape)
        self._channels_first = self._rank == 2 or image.shape[0] <= image.shape[2]
        channels = 1 if self._rank == 2 else min(image.shape[0], image.shape[2])
        last = settings.memory_format != "contiguous"
        self._memory_format = torch.channels_last if last else torch.contiguous_format
        self._dtype = torch.bfloat16 if settings.precision == "bfloat16" else torch.float32
        self.convolutions = _impala(channels) if settings.network == "impala" else _plain(channels, image)
        with torch.no_grad():
            self.width = int(self.convolutions(torch.zeros(1, channels, *image.height_and_width)).numel())

    def forward(self, image: Tensor) -> Tensor:
        if self._rank == 2:
            image = image.unsqueeze(1)
        elif not self._channels_first:
            image = image.permute(0, 3, 1, 2)
        scaled = image.to(self._dtype, memory_format=self._memory_format).mul_(1.0 / 255.0)
        result: Tensor = self.convolutions(scaled).flatten(1)
        return result


class Residual(nn.Module):
    """x + conv(relu(conv(relu(x))))."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1)
        self.second = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = x + self.second(torch.relu(self.first(torch.relu(x))))
        return result


def _plain(channels: int, image: BoxSpec) -> nn.Sequential:
    large = min(image.height_and_width) >= SMALLEST_NATURE_IMAGE
    layers: list[nn.Module] = []
    for outputs, side, stride in NATURE if large else SMALL:
        layers += [nn.Conv2d(channels, outputs, side, stride), nn.ReLU()]
        channels = outputs
    return nn.Sequential(*layers)


def _impala(channels: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for outputs in IMPALA_CHANNELS:
        layers += [nn.Conv2d(channels, outputs, 3, padding=1), nn.MaxPool2d(3, 2, padding=1)]
        layers += [Residual(outputs), Residual(outputs)]
        channels = outputs
    return nn.Sequential(*layers, nn.ReLU())


def initialize_convolutions(network: nn.Module) -> None:
    """Orthogonal weights with gain sqrt 2, biases 0, in every layer."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.orthogonal_(layer.weight, math.sqrt(2.0))
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
