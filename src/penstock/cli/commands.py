"""The commands and their flags. A flag that is short for a setting says which; nothing here knows what settings do."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.cli.parser import option, positional, repeated, switch


@dataclass(frozen=True, kw_only=True)
class Train:
    """Train a policy. Presets fill in what is not given; --set reaches every setting."""

    env: str | None = positional("ENV", "a Gymnasium id (CartPole-v1) or module:Name")
    algo: str | None = option("NAME", "algorithm, or module:Class of your own (default: the preset's, else ppo)")
    preset: str | None = option("NAME", "a preset by name, a config.toml, or none (default: the one for ENV and --algo)")
    schedule: str | None = option("S", "sync, overlap or async", sets="flow.schedule")
    staleness: str | None = option(
        "K", "no trained sample is older than K versions (async: see --depth for how old they are)", sets="flow.staleness"
    )
    depth: str | None = option(
        "D",
        "async: batches under way beyond the one in training (default: 1); samples are D versions old, stragglers' up to K",
        sets="flow.depth",
    )
    workers: str | None = option("N", "sampler processes; 0: all in one process", sets="run.workers")
    steps: str | None = option("N", "the run's total of environment steps, such as 1e6", sets="run.steps")
    minutes: str | None = option("M", "stop after this many minutes", sets="run.minutes")
    until_return: str | None = option("X", "stop at this mean return of the last 100 episodes", sets="run.until_return")
    seed: str | None = option("N", "decides every random draw of the run", sets="run.seed")
    out: str | None = option("DIR", "the run's directory, new or empty (default: runs/...)")
    resume: str | None = option("RUN", "the run in this directory; of a finished one the summary is printed again")
    set: tuple[str, ...] = repeated("ROOM.KEY=VALUE", "any setting; the key alone where it is unique")
    env_arg: tuple[str, ...] = repeated("KEY=VALUE", "an argument that the environment is made with")
    wrap: tuple[str, ...] = repeated("MODULE:FUNCTION", "a wrapper around the environment; the first is the innermost")
    model: str | None = option("MODULE:CLASS", "a network of your own", sets="model.custom")
    init_from: str | None = option("RUN", "start from the weights of another run")
    device: str | None = option("NAME", "where the learner trains, and an inference server acts", sets="compute.device")
    inference: str | None = option("PLACE", "where policies act: local or server (one for all)", sets="compute.inference")
    chaos: str | None = option("SPEC", "trouble on request: delays[:ms],slow:WORKER=FACTOR", sets="run.chaos")
    digest: str | None = option("KIND", "standard, or full: observations too", sets="run.digest")
    json: bool = switch("print the summary as one line of JSON, the last of standard output")
    quiet: bool = switch("no panel, no notes, no summary in words")


@dataclass(frozen=True, kw_only=True)
class Eval:
    """Play a trained policy and report its return: mean, standard deviation, 95 % confidence interval."""

    run: str | None = positional("RUN", "the run's directory")
    episodes: str | None = option("N", "how many episodes (default: 20)")
    seed: str | None = option("N", "decides where the episodes start (default: 0)")
    stochastic: bool = switch("draw actions instead of taking the likeliest")
    checkpoint: str | None = option("V", "the version to play (default: the last)")
    render: bool = switch("show the episodes in a window, one after the other")
    trust: tuple[str, ...] = repeated("MODULE", "run code of this module because the run names it (environment, network)")
    json: bool = switch("print one line of JSON")


@dataclass(frozen=True, kw_only=True)
class Presets:
    """List the presets that are shipped, with reference scores, or print one."""

    name: str | None = positional("NAME", "a preset's name or an environment's id")


@dataclass(frozen=True, kw_only=True)
class Doctor:
    """Look at this machine, or at one environment: what is ready, what is missing, what to do about it."""

    env: str | None = option("ENV", "examine this environment instead: spaces, seeding, ends, restoring, step time")
    env_arg: tuple[str, ...] = repeated("KEY=VALUE", "an argument that the environment is made with")
    wrap: tuple[str, ...] = repeated("MODULE:FUNCTION", "a wrapper around the environment; the first is the innermost")


@dataclass(frozen=True, kw_only=True)
class Study:
    """Many runs that differ in staleness and correction alone, a table and a figure. Started again, it does what is missing."""

    study: str | None = positional("STUDY", "what is studied: staleness")
    tasks: str | None = option("NAMES", "between commas: cartpole, lunarlander, acrobot (default: the first two)")
    staleness: str | None = option("K,K,...", "the age of every sample; 0 is the schedule sync (default: 0,1,2,4,8)")
    corrections: str | None = option("NAMES", "between commas (default: clip,decoupled,vtrace,delayed,none)")
    seeds: str | None = option("N,N,...", "every combination is run with each (default: 1,2,3,4,5)")
    steps: str | None = option("N", "environment steps of a run, in every task (default: the task's)")
    set: tuple[str, ...] = repeated("ROOM.KEY=VALUE", "a setting of every run")
    jobs: str | None = option("N", "runs side by side, each on one core (default: the number of cores)")
    out: str | None = option("DIR", "the study's directory, new or to be taken up again (default: studies/staleness)")
    figure: tuple[str, ...] = repeated("FILE", "where the figure goes, .png or .pdf; or none (default: both, in DIR)")
    json: bool = switch("print what was found as one line of JSON; the table goes to standard error")
