"""What the learner is fed, row by row, after its way through real processes: each observation says whose it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from counting_rows import CountingReader

pytestmark = pytest.mark.processes

BLOCKS, LANES, STEPS, SEED = 4, 3, 7, 9
SETTINGS: dict[str, Any] = {
    "preset": "none",
    "seed": SEED,
    "steps": 2000,
    "n_envs": BLOCKS * LANES,
    "n_blocks": BLOCKS,
    "n_steps": STEPS,
    "n_epochs": 1,
    "batch_size": 21,
    "hidden_sizes": (4,),
    "workers": 2,
    "tensorboard": False,
}

MODULE = """
from recording_algorithm import Recording

class Here(Recording):
    directory = {directory!r}
"""


@pytest.fixture
def recorded(tmp_path, monkeypatch, run_training):
    """Trains with a recording algorithm; the batches, as the learner got them, and the outcome."""
    directory = tmp_path / "batches"
    directory.mkdir()
    module = f"recording_{abs(hash(str(tmp_path)))}"
    (tmp_path / f"{module}.py").write_text(MODULE.format(directory=str(directory)))
    monkeypatch.syspath_prepend(tmp_path)

    def run(**changes: Any) -> tuple[list[dict[str, np.ndarray]], Any]:
        outcome = run_training("penstock/Counting-v0", algo=f"{module}:Here", **{**SETTINGS, **changes})
        assert outcome.error is None
        return [load(path) for path in sorted(directory.iterdir())], outcome

    return run


def load(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files}


def segments_of(batch: dict[str, np.ndarray]) -> list[SimpleNamespace]:
    """One by one. A row that was acted in has a log-probability below 0; rows after a cut have 0."""
    count = len(batch["reward"])
    pieces = [{name: array[number] for name, array in batch.items() if name != "version"} for number in range(count)]
    return [SimpleNamespace(**piece, steps_done=(piece["log_prob"] < 0).sum(axis=0)) for piece in pieces]


def readers(*, truncate: bool = False) -> list[CountingReader]:
    return [CountingReader(block, LANES, seed=SEED, episode_steps=5, ragged=True, truncate=truncate) for block in range(BLOCKS)]


@pytest.mark.parametrize(("schedule", "inference"), [("sync", "local"), ("overlap", "local"), ("overlap", "server")])
@pytest.mark.parametrize(("parallel", "truncate"), [("serial", True), ("threads", False), ("processes", True)])
def test_pinned_batches_hold_every_block_in_order(recorded, schedule, inference, parallel, truncate):
    arguments = {"episode_steps": 5, "ragged": True, "truncate": truncate}
    batches, outcome = recorded(schedule=schedule, inference=inference, parallel=parallel, envs={"arguments": arguments})
    blocks = readers(truncate=truncate)
    for version, batch in enumerate(batches):
        assert batch["version"] == version
        assert batch["reward"].shape == (BLOCKS, STEPS, LANES)
        for reader, segment in zip(blocks, segments_of(batch), strict=True):
            reader.read(segment)
    assert sum(reader.rows for reader in blocks) == outcome.summary["env_steps"]
    assert sum(reader.resets for reader in blocks) == outcome.summary["masked_steps"] > 0
    assert sum(reader.ends for reader in blocks) == outcome.summary["episodes"]


@pytest.mark.parametrize("inference", ["local", "server"])
@pytest.mark.parametrize("chaos", [None, "delays:2", "slow:1=5"])
def test_free_batches_lose_and_repeat_nothing(recorded, chaos, inference):
    """Whole or cut, each segment begins exactly where its block's last one stopped."""
    arguments = {"episode_steps": 5, "ragged": True}
    wishes = {"schedule": "async", "staleness": 1, "chaos": chaos, "inference": inference}
    batches, outcome = recorded(**wishes, envs={"arguments": arguments})
    blocks = readers()
    for batch in batches:
        for segment in segments_of(batch):
            (reader,) = [reader for reader in blocks if reader.expects(segment)]
            reader.read(segment)
    assert sum(reader.rows for reader in blocks) == outcome.summary["env_steps"]
    assert sum(reader.ends for reader in blocks) == outcome.summary["episodes"]
    assert outcome.summary["dropped_segments"] == 0


def test_an_algorithm_of_ones_own_learns_as_it_is_told(recorded):
    _, outcome = recorded(steps=300)
    assert outcome.summary["algo"].endswith(":Here")
    assert outcome.summary["updates"] > 0
    assert outcome.summary["digest"] is not None
