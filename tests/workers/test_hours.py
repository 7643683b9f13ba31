"""A moment counts once, under what was going on in it."""

from __future__ import annotations

from penstock.workers.hours import Hours


class Clock:
    """Stands still unless told."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_every_moment_counts_once_however_many_blocks_are_at_work():
    clock, cpu = Clock(), Clock()
    hours = Hours(clock, cpu)

    def after(seconds: float) -> None:
        clock.now += seconds

    after(1.0)  # idle
    hours.begin_segment()
    hours.begin_segment()
    after(0.25)  # the rest
    for _ in range(2):
        hours.begin_acting()
        after(0.5)
        hours.end_acting()
        hours.begin_stepping()
        after(4.0)
    hours.end_stepping()
    after(2.0)
    hours.end_stepping()
    hours.end_segment()
    after(0.25)
    hours.end_segment()
    after(8.0)
    cpu.now = 1.5
    spent = hours.account()
    assert (spent.idle_s, spent.inference_s, spent.environment_s) == (9.0, 1.0, 10.0)
    assert (spent.elapsed_s, spent.cpu_s) == (20.5, 1.5)
    after(3.0)
    assert (hours.account().idle_s, hours.account().elapsed_s) == (3.0, 0.0)


def test_what_is_under_way_is_told_up_to_now():
    clock = Clock()
    hours = Hours(clock, clock)
    hours.begin_segment()
    hours.begin_stepping()
    clock.now = 2.0
    assert hours.account().environment_s == 2.0
    clock.now = 5.0
    hours.end_stepping()
    assert hours.account().environment_s == 3.0


def test_waiting_for_the_server_is_inference_unless_environments_are_at_work():
    clock = Clock()
    hours = Hours(clock, clock)
    hours.begin_segment()
    for _ in range(2):
        hours.begin_asking()
        clock.now += 1.0
    hours.begin_stepping()
    clock.now += 4.0
    hours.end_stepping()
    hours.end_asking()
    clock.now += 0.5
    hours.end_asking()
    clock.now += 0.25
    spent = hours.account()
    assert (spent.inference_s, spent.environment_s, spent.idle_s, spent.elapsed_s) == (2.5, 4.0, 0.0, 6.75)
