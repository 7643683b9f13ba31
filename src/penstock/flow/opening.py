"""From settings to a law. What would have to deadlock, or would silently be another schedule, is refused here by name."""

from __future__ import annotations

from penstock.core.errors import Refused
from penstock.core.fit import Guarantee
from penstock.flow.budget import Budget
from penstock.flow.events import Law
from penstock.flow.free import FreeLaw
from penstock.flow.pinned import PinnedLaw
from penstock.flow.settings import FlowSettings

MOST_SEGMENTS = 4096
"""In a batch: it is named to the learner in one message."""


def check_flow(settings: FlowSettings, num_blocks: int) -> None:
    """Refuse settings under which the flow could not move, with the nearest legal ones."""
    bound = settings.bound
    if num_blocks < 1:
        raise Refused(f"n_blocks is {num_blocks}; at least 1 is needed")
    if batch_segments(settings, num_blocks) > MOST_SEGMENTS:
        raise Refused(
            f"a batch of {batch_segments(settings, num_blocks):,} segments is more than the {MOST_SEGMENTS:,} that one "
            f"message can name; use fewer, larger blocks (envs.n_blocks)"
        )
    if bound < 0:
        raise Refused(f"--staleness must be 0 or more, not {bound}")
    if settings.schedule == "sync" and bound != 0:
        raise Refused(f"schedule 'sync' has staleness 0, not {bound}; use --schedule overlap --staleness {bound}")
    if settings.schedule != "sync" and bound < 1:
        raise Refused(f"schedule '{settings.schedule}' needs --staleness 1 or more, not {bound}; for 0 use --schedule sync")
    if settings.pinned:
        _check_pinned(settings, num_blocks)
    else:
        _check_free(settings)


def _check_pinned(settings: FlowSettings, num_blocks: int) -> None:
    if settings.depth not in (None, settings.bound):
        raise Refused(f"schedule '{settings.schedule}' has depth = staleness = {settings.bound}; --depth is for async")
    if settings.segments_per_batch not in (None, num_blocks):
        raise Refused(
            f"schedule '{settings.schedule}' trains one segment of every block: segments_per_batch must be "
            f"{num_blocks}, not {settings.segments_per_batch}"
        )


def _check_free(settings: FlowSettings) -> None:
    depth, size = free_depth(settings), settings.segments_per_batch
    if not 0 <= depth <= settings.bound:
        nearest = min(max(depth, 0), settings.bound)
        raise Refused(f"--depth {depth} must lie between 0 and the staleness {settings.bound}; the nearest is {nearest}")
    if size is not None and size < 1:
        raise Refused(f"segments_per_batch is {size}; the nearest legal value is 1")


def free_depth(settings: FlowSettings) -> int:
    """D as it is used by the free flow."""
    return 1 if settings.depth is None else settings.depth


def batch_segments(settings: FlowSettings, num_blocks: int) -> int:
    """M as it is used."""
    return settings.segments_per_batch or num_blocks


def open_law(settings: FlowSettings, num_blocks: int, *, steps: int | None = None, segment_rows: int = 0) -> Law:
    """The state machine that these settings ask for. `steps`: the run's budget, where a segment has so many rows at most."""
    check_flow(settings, num_blocks)
    if settings.pinned:
        budget = None if steps is None else Budget(steps, num_blocks=num_blocks, segment_rows=segment_rows)
        return PinnedLaw(num_blocks=num_blocks, staleness=settings.bound, budget=budget)
    return FreeLaw(
        num_blocks=num_blocks,
        staleness=settings.bound,
        depth=free_depth(settings),
        segments_per_batch=batch_segments(settings, num_blocks),
    )


def guarantee(settings: FlowSettings) -> Guarantee:
    """What this schedule promises of its data."""
    return Guarantee(settings.schedule, settings.bound, settings.pinned)
