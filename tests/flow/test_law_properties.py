"""Whatever the order of events, and whatever dies: both laws keep what DESIGN section 1 promises, over random settings."""

from __future__ import annotations

import pytest
from law_drive import Drive, drawn_setting

QUICK = 2000
LONG = 20_000


def drive_many(seeds: range) -> list[Drive]:
    return [Drive(drawn_setting(seed), seed, trouble=seed % 4 != 0).run() for seed in seeds]


def test_both_laws_keep_every_promise_in_random_orders_with_trouble() -> None:
    drives = drive_many(range(QUICK))
    assert all(len(drive.batches) >= 8 for drive in drives)
    troubled = sum(drive.law.dropped_segments > 0 for drive in drives)
    assert troubled > QUICK // 10, "the drives must meet trouble to mean anything"
    assert sum(drive.setting.rows is not None for drive in drives) > QUICK // 10, "the drives must have budgets, too"
    assert any(drive.overtaken for drive in drives), "the drives must overtake to mean anything"
    assert any(0 < m.steps < 10 for drive in drives for batch in drive.batches for m in batch.members), "no segment was short"


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(10))
def test_both_laws_over_twenty_thousand_settings(part: int) -> None:
    each = LONG // 10
    drive_many(range(QUICK + part * each, QUICK + (part + 1) * each))


def test_nothing_is_discarded_where_nobody_dies_or_overruns() -> None:
    for seed in range(100):
        assert Drive(drawn_setting(seed), seed, trouble=False).run().law.dropped_segments == 0


def test_pinned_batches_do_not_depend_on_the_order_of_events() -> None:
    """Same settings, two orders with deaths in them, another number of workers: the same segments in the same slots."""
    for seed in range(120):
        setting = drawn_setting(seed, pinned=True)
        told = []
        for order in (seed, seed + 1_000_000):
            batches = Drive(setting, order).run().batches
            told.append([[(m.segment, m.block, m.slot, m.version) for m in batch.members] for batch in batches[:8]])
        assert told[0] == told[1], f"{setting}, orders {seed} and {seed + 1_000_000}"


def test_which_rounds_are_started_does_not_depend_on_the_order_of_events() -> None:
    """With a budget every round up to the last is started once by every block, and none past it, whatever dies."""
    budgeted = [setting for seed in range(240) if (setting := drawn_setting(seed, pinned=True)).rows is not None]
    assert len(budgeted) > 60
    for seed, setting in enumerate(budgeted):
        for order in (seed, seed + 1_000_000):
            drive = Drive(setting, order).run()
            assert drive.issued == set(range(setting.num_rounds * setting.blocks)), f"{setting}, order {order}"


def test_pinned_flow_gives_nothing_up() -> None:
    for seed in range(100):
        assert Drive(drawn_setting(seed, pinned=True), seed).run().law.dropped_segments == 0
