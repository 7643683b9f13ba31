"""An examination of one environment, which a person can run on their own: `penstock doctor --env ID`.

Spaces, determinism under seeding, ends and time limits, whether its state can be restored by its seed and its actions, and how
long a step takes. Starts no run; knows no policy and no worker.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from penstock.core.seeds import Purpose, derived_seed
from penstock.core.specs import MASK, Array, EnvironmentSpec, Leaf, leaves
from penstock.envs.faults import failures
from penstock.envs.making import EnvironmentMaker
from penstock.envs.masks import masked, random_action
from penstock.envs.opening import choose_parallel, choose_stepping
from penstock.envs.probing import Probe, probe
from penstock.envs.quiet import quiet
from penstock.envs.refusals import one_line
from penstock.envs.rows import all_finite, fitted
from penstock.envs.settings import EnvSettings

Status = Literal["ok", "warn", "fail"]

STEPS = 300
"""Of each trial, unless they take too long."""
BUDGET_S = 5.0
"""Of each trial."""


@dataclass(frozen=True)
class Finding:
    """One line of the report."""

    what: str
    status: Status
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Step:
    """What one step came to, or a reset, which has no reward."""

    row: Array
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False


class BrokeOff(Exception):
    """What an environment did instead of a step, and where."""


@dataclass
class Trial:
    """Episodes played from seeds with random actions, all kept."""

    seeds: list[int] = field(default_factory=list)
    episodes: list[list[Step]] = field(default_factory=list)
    actions: list[list[Any]] = field(default_factory=list)
    took_s: list[float] = field(default_factory=list)

    @property
    def whole(self) -> list[list[Step]]:
        """Episodes that came to their end."""
        return [episode for episode in self.episodes if episode[-1].terminated or episode[-1].truncated]


def examine(maker: EnvironmentMaker, settings: EnvSettings) -> list[Finding]:
    """All findings. Refuses, as a run would, what cannot be trained on at all."""
    found = probe(maker, settings)
    with quiet():
        return list(_findings(maker, settings, found))


def _findings(maker: EnvironmentMaker, settings: EnvSettings, found: Probe) -> Iterator[Finding]:
    spec = found.spec
    yield Finding("observations", "ok", _described(spec))
    yield Finding("actions", "ok", ", ".join(_leaf(place.name, place.leaf) for place in leaves(spec.action)))
    try:
        first = play(maker, spec)
        again = play(maker, spec, seeds=first.seeds, actions=first.actions)
        replayed = _restored(maker, spec, first)
    except BrokeOff as error:
        yield Finding("stepping", "fail", str(error), "mend the environment's reset and step; a run would end there")
        return
    yield _bounds(maker, first)
    yield _seeding(first, again)
    yield _ends(first, spec)
    yield replayed
    yield from _lanes(settings, found)
    yield _stepping(first, settings, found)


def play(
    maker: EnvironmentMaker,
    spec: EnvironmentSpec,
    *,
    seeds: list[int] | None = None,
    actions: list[list[Any]] | None = None,
) -> Trial:
    """One environment, episode after episode; with these seeds and actions, or new ones until there is enough."""
    trial, random = Trial(), np.random.default_rng(derived_seed(0, Purpose.PROBE))
    environment = maker()
    environment.action_space.seed(derived_seed(0, Purpose.PROBE))
    until = time.monotonic() + BUDGET_S
    try:
        while _goes_on(trial, seeds, until):
            index = len(trial.episodes)
            seed = derived_seed(index, Purpose.PROBE) if seeds is None else seeds[index]
            given = None if actions is None else actions[index]
            _play_episode(environment, spec, trial, seed, given, random, until)
    finally:
        with suppress(Exception):  # how it tidies up decides nothing
            environment.close()
    return trial


def _goes_on(trial: Trial, seeds: list[int] | None, until: float) -> bool:
    if seeds is not None:
        return len(trial.episodes) < len(seeds)
    return not trial.episodes or (len(trial.took_s) < STEPS and time.monotonic() < until)


def _play_episode(
    environment: Any,
    spec: EnvironmentSpec,
    trial: Trial,
    seed: int,
    given: list[Any] | None,
    random: np.random.Generator,
    until: float,
) -> None:
    steps, taken = list[Step](), list[Any]()
    trial.seeds.append(seed)
    trial.episodes.append(steps)
    trial.actions.append(taken)
    limit = len(given) if given is not None else (spec.max_episode_steps or 10 * STEPS)
    try:
        observation, info = environment.reset(seed=seed)
        steps.append(Step(_row(environment, spec, observation, info, over=False)))
        while len(taken) < limit and not (steps[-1].terminated or steps[-1].truncated):
            action = given[len(taken)] if given is not None else _drawn(environment, spec, steps[-1].row, random)
            steps.append(_stepped(environment, spec, trial, copy.deepcopy(action)))
            taken.append(action)
            if given is None and time.monotonic() > until:
                return
    except failures() as error:
        where = f"step {len(steps)}" if steps else "reset"
        raise BrokeOff(f"{one_line(error)} (in {where} of the episode with seed {seed})") from error


def _stepped(environment: Any, spec: EnvironmentSpec, trial: Trial, action: Any) -> Step:
    started = time.perf_counter()
    observation, reward, terminated, truncated, info = environment.step(action)
    trial.took_s.append(time.perf_counter() - started)
    row = _row(environment, spec, observation, info, over=bool(terminated or truncated))
    if not math.isfinite(float(reward)):
        raise ValueError(f"reward is {reward}")
    return Step(row, float(reward), bool(terminated), bool(truncated))


def _drawn(environment: Any, spec: EnvironmentSpec, row: Array, random: np.random.Generator) -> Any:
    return random_action(spec, row[MASK], random) if spec.masked else environment.action_space.sample()


def _row(environment: Any, spec: EnvironmentSpec, observation: Any, info: Any, *, over: bool) -> Array:
    if spec.masked:
        observation = masked(observation, info, environment, spec, over=over)
    row = fitted(observation, spec.observation)
    if not all_finite(row):
        raise ValueError("observation is NaN or infinite")
    return row


# ---------------------------------------------------------------- what is judged


def _bounds(maker: EnvironmentMaker, trial: Trial) -> Finding:
    """Observations outside their space mislead whoever scales by its bounds."""
    environment = maker()
    try:
        space = environment.observation_space
        environment.action_space.seed(0)
        observation, _ = environment.reset(seed=trial.seeds[0])
        inside = space.contains(observation)
        for action in trial.actions[0][:STEPS]:
            inside = inside and space.contains(environment.step(copy.deepcopy(action))[0])
    finally:
        with suppress(Exception):  # how it tidies up decides nothing
            environment.close()
    if inside:
        return Finding("bounds", "ok", "every observation is in the observation space")
    return Finding(
        "bounds", "warn", "an observation is not in the observation space", "declare its bounds, shape and dtype truly"
    )


def _seeding(first: Trial, again: Trial) -> Finding:
    """The same seed and actions must give the same episode: what determinism and restoring rest on."""
    for episode, (one, other) in enumerate(zip(first.episodes, again.episodes, strict=False)):
        for step, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            if _differ(mine, theirs):
                where = f"seed {first.seeds[episode]}, " + (f"from step {step} on" if step else "from its reset on")
                advice = "draw random numbers from self.np_random only, and keep nothing from episode to episode"
                return Finding("seeding", "fail", f"the same seed and actions gave another episode ({where})", advice)
        if len(one) != len(other):
            return Finding("seeding", "fail", f"the same seed gave an episode of another length (seed {first.seeds[episode]})")
    count = len(first.episodes)
    return Finding("seeding", "ok", f"{count} episode{'s' * (count > 1)}, the same again from the same seed{'s' * (count > 1)}")


def _differ(one: Step, other: Step) -> bool:
    same = one.row.tobytes() == other.row.tobytes() and one.reward == other.reward
    return not (same and (one.terminated, one.truncated) == (other.terminated, other.truncated))


def _ends(trial: Trial, spec: EnvironmentSpec) -> Finding:
    lengths = [len(episode) - 1 for episode in trial.whole]
    truncated = sum(episode[-1].truncated for episode in trial.whole)
    limit = f"time limit {spec.max_episode_steps}" if spec.max_episode_steps else "no time limit known"
    if not lengths:
        text = f"no episode ended in {len(trial.took_s)} random steps; {limit}"
        if spec.max_episode_steps is not None:
            return Finding("episodes", "ok", text)
        return Finding(
            "episodes", "warn", text, "returns are known at ends only: give it one, or a gymnasium.wrappers.TimeLimit"
        )
    both = any(episode[-1].terminated and episode[-1].truncated for episode in trial.whole)
    text = f"{len(lengths)} ended, {truncated} of them truncated; {min(lengths)} to {max(lengths)} steps; {limit}"
    late = spec.max_episode_steps is not None and max(lengths) > spec.max_episode_steps
    if late:
        return Finding(
            "episodes", "fail", text, "one is longer than its time limit: truncate it there, or declare the real limit"
        )
    return Finding("episodes", "ok", text + ("; some terminated and truncated at once" if both else ""))


def _restored(maker: EnvironmentMaker, spec: EnvironmentSpec, trial: Trial) -> Finding:
    """Reset by seed, then the same actions: in a fresh environment, from the middle of the trial, as a new worker would."""
    last = len(trial.episodes) - 1
    once = play(maker, spec, seeds=[trial.seeds[last]], actions=[trial.actions[last]])
    if len(once.episodes[0]) == len(trial.episodes[last]) and not _differ(once.episodes[0][-1], trial.episodes[last][-1]):
        return Finding("restoring", "ok", f"exact, by its seed and {len(trial.actions[last])} actions in a fresh environment")
    advice = "its state depends on more than the episode's seed and actions; after a worker's death such a run is not exact"
    return Finding("restoring", "warn", "a fresh environment does not come to the same state", advice)


def _lanes(settings: EnvSettings, found: Probe) -> Iterator[Finding]:
    """Alone an environment may be exact, and in a vector form that tells nobody its state it is not."""
    if found.hidden_state and choose_parallel(settings, found) == "vector":
        text = "its vector form resets lanes itself: a single one cannot be begun anew by a seed, nor restored"
        yield Finding("lanes", "warn", text, "where that matters, --set envs.parallel=serial, which is slower")


def _stepping(trial: Trial, settings: EnvSettings, found: Probe) -> Finding:
    mean_s = statistics.fmean(trial.took_s)
    spread = statistics.pvariance(trial.took_s) / mean_s**2 if mean_s > 0 else 0.0
    parallel = choose_parallel(settings, found)
    stepping = choose_stepping(settings, parallel)
    high_s = sorted(trial.took_s)[int(0.95 * (len(trial.took_s) - 1))]
    times = f"mean {_duration(mean_s)}, 95 % under {_duration(high_s)}, variance {spread:.3g} relative to mean 1"
    return Finding("step time", "ok", f"{times}; lanes would be stepped as {parallel}, {stepping}")


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _described(spec: EnvironmentSpec) -> str:
    return ", ".join(_leaf(place.name, place.leaf) for place in leaves(spec.observation))


def _leaf(name: str, leaf: Leaf) -> str:
    kind = type(leaf).__name__.removesuffix("Spec")
    size = getattr(leaf, "n", None) or getattr(leaf, "counts", None) or leaf.shape
    return f"{name + ': ' if name else ''}{kind} {size} {leaf.dtype}"
