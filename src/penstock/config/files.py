"""config.toml, to and fro, and the digest of what decides the mathematics of a run. Knows files, not presets."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import tomli_w

from penstock.config.naming import setting_name
from penstock.config.sections import SECTIONS, Values, field_types, job_of, values_of
from penstock.config.values import NONE, checked
from penstock.core.errors import Refused
from penstock.run.job import Job

_ONLY_SPEED: dict[str, set[str] | None] = {
    "run": {"workers", "chaos", "steps", "minutes", "until_return", "lease_s", "debug", "experiment"},
    "envs": {"stepping"},
    "compute": {"inference"},
    "checkpoint": None,
    "metrics": None,
}
"""What may differ between two runs that compute the same, as far as both go. None: the whole section."""

_SAME_LANES = ("serial", "threads", "processes")
"""Ways to step plain environments that give the same numbers; an environment's own vector form may not."""


def to_toml(job: Job) -> str:
    """The job as config.toml: every setting, those with no value as the word none."""
    tables = {
        section: {field: NONE if value is None else value for field, value in settings.items()}
        for section, settings in values_of(job).items()
    }
    return tomli_w.dumps({"algo": job.algo, "algorithm": job.algorithm, **tables})


def from_toml(path: Path) -> Job:
    """The job of a config.toml; what a later version of Penstock added has its default."""
    document = read_toml(path)
    algo, algorithm = document.pop("algo", None), document.pop("algorithm", None)
    if not isinstance(algo, str) or not isinstance(algorithm, str):
        raise Refused(f"{path} is no config.toml of a run: it does not name its algorithm")
    return job_of(algo, algorithm, checked_tables(algo, document, str(path)))


def read_toml(path: Path) -> dict[str, Any]:
    """A TOML file, with errors that name it."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise Refused(f"cannot read {path}: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise Refused(f"{path} is not TOML: {error}") from error


def checked_tables(algo: str, tables: dict[str, Any], origin: str) -> Values:
    """Tables of settings as values of the settings' types; refuses names and values that do not fit, naming the file."""
    values: Values = {}
    for section, table in tables.items():
        if section not in SECTIONS or not isinstance(table, dict):
            raise Refused(f"{origin}: [{section}] is no section of settings; those are {', '.join(SECTIONS)}")
        for field, value in table.items():
            try:
                full_name = setting_name(algo, f"{section}.{field}")
                expected = field_types(algo, section)[field]
                fitted = checked(full_name, value, expected, is_text=value == NONE)
            except Refused as refusal:
                raise Refused(f"{origin}: {refusal}") from refusal
            values.setdefault(section, {})[field] = fitted
    return values


def config_digest(job: Job) -> str:
    """SHA-256 of everything that decides what the run computes, in canonical JSON."""
    deciding: dict[str, Any] = {"algo": job.algo, "algorithm": job.algorithm}
    for section, settings in values_of(job).items():
        neutral = _ONLY_SPEED.get(section, set())
        if neutral is not None:
            deciding[section] = {field: value for field, value in settings.items() if field not in neutral}
    if deciding["envs"].get("parallel") in _SAME_LANES:
        deciding["envs"]["parallel"] = _SAME_LANES
    if job.compute.device != "cpu":
        deciding["compute"]["inference"] = job.compute.inference  # it may act on that device, which sums in another order
    if "linear" in deciding["learner"].values():
        deciding["steps"] = job.run.steps  # what is annealed over the run depends on its length
    return hashlib.sha256(msgspec.json.encode(deciding, order="sorted")).hexdigest()
