"""Defaults < preset < assignments, to one validated job. Knows layers and their order, not where a layer was written.

The command line and the Python API both end here, with assignments in the order in which they were given.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.algorithms.settings import PPOSettings, find_algorithm
from penstock.config.checks import batch_rows, check_job, nearest_divisors
from penstock.config.files import checked_tables, from_toml
from penstock.config.naming import CLIP_VALUE_LOSS, NUM_MINIBATCHES, from_dialect, leaf_of, setting_name
from penstock.config.presets import Preset, preset_for, preset_named
from penstock.config.sections import SECTIONS, Values, field_types, job_of, values_of
from penstock.config.values import NONE, Assignment, checked
from penstock.core.errors import Refused
from penstock.flow.opening import batch_segments, free_depth
from penstock.run.job import Job

DEFAULT_ALGORITHM = "ppo"

_AFTER_A_START = frozenset(
    f"run.{name}" for name in ("steps", "minutes", "until_return", "workers", "chaos", "lease_s", "debug")
)
"""What a resumed run may change; anything else would make it another run."""


@dataclass(frozen=True)
class Built:
    """A job and what a person should hear about how it came to be."""

    job: Job
    notes: tuple[str, ...]
    preset: Preset | None = None


def build(env: str, *, algo: str | None = None, preset: str | None = None, assignments: Iterable[Assignment] = ()) -> Built:
    """The job for an environment. `preset`: a name, "none", the path of a config.toml, or None for the one that fits."""
    if preset is not None and preset.endswith(".toml"):
        return _from_file(Path(preset), env, algo, assignments)
    chosen = _chosen_preset(env, algo, preset)
    algo = algo or (chosen.algo if chosen else DEFAULT_ALGORITHM)
    path = _algorithm_path(algo)
    values = _preset_values(chosen) if chosen else {}
    values.setdefault("envs", {})["id"] = env
    assignments = list(assignments)
    opening = _opening(env, algo, chosen, asked=preset)
    job, notes = _assigned(algo, path, values, assignments, target=chosen.until_return if chosen else None)
    if job.env.id != env:
        raise Refused(f"two environments are named: {env} and envs.id={job.env.id}; name one")
    return Built(job, (opening, *notes, *_about_flow(job), _budget(job)), chosen)


def resumed(run_dir: Path, assignments: Iterable[Assignment] = ()) -> Built:
    """The job of a run directory, with what a resumed run may change."""
    stored = from_toml(run_dir / "config.toml")
    job, notes = _assigned(stored.algo, stored.algorithm, values_of(stored), assignments)
    before, now = values_of(stored), values_of(job)
    for section, settings in now.items():
        for field, value in settings.items():
            name = f"{section}.{field}"
            if value != before[section][field] and name not in _AFTER_A_START:
                raise Refused(
                    f"--resume keeps {name}={before[section][field]!r} of {run_dir}; for {value!r} start a new run"
                    f" with --init-from {run_dir}"
                )
    return Built(job, notes)


def assignments_of(settings: Mapping[str, Any]) -> list[Assignment]:
    """Settings passed by a program: leaf names, full names, or sections with a mapping each."""
    found: list[Assignment] = []
    for key, value in settings.items():
        if key in SECTIONS and isinstance(value, Mapping):
            found += [Assignment(f"{key}.{field}", inner) for field, inner in value.items()]
        else:
            found.append(Assignment(key, value))
    return found


def _from_file(path: Path, env: str, algo: str | None, assignments: Iterable[Assignment]) -> Built:
    stored = from_toml(path)
    if algo not in (None, stored.algo):
        raise Refused(f"{path} holds settings of {stored.algo}, not of {algo}; leave out --algo or --preset")
    values = values_of(stored)
    if env != values["envs"]["id"]:
        values["envs"] = {**values["envs"], "id": env}
    job, notes = _assigned(stored.algo, stored.algorithm, values, assignments)
    return Built(job, (f"{env} with {stored.algo}, settings of {path}", *notes, *_about_flow(job), _budget(job)))


def _chosen_preset(env: str, algo: str | None, asked: str | None) -> Preset | None:
    if asked is None:
        return preset_for(env, algo)
    if asked == NONE:
        return None
    chosen = preset_named(asked)
    if algo not in (None, chosen.algo):
        raise Refused(f"preset '{asked}' is for {chosen.algo}, not {algo}; leave out --algo or use --preset none")
    return chosen


def _algorithm_path(algo: str) -> str:
    """Where the algorithm's code is; `module:Class` names code of a person's own."""
    if not isinstance(algo, str):  # Python's callers are not held to types
        raise Refused(f"algo is a name, such as ppo, or the text 'module:Class'; got {algo!r}")
    if ":" not in algo:
        return find_algorithm(algo).learner
    module, _, name = algo.partition(":")
    if not module or not name:
        raise Refused(f"--algo {algo} is not of the form module:Class")
    return algo


def _opening(env: str, algo: str, chosen: Preset | None, *, asked: str | None) -> str:
    """The first line that a person reads: what is trained, with what, and where the settings came from."""
    if chosen is not None:
        other = f" (made for {chosen.env})" if chosen.env != env else ""
        return f"{env} with {algo}, preset {chosen.name}{other}"
    return f"{env} with {algo}, default settings" + ("" if asked == NONE else " (there is no preset for it)")


def _about_flow(job: Job) -> tuple[str, ...]:
    """A bound is not what one gets: whoever asks for a staleness should hear which to expect."""
    bound, depth = job.flow.bound, free_depth(job.flow)
    if job.flow.pinned or depth == bound:
        return ()
    return (f"{job.flow.schedule}: staleness at most {bound}; without stragglers {depth} (--depth {depth})",)


def _budget(job: Job) -> str:
    until = "" if job.run.until_return is None else f", or until a mean return of {job.run.until_return:g}"
    return f"{job.run.steps:,} steps, rounded up to whole batches of at most {batch_rows(job):,}{until}"


def _preset_values(preset: Preset) -> Values:
    tables = {section: dict(table) for section, table in preset.settings.items()}
    values = checked_tables(preset.algo, tables, f"preset {preset.name}")
    run = values.setdefault("run", {})
    run.setdefault("steps", preset.steps)
    return values


def _assigned(
    algo: str, path: str, values: Values, assignments: Iterable[Assignment], *, target: float | None = None
) -> tuple[Job, tuple[str, ...]]:
    """The checked job that these assignments, laid over these values, give. `target` is the return at which a preset stops:
    whoever names a number of steps means that many, and whoever names a return means that one."""
    notes: list[str] = []
    last: list[Assignment] = []  # what can be computed only once all else is known
    plain: list[Assignment] = []
    for assignment in assignments:
        if leaf_of(assignment.key) in (NUM_MINIBATCHES, CLIP_VALUE_LOSS):
            last.append(assignment)
        elif (translated := from_dialect(assignment)) is not None:
            plain.append(translated[0])
            notes.append(translated[1])
        else:
            plain.append(assignment)
    if not {setting_name(algo, assignment.key) for assignment in plain} & {"run.steps", "run.until_return"}:
        values.setdefault("run", {}).setdefault("until_return", target)
    _lay(algo, values, plain)
    job = job_of(algo, path, values)
    for assignment in last:
        notes.append(_lay_derived(values, assignment, job))
    job = job_of(algo, path, values) if last else job
    check_job(job)
    return _resolved(job), tuple(notes)


def _lay(algo: str, values: Values, assignments: Sequence[Assignment]) -> None:
    named = [(setting_name(algo, assignment.key), assignment) for assignment in assignments]
    below = values.get("flow", {}).get("schedule")
    if any(name == "flow.schedule" and assignment.value != below for name, assignment in named):
        # Another schedule brings its own staleness; that of the layer below was meant for the schedule there.
        values["flow"] = {}
    for name, assignment in named:
        section, field, *inner = name.split(".", 2)
        given = values.setdefault(section, {})
        if inner:
            value = checked(name, assignment.value, Any, is_text=assignment.is_text)
            given[field] = {**given.get(field, {}), inner[0]: value}
        else:
            given[field] = checked(name, assignment.value, field_types(algo, section)[field], is_text=assignment.is_text)


def _lay_derived(values: Values, assignment: Assignment, job: Job) -> str:
    """CleanRL's settings that are functions of others, once those are known; returns the note about it."""
    learner = values.setdefault("learner", {})
    if not isinstance(job.learner, PPOSettings):
        raise Refused(f"{leaf_of(assignment.key)} is a setting of ppo, and {job.algo} has no minibatches and no clip")
    if leaf_of(assignment.key) == CLIP_VALUE_LOSS:
        on = checked(CLIP_VALUE_LOSS, assignment.value, bool, is_text=assignment.is_text)
        learner["clip_range_vf"] = job.learner.clip_range if on else None
        return f"{CLIP_VALUE_LOSS} is learner.clip_range_vf={learner['clip_range_vf']} here"
    count = checked(NUM_MINIBATCHES, assignment.value, int, is_text=assignment.is_text)
    rows = batch_rows(job)
    if count < 1 or rows % count:
        near = " or ".join(map(str, nearest_divisors(rows, count)))
        raise Refused(f"num_minibatches {count} does not divide the {rows} rows of a batch; nearest legal: {near}")
    learner["batch_size"] = rows // count
    return f"num_minibatches is learner.batch_size={learner['batch_size']} here"


def _resolved(job: Job) -> Job:
    """The same job with the schedule's own numbers written out, so that config.toml says what was run."""
    flow = dataclasses.replace(job.flow, staleness=job.flow.bound)
    if not flow.pinned:
        segments = batch_segments(flow, job.env.n_blocks)
        flow = dataclasses.replace(flow, depth=free_depth(flow), segments_per_batch=segments)
    return dataclasses.replace(job, flow=flow)
