"""Which settings there are under an algorithm: the sections of a `Job`, their fields and types. Knows no value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from penstock.algorithms.settings import settings_of
from penstock.run.job import Job

Values = dict[str, dict[str, Any]]
"""Section to field to value, of the fields that were given one."""

LEARNER = "learner"
"""The section whose fields are the algorithm's."""
_TABLE_OF_FIELD = {"env": "envs"}
"""A section is called after its room; the job's field for one environment is not a plural."""


def _table(job_field: str) -> str:
    return _TABLE_OF_FIELD.get(job_field, job_field)


@cache
def sections(algo: str) -> Mapping[str, type[Any]]:
    """The tables of config.toml, in the order in which it has them, to the settings class of each."""
    hints = get_type_hints(Job)
    found = {_table(field.name): hints[field.name] for field in fields(Job) if is_dataclass(hints[field.name])}
    return {**found, LEARNER: settings_of(algo)}


SECTIONS = tuple(_table(field.name) for field in fields(Job) if is_dataclass(get_type_hints(Job)[field.name]))
"""The names of all sections, whatever the algorithm."""


@cache
def field_types(algo: str, section: str) -> Mapping[str, Any]:
    """The fields of a section to their types."""
    settings = sections(algo)[section]
    hints = get_type_hints(settings)
    return {field.name: hints[field.name] for field in fields(settings)}


def all_names(algo: str) -> list[str]:
    """Every setting as `section.field`."""
    return [f"{section}.{field}" for section in SECTIONS for field in field_types(algo, section)]


def values_of(job: Job) -> Values:
    """A job's settings as plain values."""
    return {
        table: {name: getattr(getattr(job, field.name), name) for name in field_types(job.algo, table)}
        for field in fields(Job)
        if (table := _table(field.name)) in SECTIONS
    }


def job_of(algo: str, algorithm: str, values: Values) -> Job:
    """The job with these settings; what is not given has its default."""
    parts = {
        field.name: sections(algo)[table](**values.get(table, {}))
        for field in fields(Job)
        if (table := _table(field.name)) in SECTIONS
    }
    return Job(algo=algo, algorithm=algorithm, **parts)
