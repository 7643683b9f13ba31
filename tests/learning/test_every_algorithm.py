"""Every algorithm under every correction and schedule, on every environment whose answer can be written down.

`make test` takes two of the environments, on which each correction's mistakes show, under two schedules; the rest is `long`.
PPO as it comes, with `clip`, is in `test_known_answers.py` too, with narrower margins.
"""

from __future__ import annotations

from typing import Any

import pytest
from answers import ANSWERS, GAMMA

from penstock.algorithms.settings import CATALOGUE
from penstock.workers.policy import load_policy

pytestmark = pytest.mark.processes

SMALL: dict[str, Any] = {
    "preset": "none",
    "seed": 1,
    "n_envs": 16,
    "n_blocks": 2,
    "hidden_sizes": (16,),
    "learning_rate_schedule": "linear",
    "max_grad_norm": 10.0,
    "gamma": GAMMA,
    "gae_lambda": 0.9,
    "tensorboard": False,
    "experiment": True,  # `none` under staleness is unsound, and must still find the answers of stationary problems
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "ppo": {"n_steps": 16, "n_epochs": 8, "batch_size": 128, "learning_rate": 0.02},
    "a2c": {"n_steps": 4, "optimizer": "adam", "learning_rate": 0.02},
    "impala": {"n_steps": 4, "optimizer": "adam", "learning_rate": 0.02},
}
DELAYED: dict[str, Any] = {"n_epochs": 2, "learning_rate": 0.01}
"""PPO under `delayed`: a batch that is all but solved in its many passes is overshot by the next, which starts from where the
one before it did, and the value swings about its answer (x_k+1 = x_k + a (y - x_k-K) is stable for a < 1 at K = 1, and for
a < 0.45 at K = 3). A share of the way has to do, and takes three times the steps."""
FLOWS = {
    "sync": {"schedule": "sync", "workers": 0},
    "overlap": {"schedule": "overlap", "workers": 1},
    "stale": {"schedule": "overlap", "staleness": 3, "workers": 1},
    "async": {"schedule": "async", "workers": 2},
}
CORRECTIONS = [(algo.name, name) for algo in CATALOGUE.values() for name in algo.demands.greatest_staleness]
IN_SHORT = [(name, flow) for name in ("final_row_truncated", "match_cue") for flow in ("overlap", "async")]
"""What `make test` takes, but for PPO with `clip`, which has tests of its own there."""


def fits(algo: str, correction: str, flow: str) -> bool:
    """Whether this pair may run at all: some corrections are for pinned schedules."""
    return flow != "async" or correction not in CATALOGUE[algo].demands.pinned_only


CASES = [
    pytest.param(
        name,
        algo,
        correction,
        flow,
        marks=[] if (name, flow) in IN_SHORT and correction != "clip" else [pytest.mark.long],
    )
    for name in ANSWERS
    for algo, correction in CORRECTIONS
    for flow in FLOWS
    if fits(algo, correction, flow)
]


@pytest.mark.parametrize(("name", "algo", "correction", "flow"), CASES)
def test_finds_the_answer(run_training: Any, name: str, algo: str, correction: str, flow: str) -> None:
    answer, several, swings = ANSWERS[name], algo == "ppo", (algo, correction) == ("ppo", "delayed")
    settings = {**SMALL, **ALGORITHMS[algo], **FLOWS[flow], **(DELAYED if swings else {}), **answer.settings}
    settings |= {"correction": correction, "envs": {"arguments": dict(answer.arguments)}}
    settings["steps"] = (3 if swings else 1) * answer.steps if several else answer.single_steps
    outcome = run_training(f"penstock/{answer.env}-v0", algo=algo, **settings)
    assert outcome.error is None
    assert outcome.summary["staleness_max"] <= outcome.summary["staleness_bound"]
    answer.check(load_policy(outcome.run_dir), outcome.summary)


def test_the_matrix_is_whole() -> None:
    """Every correction that an algorithm's settings admit, under every schedule that admits it, in every environment."""
    admitted = {("ppo", name) for name in ("clip", "decoupled", "vtrace", "delayed", "none")}
    admitted |= {("a2c", "delayed"), ("a2c", "none"), ("impala", "vtrace"), ("impala", "none")}
    assert set(CORRECTIONS) == admitted
    ran = {tuple(case.values) for case in CASES}
    assert len(ran) == len(ANSWERS) * (len(admitted) * len(FLOWS) - 2)  # `delayed` is of two algorithms, and not for async
    in_short = {(case.values[1], case.values[2]) for case in CASES if not case.marks}
    assert in_short == admitted - {("ppo", "clip")}
