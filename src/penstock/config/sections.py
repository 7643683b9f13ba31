"""Which settings there are: the sections of a `Job`, their fields and types. Knows no value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_type_hints

from penstock.run.job import Job

Values = dict[str, dict[str, Any]]
"""Section to field to value, of the fields that were given one."""

_TABLE_OF_FIELD = {"env": "envs"}
"""A section is called after its room; the job's field for one environment is not a plural."""


@cache
def sections() -> Mapping[str, type[Any]]:
    """The tables of config.toml, in the order in which it has them, to the settings class of each."""
    hints = get_type_hints(Job)
    return {_table(field.name): hints[field.name] for field in fields(Job) if is_dataclass(hints[field.name])}


def _table(job_field: str) -> str:
    return _TABLE_OF_FIELD.get(job_field, job_field)


@cache
def field_types(section: str) -> Mapping[str, Any]:
    """The fields of a section to their types."""
    settings = sections()[section]
    hints = get_type_hints(settings)
    return {field.name: hints[field.name] for field in fields(settings)}


def all_names() -> list[str]:
    """Every setting as `section.field`."""
    return [f"{section}.{field}" for section in sections() for field in field_types(section)]


def values_of(job: Job) -> Values:
    """A job's settings as plain values."""
    return {
        _table(field.name): {name: getattr(getattr(job, field.name), name) for name in field_types(_table(field.name))}
        for field in fields(Job)
        if _table(field.name) in sections()
    }


def job_of(algo: str, algorithm: str, values: Values) -> Job:
    """The job with these settings; what is not given has its default."""
    parts = {
        field.name: sections()[_table(field.name)](**values.get(_table(field.name), {}))
        for field in fields(Job)
        if _table(field.name) in sections()
    }
    return Job(algo=algo, algorithm=algorithm, **parts)
