"""The dictionary of metrics: what each name in a record means, its unit, and what SB3 and CleanRL call it.

A record is a flat mapping of these names to plain numbers. An alias stands here only where the other tool's curve means the
same quantity: SB3's `train/entropy_loss` has the opposite sign, its `train/n_updates` counts epochs, CleanRL's value loss has
a factor 1/2, and both average clipped samples over all epochs, so none of these is one. This module knows nothing of
where records go.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One name in a record."""

    name: str
    unit: str
    meaning: str
    sb3: str | None = None
    cleanrl: str | None = None
    curve: bool = True
    """Whether it makes a curve (a list by its mean); a histogram or a digest does not."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Its names in TensorBoard: those that people's dashboards already know, else one of our own."""
        aliases = tuple(alias for alias in (self.sb3, self.cleanrl) if alias)
        return aliases or (f"penstock/{self.name}",)


_DICTIONARY = (
    Metric("version", "batches", "batches trained so far", sb3="time/iterations"),
    Metric("updates", "steps", "optimiser steps so far"),
    Metric("env_steps", "steps", "agent decisions trained on, over all lanes, valid rows only", sb3="time/total_timesteps"),
    Metric("env_steps_collected", "steps", "agent decisions collected, trained on or not"),
    Metric("samples_consumed", "rows", "rows that went through optimiser steps, each epoch counted"),
    Metric("episodes", "episodes", "training episodes finished so far"),
    Metric(
        "return_mean",
        "reward",
        "mean raw return of the last 100 training episodes",
        sb3="rollout/ep_rew_mean",
    ),
    Metric("return_std", "reward", "standard deviation of those returns"),
    Metric("return_last", "reward", "raw return of the latest finished episode", cleanrl="charts/episodic_return"),
    Metric(
        "length_mean",
        "steps",
        "mean length of the last 100 training episodes",
        sb3="rollout/ep_len_mean",
    ),
    Metric("staleness_mean", "versions", "mean age of the samples of this batch: version trained at less version acted by"),
    Metric("staleness_max", "versions", "greatest age of a sample of this batch"),
    Metric("staleness_histogram", "rows", "samples of this batch by age 0, 1, 2, ...", curve=False),
    Metric("sps", "steps/s", "env_steps over the time since the first segment was issued", "time/fps", "charts/SPS"),
    Metric("policy_loss", "", "policy term of the loss", "train/policy_gradient_loss", "losses/policy_loss"),
    Metric("value_loss", "", "value term of the loss, before its coefficient; CleanRL's is half", "train/value_loss"),
    Metric("entropy", "nats", "mean entropy of the policy", cleanrl="losses/entropy"),
    Metric(
        "approx_kl",
        "nats",
        "estimated divergence from the behaviour policy, mean of the last epoch (with target_kl: of all)",
        sb3="train/approx_kl",
        cleanrl="losses/approx_kl",
    ),
    Metric("clip_fraction", "share", "samples whose ratio was clipped, mean of the last epoch (with target_kl: of all)"),
    Metric(
        "explained_variance",
        "share",
        "share of the returns' variance that the value function explained",
        "train/explained_variance",
        "losses/explained_variance",
    ),
    Metric("grad_norm", "", "mean norm of the gradient before clipping"),
    Metric("learning_rate", "", "learning rate of this batch", "train/learning_rate", "charts/learning_rate"),
    Metric("clip_range", "", "PPO's clip range of this batch", sb3="train/clip_range"),
    Metric("masked_steps", "rows", "rows so far that carried no decision (resets, cuts) and were left out"),
    Metric("dropped_segments", "segments", "segments so far that were written off with their worker"),
    Metric("short_segments", "segments", "segments so far that were handed in before their last step"),
    Metric("learner_busy", "share", "share of the time in which the learner trained"),
    Metric("learner_wait", "share", "share of the time in which the learner waited for segments"),
    Metric("sampler_busy", "share", "share of the time in which each sampler had a segment to fill, one number per worker"),
    Metric("environment_share", "share", "share of the samplers' busy time spent in environments"),
    Metric("inference_share", "share", "share of the samplers' busy time spent in forward passes or waiting for the server's"),
    Metric("wall_s", "s", "seconds since the process started, over all resumes", sb3="time/time_elapsed"),
    Metric("digest", "", "link of the run's digest chain at this version, pinned schedules only", curve=False),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _DICTIONARY}
"""Every name that may stand in a record."""
