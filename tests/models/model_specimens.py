"""Small specs that the tests of this room share."""

from __future__ import annotations

from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec

OBSERVED = BoxSpec((5,), "float32", (-9.0,) * 5, (9.0,) * 5)
CHOICES = EnvironmentSpec("choices", OBSERVED, DiscreteSpec(3, start=2))
MOTORS = EnvironmentSpec("motors", OBSERVED, BoxSpec((2, 2), "float32", (-1.0,) * 4, (0.5,) * 4))
PLACES = EnvironmentSpec("places", DiscreteSpec(7), DiscreteSpec(2))
EVERY = [CHOICES, MOTORS, PLACES]
