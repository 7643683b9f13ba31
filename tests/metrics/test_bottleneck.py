"""Each part is slow in turn, and each is named."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.metrics.bottleneck import Shares, bottleneck


def sentence(**shares: Any) -> str:
    given_shares = {"schedule": "overlap", "staleness": 1, "learner_busy": 0.5, "sampler_busy": (0.5,), "cores": 2}
    return bottleneck(Shares(**{**given_shares, **shares}))


def test_a_slow_supervisor():
    assert "supervisor is busy 95 %" in sentence(supervisor_busy=0.95)


@pytest.mark.parametrize(
    ("learner_busy", "environment_share", "inference_share", "named"),
    [(0.8, 0.5, 0.5, "training"), (0.2, 0.7, 0.2, "environments"), (0.2, 0.2, 0.7, "inference")],
)
def test_one_process_names_its_largest_part(learner_busy: float, environment_share: float, inference_share: float, named: str):
    said = sentence(
        sampler_busy=(),
        learner_busy=learner_busy,
        environment_share=environment_share,
        inference_share=inference_share,
    )
    assert f"{named} most of all" in said
    assert "--workers 1" in said


def test_a_slow_block_is_named():
    said = sentence(slowest_block=3, slowest_block_wait=0.4, sampler_busy=(1.0, 0.4))
    assert "block 3" in said
    assert "async" in said


def test_sync_takes_turns():
    said = sentence(schedule="sync", staleness=0, learner_busy=0.7, sampler_busy=(0.3,))
    assert "training longer" in said
    assert "--schedule overlap" in said


def test_a_slow_learner():
    said = sentence(learner_busy=0.96, sampler_busy=(0.4,))
    assert said.startswith("The learner is the bottleneck (busy 96 %)")
    assert "batch_size" in said


def test_a_slow_learner_with_cores_to_spare_is_offered_threads():
    assert "learner_threads" in sentence(learner_busy=0.96, sampler_busy=(0.4,), cores=4)
    assert "learner_threads" not in sentence(learner_busy=0.96, sampler_busy=(0.6,), cores=2)


def test_a_slow_worker_is_named():
    said = sentence(learner_busy=0.4, sampler_busy=(0.5, 0.97, 0.45), cores=4)
    assert "worker 1" in said


def test_slow_environments():
    said = sentence(learner_busy=0.3, sampler_busy=(0.97,), environment_share=0.7, inference_share=0.2, cores=4)
    assert said.startswith("Environments are the bottleneck")
    assert "--workers 2" in said


def test_slow_environments_with_all_cores_in_use():
    busy = {"sampler_busy": (0.97,), "environment_share": 0.7, "sampler_cpu": 0.9, "cores": 2}
    assert "all cores" in sentence(learner_busy=0.7, **busy)
    assert "--workers 2" in sentence(learner_busy=0.3, **busy), "the learner's core is idle most of the time"


def test_slow_inference():
    said = sentence(learner_busy=0.3, sampler_busy=(0.97,), environment_share=0.2, inference_share=0.7)
    assert said.startswith("Inference is the bottleneck")
    assert "n_envs" in said


def test_sleeping_environments():
    said = sentence(learner_busy=0.3, sampler_busy=(0.97,) * 2, environment_share=0.9, sampler_cpu=0.05)
    assert "sleep" in said
    assert "--workers 4" in said


def test_nothing_full():
    assert "--staleness 2" in sentence(learner_busy=0.6, sampler_busy=(0.6,))
    assert "3 processes share 2 cores" in sentence(learner_busy=0.6, sampler_busy=(0.6, 0.6))


share = st.floats(0, 1)


@given(
    st.builds(
        Shares,
        schedule=st.sampled_from(["sync", "overlap", "async"]),
        staleness=st.integers(0, 4),
        learner_busy=share,
        sampler_busy=st.lists(share, max_size=8).map(tuple),
        environment_share=share,
        inference_share=share,
        sampler_cpu=share,
        supervisor_busy=share,
        slowest_block=st.none() | st.integers(0, 7),
        slowest_block_wait=share,
        cores=st.integers(1, 64),
    )
)
def test_always_one_sentence(shares: Shares):
    said = bottleneck(shares)
    assert said.endswith(".")
    assert "\n" not in said
    assert len(said) < 180


def test_a_slow_inference_server_is_not_taken_for_environments_that_sleep():
    waiting = {"learner_busy": 0.3, "sampler_busy": (0.97, 0.95), "environment_share": 0.2, "inference_share": 0.7, "cores": 4}
    said = sentence(**waiting, sampler_cpu=0.2, inference_server=True)
    assert said.startswith("The inference server is the bottleneck (samplers busy 96 %, 70 % of it waiting for its answers)")
    assert "--inference local" in said
    busy_elsewhere = {**waiting, "environment_share": 0.7, "inference_share": 0.2}
    assert sentence(**busy_elsewhere, sampler_cpu=0.9, inference_server=True).startswith("Environments are the bottleneck")


def test_a_server_goes_before_the_block_that_is_last_in_its_queue():
    queue = {"inference_server": True, "slowest_block": 1, "slowest_block_wait": 0.33, "sampler_busy": (0.95, 0.9)}
    assert sentence(**queue, inference_share=0.9, environment_share=0.1).startswith("The inference server is the bottleneck")
    assert "block 1 alone" in sentence(**queue, inference_share=0.1, environment_share=0.9)
