from __future__ import annotations

import numpy as np
import pytest
import torch

from penstock.algorithms.a2c import A2C
from penstock.algorithms.batch import Batch
from penstock.algorithms.crew import Crew
from penstock.algorithms.ppo import PPO
from penstock.algorithms.settings import A2CSettings, PPOSettings
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.models.flat import FlatParameters
from penstock.models.policy import build_policy
from penstock.models.settings import ModelSettings
from penstock.models.twins import twin_of

IMAGE = EnvironmentSpec("image", BoxSpec((4, 36, 36), "uint8", (0,) * 5184, (255,) * 5184), DiscreteSpec(3))
NUMBERS = EnvironmentSpec("numbers", BoxSpec((5,), "float32", (-1.0,) * 5, (1.0,) * 5), DiscreteSpec(3))
SPECS = pytest.mark.parametrize("spec", [IMAGE, NUMBERS], ids=["image", "numbers"])
M, T, B = 2, 8, 4


def a_batch(spec: EnvironmentSpec) -> Batch:
    random = np.random.default_rng(3)
    shape = M, T, B
    seen = M, T + 1, B, *spec.observation.shape
    if spec is IMAGE:
        observation = random.integers(0, 256, seen).astype(np.uint8)
    else:
        observation = random.standard_normal(seen).astype(np.float32)
    return Batch(
        version=0,
        observation=observation,
        action=random.integers(0, 3, shape),
        log_prob=np.full(shape, -np.log(3), np.float32),
        reward=random.standard_normal(shape).astype(np.float32),
        value=random.standard_normal((M, T + 1, B)).astype(np.float32),
        terminated=random.random(shape) < 0.1,
        truncated=random.random(shape) < 0.1,
        valid=random.random(shape) < 0.9,
    )


def trained(spec: EnvironmentSpec, threads: int, **options: float) -> tuple[torch.Tensor, dict[str, float]]:
    settings = PPOSettings(gradient_threads=threads, batch_size=16, n_epochs=2, ent_coef=0.01, **options)  # type: ignore[arg-type]
    algorithm = PPO(build_policy(spec, ModelSettings(hidden_sizes=(16,), feature_size=32), 1), settings, 1)
    metrics = algorithm.update(a_batch(spec), 0.0)
    return algorithm.flat.values.clone(), metrics


@SPECS
@pytest.mark.parametrize("threads", [2, 3])
def test_pieces_add_up_to_the_whole(spec: EnvironmentSpec, threads: int) -> None:
    whole, said = trained(spec, 1)
    pieces, also = trained(spec, threads)
    torch.testing.assert_close(pieces, whole, rtol=2e-3, atol=2e-6)
    for name, value in said.items():
        assert also[name] == pytest.approx(value, rel=1e-3, abs=1e-6), name


@SPECS
def test_whoever_is_first_changes_no_bit(spec: EnvironmentSpec) -> None:
    first, _ = trained(spec, 3)
    assert all(torch.equal(trained(spec, 3)[0], first) for _ in range(5))


def test_a2c_in_pieces() -> None:
    def stepped(threads: int) -> torch.Tensor:
        settings = A2CSettings(gradient_threads=threads, optimizer="sgd", ent_coef=0.01, normalize_advantage=True)
        algorithm = A2C(build_policy(IMAGE, ModelSettings(feature_size=32), 1), settings, 1)
        algorithm.update(a_batch(IMAGE), 0.0)
        return algorithm.flat.values.clone()

    torch.testing.assert_close(stepped(3), stepped(1), rtol=1e-3, atol=1e-7)


def test_a_target_kl_is_that_of_the_whole_minibatch() -> None:
    _, whole = trained(NUMBERS, 1, target_kl=1e-9)
    _, pieces = trained(NUMBERS, 3, target_kl=1e-9)
    assert whole["updates"] == pieces["updates"] < 8, "the batch was left early"


@SPECS
def test_a_twin_sees_what_becomes_of_the_weights_and_keeps_its_gradients(spec: EnvironmentSpec) -> None:
    policy = build_policy(spec, ModelSettings(hidden_sizes=(16,), feature_size=32), 1)
    flat = FlatParameters(policy)
    twin, gradient = twin_of(policy, flat)
    flat.values.mul_(0.5)
    seen = torch.from_numpy(a_batch(spec).observation[0, 0])
    for ours, theirs in zip(policy(seen), twin(seen), strict=True):
        assert torch.equal(ours, theirs)
    sum(output.sum() for output in twin(seen)).backward()
    assert gradient.norm() > 0
    assert flat.gradient.norm() == 0


def test_a_fault_in_a_thread_is_heard() -> None:
    policy = build_policy(NUMBERS, ModelSettings(hidden_sizes=(16,)), 1)
    crew = Crew(policy, FlatParameters(policy), 2)
    rows = PPO(policy, PPOSettings(), 1).rows(a_batch(NUMBERS))

    def broken(*_: object) -> PPO:
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        crew.differentiate(rows, broken)  # type: ignore[type-var]
