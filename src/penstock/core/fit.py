"""Whether an algorithm and a schedule fit: what one demands, what the other guarantees. Checked before any process starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from penstock.core.errors import Refused


@dataclass(frozen=True)
class Demands:
    """What an algorithm needs of the data it is fed."""

    greatest_staleness: Mapping[str, int | None]
    """Correction to the greatest staleness it is sound under; None: any."""
    pinned_only: frozenset[str] = frozenset()
    """Corrections that need every sample of a batch to be of one version."""
    needs_sequences: bool = False


@dataclass(frozen=True)
class Guarantee:
    """What a schedule promises of the data it delivers."""

    schedule: str
    staleness: int
    pinned: bool


def check_fit(algorithm: str, correction: str, demands: Demands, guarantee: Guarantee, *, experiment: bool = False) -> None:
    """Refuse, by name, a pair that does not fit. In an `experiment` more staleness than is sound is what is wanted."""
    if correction not in demands.greatest_staleness:
        known = ", ".join(sorted(demands.greatest_staleness))
        raise Refused(f"{algorithm} has no correction '{correction}'; it offers: {known}")
    bound = demands.greatest_staleness[correction]
    if bound is not None and guarantee.staleness > bound and not experiment:
        raise Refused(
            f"{algorithm} with correction '{correction}' is sound up to staleness {bound}, but schedule "
            f"'{guarantee.schedule}' allows {guarantee.staleness}; use {_instead(bound)} or another correction"
        )
    if correction in demands.pinned_only and not guarantee.pinned:
        raise Refused(f"correction '{correction}' needs a pinned schedule (sync or overlap), not '{guarantee.schedule}'")


def _instead(bound: int) -> str:
    return f"--staleness {bound}" if bound else "--schedule sync"
