"""How the death of a worker is told: who it was, how it ended, what its environments were at. Knows no process."""

from __future__ import annotations

import signal

from penstock.core.errors import WorkerDied
from penstock.core.protocols import Ended
from penstock.run.roster import Worker


def obituary(worker: Worker, ended: Ended, *, overran_s: float | None, story: str) -> WorkerDied:
    """`overran_s` is the lease that it was killed for, if it was; `story` are the last events in which it had a part."""
    who = f"{worker.title} (blocks {list(worker.blocks)})" if worker.blocks else worker.title
    if overran_s is not None:
        lease = f"run.lease_s = {overran_s:g} s" + (" for each block" if worker.blocks else "")
        how, next_step = f"was killed: it took longer than its lease ({lease})", "see why it is slow, or give it longer"
    else:
        how, next_step = f"{_cause(ended.code)} without a word", "the journal has its story"
    told = [ended.words, *(ended.under_way or ())[1:], story]
    message = f"{who} {how}{_meanwhile(ended.under_way)}; {next_step}"
    return WorkerDied(message, details="\n".join(part for part in told if part))


def _cause(code: int) -> str:
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"


def _meanwhile(under_way: tuple[str, ...] | None) -> str:
    """The first environment that was at work; the others are in the details."""
    if under_way is None:
        return ""
    if not under_way:
        return " while none of its environments was at work"
    more = f" and {len(under_way) - 1} more" if len(under_way) > 1 else ""
    return f" while {under_way[0]}{more}"
