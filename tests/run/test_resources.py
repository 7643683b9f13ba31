"""What would run out later is refused before anything is started, with the number needed and the number there."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.config.building import assignments_of, build
from penstock.core.errors import Refused
from penstock.envs.making import EnvironmentMaker
from penstock.envs.probing import probe
from penstock.memory import arena
from penstock.run import resources
from penstock.run.resources import check_resources, num_weights
from penstock.run.wiring import Wiring

MIB = 2**20


def wiring_of(tmp_path: Path, **settings) -> Wiring:
    job = build("CartPole-v1", preset="none", assignments=assignments_of({"workers": 1, **settings})).job
    maker = EnvironmentMaker.of(job.env)
    return Wiring(job=job, maker=maker, probe=probe(maker, job.env), run_dir=tmp_path / "run", settings_digest="")


def test_an_ordinary_run_has_room(tmp_path):
    wiring = wiring_of(tmp_path)
    assert num_weights(wiring) == (4 * 64 + 64) + (64 * 64 + 64) + (64 * 2 + 2) + (4 * 64 + 64) + (64 * 64 + 64) + (64 + 1)
    check_resources(wiring)
    assert list(tmp_path.iterdir()) == []


def test_weights_count_as_often_as_they_are_kept(tmp_path, monkeypatch):
    """K + 2 places on the board, five in the learner, three in the sampler; the slots are small beside."""
    wiring = wiring_of(tmp_path, hidden_sizes=(4096, 4096), staleness=2)
    copies = (2 + 2) + 5 + 3
    needed = copies * 4 * num_weights(wiring)
    monkeypatch.setattr(arena, "available_bytes", lambda: needed + 3 * MIB)
    check_resources(wiring)
    monkeypatch.setattr(arena, "available_bytes", lambda: needed - MIB)
    with pytest.raises(Refused, match=r"12 copies of 33,\d{3},\d{3} weights needs 1,5\d\d MiB of memory but 1,5\d\d MiB"):
        check_resources(wiring)


def test_an_inference_server_keeps_the_only_weights_that_act(tmp_path):
    wide = {"hidden_sizes": (64, 64), "n_envs": 16, "n_blocks": 4, "workers": 4, "staleness": 2}
    with_server = resources.copies_of_weights(wiring_of(tmp_path, **wide, inference="server"))
    assert (with_server, resources.copies_of_weights(wiring_of(tmp_path, **wide))) == ((2 + 2) + 5 + 3, (2 + 2) + 5 + 3 * 4)


def test_descriptors_of_concurrent_lanes_are_counted(tmp_path, monkeypatch):
    crowd = {"n_envs": 1000, "n_blocks": 4, "parallel": "threads", "n_steps": 16, "batch_size": 16}
    monkeypatch.setattr(resources, "most_descriptors", lambda: 2127)
    with pytest.raises(Refused, match="1000 lanes in one worker need 2,128 descriptors but 2,127 are allowed"):
        check_resources(wiring_of(tmp_path, **crowd))
    check_resources(wiring_of(tmp_path, **{**crowd, "parallel": "serial"}))
    check_resources(wiring_of(tmp_path, **{**crowd, "workers": 4}))


def test_a_disk_without_room_for_the_checkpoints_is_refused(tmp_path, monkeypatch):
    wiring = wiring_of(tmp_path, hidden_sizes=(1024, 1024))
    needed = 4 * 3 * 4 * num_weights(wiring) + 16 * MIB
    monkeypatch.setattr(resources.shutil, "disk_usage", lambda place: SimpleNamespace(free=needed - 1))
    with pytest.raises(Refused, match=rf"113 MiB are needed for checkpoints .* but 113 MiB are free in {tmp_path};"):
        check_resources(wiring)
    monkeypatch.setattr(resources.shutil, "disk_usage", lambda place: SimpleNamespace(free=needed))
    check_resources(wiring)


MANY_LANES = """
import resource, penstock
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 2048))
settings = dict(n_envs=200, n_blocks=2, n_steps=8, batch_size=1600, parallel="threads", workers=1, steps=1600)
run = penstock.train("CartPole-v1", preset="none", quiet=True, **settings)
print(run.summary["stop_reason"])
"""


@pytest.mark.processes
def test_a_low_limit_that_may_be_raised_is_raised_where_it_is_needed(tmp_path):
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == resource.RLIM_INFINITY or hard >= 2048, "this test needs a hard limit of 2048 descriptors"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", MANY_LANES], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "steps", done.stderr
