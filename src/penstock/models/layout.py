"""Where each parameter lies in the flat vector by which weights travel. Knows no tensor library and no file format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import prod

from penstock.core.specs import Array, EnvironmentSpec
from penstock.models.features import action_size, box_size, observation_size
from penstock.models.settings import ModelSettings


@dataclass(frozen=True)
class Place:
    """One parameter's place."""

    name: str
    shape: tuple[int, ...]
    offset: int

    @property
    def size(self) -> int:
        return prod(self.shape)


@dataclass(frozen=True)
class ParameterLayout:
    """Parameters in definition order, one after the other, without gaps."""

    places: tuple[Place, ...]

    @classmethod
    def of(cls, shapes: Iterable[tuple[str, tuple[int, ...]]]) -> ParameterLayout:
        places: list[Place] = []
        offset = 0
        for name, shape in shapes:
            places.append(Place(name, tuple(shape), offset))
            offset += places[-1].size
        return cls(tuple(places))

    @property
    def size(self) -> int:
        return self.places[-1].offset + self.places[-1].size if self.places else 0

    def views(self, flat: Array) -> dict[str, Array]:
        """The parameters by name, as views of `flat`."""
        if flat.shape != (self.size,):
            raise ValueError(f"a flat vector of {self.size} numbers is needed, not one of shape {flat.shape}")
        return {place.name: flat[place.offset : place.offset + place.size].reshape(place.shape) for place in self.places}


def mlp_layout(spec: EnvironmentSpec, settings: ModelSettings) -> ParameterLayout:
    """The layout of the built-in towers, known without building them. A test holds it to the real one."""
    shapes: list[tuple[str, tuple[int, ...]]] = []
    if box_size(spec):
        shapes.append(("log_std", (box_size(spec),)))
    for tower, outputs in (("policy", action_size(spec)), ("value", 1)):
        widths = (observation_size(spec), *settings.hidden_sizes, outputs)
        for index, (columns, rows) in enumerate(pairwise(widths)):
            shapes += [(f"{tower}.{index}.weight", (rows, columns)), (f"{tower}.{index}.bias", (rows,))]
    return ParameterLayout.of(shapes)
