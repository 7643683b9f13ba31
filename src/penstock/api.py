"""The Python API behind `penstock.train` and `penstock.load`; the command line ends here too.

It loads no torch: a run starts the processes that need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from penstock.config.building import Built, assignments_of, build
from penstock.config.files import config_digest, to_toml
from penstock.core.errors import PenstockError, Refused
from penstock.run.training import Outcome, Request
from penstock.run.training import train as carry_out
from penstock.workers.policy import EVERYTHING, Policy, load_policy


@dataclass(frozen=True)
class Run:
    """A finished run."""

    run_dir: Path
    summary: dict[str, Any]
    exit_code: int = 0
    model: Any = None

    @cached_property
    def policy(self) -> Policy:
        """The trained policy: `run.policy(observation, deterministic=True)`."""
        return load_policy(self.run_dir, model=self.model, trust=EVERYTHING)


def train(
    env: str | Callable[..., Any],
    algo: str | None = None,
    *,
    steps: int | None = None,
    seed: int | None = None,
    schedule: str | None = None,
    callback: Callable[[dict[str, Any]], Any] | None = None,
    model: Any = None,
    preset: str | None = None,
    out: str | Path | None = None,
    init_from: str | Path | None = None,
    quiet: bool = False,
    **settings: Any,
) -> Run:
    """Train a policy and return the finished run; raises the error that ended it, if one did.

    `env` is an id, a class, or anything that makes an environment when it is called; what the calling script defines is
    fine. `model` is "module:Class", a torch module class, or the settings of that section. `callback` gets a plain record
    after every version and ends the run by returning True. Any setting can be given by its leaf name (`n_envs=64`) or by
    section (`learner={"learning_rate": 3e-4}`).
    """
    if isinstance(model, Mapping):
        settings["model"], model = model, None  # the section of that name
    named = {"run.steps": steps, "run.seed": seed, "flow.schedule": schedule}
    given = {key: value for key, value in named.items() if value is not None}
    if not isinstance(env, str) and not callable(env):
        raise Refused(f"env is an id, a class or a function that makes an environment; got {env!r}")
    if model is not None:
        given["model.custom"] = _name_of(model)
    built = build(_name_of(env), algo=algo, preset=preset, assignments=assignments_of({**settings, **given}))
    request = request_of(
        built,
        out=None if out is None else Path(out),
        init_from=None if init_from is None else Path(init_from),
        environment=None if isinstance(env, str) else env,
        model=None if isinstance(model, str) else model,
        callback=callback,
        quiet=quiet,
        started_s=time.monotonic(),
    )
    outcome = carry_out(request)
    if outcome.error is not None:
        raise outcome.error
    return finished(outcome, request.model)


def _name_of(code: Any) -> str:
    """How config.toml calls what a person passed: by its name, or as module:Name. What a script defines cannot be loaded by
    that, and whoever tries is told so."""
    if isinstance(code, str):
        return code
    return f"{getattr(code, '__module__', '?')}:{getattr(code, '__qualname__', type(code).__name__)}"


def request_of(built: Built, **extra: Any) -> Request:
    """What a run needs to know of settings that it may not read itself."""
    job = built.job
    return Request(job=job, config_toml=to_toml(job), config_digest=config_digest(job), notes=built.notes, **extra)


def finished(outcome: Outcome, model: Any = None) -> Run:
    return Run(outcome.run_dir, outcome.summary, outcome.exit_code, model)


def load(run_dir: str | Path, *, version: int | None = None, model: Any = None, trust: Collection[str] = ()) -> Policy:
    """The policy of a run, usable without training code. A network that the run names as "module:Class" is loaded only if
    its module is in `trust`, or if `model` is that class."""
    modules = (trust,) if isinstance(trust, str) else trust
    return load_policy(Path(run_dir), version=version, model=model, trust=modules)


__all__: Sequence[str] = ("PenstockError", "Run", "load", "train")
