"""Networks with convolutions: images to features, beside whatever else is observed. Knows no action and no algorithm.

An image is [rows, channels, height, width] inside, whatever the environment's order; its bytes become numbers from 0 to 1.
"""

from __future__ import annotations

import copy
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

ROWS_WORTH_A_CONVOLUTION = 64
"""Below, putting the weights into the order of a convolution costs more than it gains."""


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
        channels_last = settings.memory_format != "contiguous"
        self._multiplies_maps = len(self._places) == 1 and channels_last and not self._half
        self._settled: tuple[nn.ModuleDict, nn.Linear] | None = None  # what acts in bfloat16, once settled
        if settings.ortho_init:
            initialize_convolutions(self)

    def forward(self, observation: Tensors) -> Tensor:
        """[rows, feature_size] in float32."""
        parts = list(self._parts(observation))
        images, last = self._settled if self._settled and not torch.is_grad_enabled() else (self.images, self.features)
        with torch.autocast(parts[0].device.type, torch.bfloat16, enabled=self._half):
            seen = [images[key](part) if key else part for part, (_, key) in zip(parts, self._places, strict=True)]
            if self._multiplies_maps and len(seen[0]) >= ROWS_WORTH_A_CONVOLUTION:
                features = multiplied_maps(last, seen[0])
            else:
                features = last(torch.cat([part.flatten(1) for part in seen], 1) if len(seen) > 1 else seen[0].flatten(1))
        return torch.relu(features).float()

    def settle(self) -> None:
        """Called when the weights have changed and will then be used for many passes without gradients: autocast would turn
        them into bfloat16 in each of these anew, which costs as much as the pass of a small block."""
        if self._half:
            self._settled = None
            self._settled = copy.deepcopy(self.images).bfloat16(), copy.deepcopy(self.features).bfloat16()

    def _parts(self, observation: Tensors) -> Iterator[Tensor]:
        for place, key in self._places:
            part = observation if isinstance(observation, Tensor) else observation[place.name]
            yield part if key else columns_tensor(place.leaf, part)


def multiplied_maps(layer: nn.Linear, maps: Tensor) -> Tensor:
    """`layer` of the flattened maps, as one convolution that covers them: in float32 oneDNN multiplies that at 1.6 times the
    rate of the library behind linear layers (178 against 107 GFLOP/s a core), from some rows on."""
    weight = layer.weight.view(-1, *maps.shape[1:]).contiguous(memory_format=torch.channels_last)
    return nn.functional.conv2d(maps, weight, layer.bias).flatten(1)


class ImageReader(nn.Module):
    """One image to maps, [rows, channels, height, width]."""

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
            maps = self.convolutions(torch.zeros(1, channels, *image.height_and_width))
        self.width = maps.numel()

    def forward(self, image: Tensor) -> Tensor:
        if self._rank == 2:
            image = image.unsqueeze(1)
        elif not self._channels_first:
            image = image.permute(0, 3, 1, 2)
        arranged = image.contiguous(memory_format=self._memory_format)  # as bytes: as numbers it would cost twice as much
        result: Tensor = self.convolutions(arranged.to(self._dtype).mul_(1.0 / 255.0))
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
        layers += [nn.Conv2d(channels, outputs, side, stride), nn.ReLU(inplace=True)]
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
