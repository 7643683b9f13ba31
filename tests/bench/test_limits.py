"""The limit: its arithmetic, the pin of its kernels, and one small measurement."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

import pytest

from penstock.bench import image_kernels, machine, reference_kernels
from penstock.bench.figures import Spread
from penstock.bench.jobs import JOBS
from penstock.bench.limits import Part, limit_of, limit_sps, measure_limits
from penstock.bench.tables import limits_table

PINNED = {
    "reference_kernels.py": "2b641db6c49177ae1ac96d2669570e0a871654c7bf4a29516237e200e3e64bbd",
    "image_kernels.py": "bb1f778990d3de281142539e329acb84c5a1fbb62f7b0f38f06708c4a4728861",
}
"""Changing the kernels makes published figures incomparable: do it on purpose, and say so in docs/results.md."""

KERNELS = [Path(str(module.__file__)) for module in (reference_kernels, image_kernels)]


def test_the_kernels_are_frozen():
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in KERNELS}
    assert found == PINNED


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_the_kernels_import_nothing_of_penstock(path: Path):
    tree = ast.walk(ast.parse(path.read_text()))
    imported = [name.name for node in tree if isinstance(node, ast.Import) for name in node.names]
    tree = ast.walk(ast.parse(path.read_text()))
    imported += [node.module or "" for node in tree if isinstance(node, ast.ImportFrom)]
    assert "torch" in imported
    assert not [name for name in imported if name.startswith("penstock")]


def test_limit_arithmetic():
    # 1 us + 2 us + 4 * 3 us = 15 us a step and core; two cores: 2 / 15e-6
    found = limit_sps(env_s=1e-6, inference_s=2e-6, update_s=3e-6, epochs=4, cores=2)
    assert found == pytest.approx(2 / 15e-6)


def test_of_two_ways_the_faster_counts():
    def part(name: str, per_s: float) -> Part:
        return Part(name, "steps", Spread(per_s, per_s, per_s, 1))

    parts = [
        part("environment, plain", 100.0),
        part("environment, vector form of 32", 1000.0),
        part("forward of 32, NumPy", 500.0),
        part("forward of 32, torch", 250.0),
        part("PPO update, minibatch 512", 2000.0),
    ]
    found = limit_of(JOBS["cartpole"], parts, products_per_s=1e6, cores=2)
    assert (found.env_s, found.inference_s, found.update_s) == pytest.approx((1 / 1000, 1 / 500, 1 / 2000))
    assert found.sps == pytest.approx(2 / (0.001 + 0.002 + 4 * 0.0005))
    # a row forward: 2 * (2 * (4*64 + 64*64) + 64*2 + 64*1) = 17792 operations; an update: 3 times, less 2*2*4*64 = 1024
    assert found.products_sps == pytest.approx(2 / (0.001 + 0.017792 + 4 * (3 * 0.017792 - 0.001024)))


def test_every_kernel_counts_what_it_does():
    assert reference_kernels.ppo_update(4, 2, 8, discrete=True)() == 8
    assert reference_kernels.ppo_update(3, 2, 8, discrete=False)() == 8
    assert reference_kernels.plain_environment("CartPole-v1", 50)() == 50
    # lanes that ended are reset by the next step, which then is none; 3 lanes of random play end within 200 steps
    assert 3 * 100 < reference_kernels.vector_environment("CartPole-v1", 3, 200)() < 3 * 200


def test_a_small_measurement(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("penstock.bench.limits.PRODUCT_SIZE", 64)
    found = measure_limits([JOBS["cartpole"]], seconds=0.01)
    rates = [part["rate"]["median"] for group in found["parts"].values() for part in group]
    assert len(rates) >= 8
    assert all(rate > 0 for rate in rates)
    limit = found["limits"]["cartpole"]
    arithmetic = limit["env_s"] + limit["inference_s"] + 4 * limit["update_s"]
    assert limit["sps"] == pytest.approx(found["machine"]["cores"] / arithmetic)
    assert f"limit of cartpole (CartPole-v1): {limit['sps']:,.0f} steps/s" in limits_table(found)


def test_the_machine_says_who_it_is(tmp_path: Path):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nmodel name : A Fine Processor\nflags : fpu avx512_bf16\n")
    assert machine.cpu_model(cpuinfo) == "A Fine Processor"
    assert machine.has_bfloat16(cpuinfo)
    assert not machine.has_bfloat16(tmp_path / "nowhere")
