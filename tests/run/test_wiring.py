"""How many samplers a run has, where nobody says: speed is all that hangs on it."""

from __future__ import annotations

import pytest

from penstock.config.building import assignments_of, build
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.run.wiring import suited_workers

MOTORS = EnvironmentSpec(
    "motors", BoxSpec((17,), "float32", (-1.0,) * 17, (1.0,) * 17), BoxSpec((2,), "float32", (-1.0,) * 2, (1.0,) * 2)
)
SCREEN = EnvironmentSpec("screen", BoxSpec((4, 84, 84), "uint8", (), ()), DiscreteSpec(6))


@pytest.mark.parametrize(
    ("n_epochs", "batch_size", "step_us", "more"),
    [
        (4, 512, 4, False),  # CartPole: 4 x (2.5 + 350 / 512) = 13 µs of learning a step
        (4, 512, 29, True),  # HalfCheetah, large minibatches
        (10, 64, 29, False),  # and small ones: 10 x (2.5 + 350 / 64) = 80 µs
        (10, 64, 5000, True),
    ],
)
def test_a_core_is_left_to_the_learner_unless_environments_have_more_to_do(n_epochs, batch_size, step_us, more):
    settings = {"n_epochs": n_epochs, "batch_size": batch_size, "n_envs": 32, "n_steps": 64}
    job = build("HalfCheetah-v5", preset="none", assignments=assignments_of(settings)).job
    for cores in (1, 2, 8):
        expected = cores if more else max(1, cores - 1)
        assert suited_workers(job, MOTORS, step_us * 1e-6, cores) == expected
        assert suited_workers(job, SCREEN, step_us * 1e-6, cores) == max(1, cores - 1)  # convolutions learn slowly
