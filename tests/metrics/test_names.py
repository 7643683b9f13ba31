"""The dictionary of metrics."""

from __future__ import annotations

from penstock.metrics.names import METRICS

PROMISED = [
    "version",
    "updates",
    "env_steps",
    "env_steps_collected",
    "samples_consumed",
    "episodes",
    "return_mean",
    "return_std",
    "length_mean",
    "staleness_mean",
    "staleness_max",
    "staleness_histogram",
    "sps",
    "policy_loss",
    "value_loss",
    "entropy",
    "approx_kl",
    "clip_fraction",
    "explained_variance",
    "grad_norm",
    "learning_rate",
    "masked_steps",
    "dropped_segments",
    "short_segments",
    "learner_busy",
    "learner_wait",
    "sampler_busy",
    "wall_s",
    "digest",
]


def test_holds_every_promised_name():
    assert set(PROMISED) <= set(METRICS)


def test_every_metric_says_what_it_means():
    assert all(name == metric.name and len(metric.meaning) > 10 for name, metric in METRICS.items())


def test_no_two_metrics_share_a_tag():
    tags = [tag for metric in METRICS.values() for tag in metric.tags]
    assert len(tags) == len(set(tags))


def test_known_aliases():
    assert METRICS["return_mean"].tags == ("rollout/ep_rew_mean",)
    assert METRICS["policy_loss"].tags == ("train/policy_gradient_loss", "losses/policy_loss")
    assert METRICS["staleness_max"].tags == ("penstock/staleness_max",)
