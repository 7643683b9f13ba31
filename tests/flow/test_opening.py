"""What cannot move, or would be another schedule, is refused with the nearest legal value."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.errors import Refused
from penstock.flow.free import FreeLaw
from penstock.flow.opening import check_flow, guarantee, open_law
from penstock.flow.pinned import PinnedLaw
from penstock.flow.settings import FlowSettings


@pytest.mark.parametrize(
    ("settings", "blocks", "said"),
    [
        ({"schedule": "sync", "staleness": 2}, 4, "--schedule overlap --staleness 2"),
        ({"schedule": "overlap", "staleness": 0}, 4, "needs --staleness 1 or more, not 0; for 0 use --schedule sync"),
        ({"schedule": "async", "staleness": 0}, 4, "for 0 use --schedule sync"),
        ({"schedule": "async", "staleness": -1}, 4, "--staleness must be 0 or more, not -1"),
        ({"schedule": "sync", "staleness": -1}, 4, "--staleness must be 0 or more, not -1"),
        ({"schedule": "overlap"}, 5000, "a batch of 5,000 segments is more than the 4,096"),
        ({"schedule": "async", "segments_per_batch": 4097}, 4, "a batch of 4,097 segments"),
        ({"schedule": "async", "staleness": 2, "depth": 3}, 4, "the nearest is 2"),
        ({"schedule": "async", "staleness": 2, "depth": -1}, 4, "the nearest is 0"),
        ({"schedule": "async", "segments_per_batch": 0}, 4, "the nearest legal value is 1"),
        ({"schedule": "async", "segments_per_batch": -3}, 4, "the nearest legal value is 1"),
        ({"schedule": "overlap", "segments_per_batch": 3}, 4, "segments_per_batch must be 4, not 3"),
        ({"schedule": "overlap", "staleness": 2, "depth": 1}, 4, "has depth = staleness = 2; --depth is for async"),
        ({"schedule": "overlap"}, 0, "at least 1 is needed"),
    ],
)
def test_refusals_say_what_to_change(settings: dict[str, Any], blocks: int, said: str) -> None:
    with pytest.raises(Refused) as refusal:
        check_flow(FlowSettings(**settings), blocks)
    assert said in str(refusal.value)


def test_each_schedule_opens_its_law() -> None:
    sync, overlap, free = (open_law(FlowSettings(schedule=name), 4) for name in ("sync", "overlap", "async"))
    assert isinstance(sync, PinnedLaw)
    assert (sync.staleness, sync.num_slots) == (0, 4)
    assert isinstance(overlap, PinnedLaw)
    assert (overlap.staleness, overlap.num_slots) == (1, 8)
    assert isinstance(free, FreeLaw)
    assert (free.staleness, free.depth, free.segments_per_batch, free.num_slots) == (2, 1, 4, 8)


def test_a_single_block_may_fill_a_batch_alone() -> None:
    law = open_law(FlowSettings(schedule="async", segments_per_batch=6), 1)
    assert law.num_slots == 12


def test_what_is_promised_of_the_data() -> None:
    promise = guarantee(FlowSettings(schedule="overlap", staleness=3))
    assert (promise.schedule, promise.staleness, promise.pinned) == ("overlap", 3, True)
    assert not guarantee(FlowSettings(schedule="async")).pinned
