"""Steady training throughput of whole systems, measured from outside, one process at a time, in turns.

A round runs every contender once: penstock, peer, penstock, peer, ... so that what drifts (clocks, heat, neighbours) hits both
sides of a pair. Knows how to start a contender and read what it leaves behind; nothing of what happens inside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Protocol

from penstock.bench.figures import Ratio, Spread, ratio_of_pairs
from penstock.core.errors import RunFailed


@dataclass(frozen=True, slots=True)
class Measured:
    """One run: steady steps a second, CPU seconds of its whole process tree (start-up included), what else it said."""

    sps: float
    cpu_s: float
    facts: Mapping[str, Any]


class Contender(Protocol):
    """A system that can be measured. Pairs are formed between ours and peers."""

    @property
    def name(self) -> str: ...

    @property
    def ours(self) -> bool: ...

    def run(self, seed: int) -> Measured:
        """Train once with this seed, start to end."""


@dataclass(frozen=True, slots=True)
class Result:
    """All runs of one contender, in the order of rounds."""

    name: str
    ours: bool
    runs: tuple[Measured, ...]

    @property
    def rates(self) -> list[float]:
        return [run.sps for run in self.runs]


def alternate(contenders: Sequence[Contender], rounds: int) -> Iterator[tuple[int, Contender]]:
    """The order of runs: every contender once a round, always in the same order."""
    for number in range(rounds):
        for contender in contenders:
            yield number, contender


def measure(contenders: Sequence[Contender], rounds: int, *, say: Callable[[str], None]) -> list[Result]:
    """All runs, one at a time. Round k has seed k for everybody."""
    runs: dict[str, list[Measured]] = {contender.name: [] for contender in contenders}
    for count, (number, contender) in enumerate(alternate(contenders, rounds), start=1):
        found = contender.run(number + 1)
        runs[contender.name].append(found)
        say(f"run {count} of {rounds * len(contenders)}: {contender.name}: {found.sps:,.0f} steps/s")
    return [Result(contender.name, contender.ours, tuple(runs[contender.name])) for contender in contenders]


def best_peer(results: Sequence[Result]) -> Result | None:
    """Of a peer's variants (threads), the one with the best median: the peer at its best."""
    return max((result for result in results if not result.ours), key=lambda result: median(result.rates), default=None)


def ratios(results: Sequence[Result]) -> dict[str, Ratio]:
    """Each of ours against the peer at its best, pair by pair."""
    peer = best_peer(results)
    if peer is None:
        return {}
    return {result.name: ratio_of_pairs(result.rates, peer.rates) for result in results if result.ours}


def report(results: Sequence[Result], limit_sps: float) -> dict[str, Any]:
    """Medians, spread, fraction of the limit, ratios; and every run as it was."""
    peer = best_peer(results)
    rows = [
        {
            "name": result.name,
            "ours": result.ours,
            "sps": asdict(Spread.of(result.rates)),
            "fraction_of_limit": median(result.rates) / limit_sps,
            "runs": [asdict(run) for run in result.runs],
        }
        for result in results
    ]
    return {
        "results": rows,
        "limit_sps": limit_sps,
        "best_peer": None if peer is None else peer.name,
        "ratios": {name: asdict(ratio) for name, ratio in ratios(results).items()},
    }


def demand_steady(sps: float | None, name: str) -> float:
    """A run too short to tell is said to be so."""
    if sps is None:
        raise RunFailed(f"{name} ended before it was steady; give it more --steps")
    return sps
