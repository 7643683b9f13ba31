"""Leases by key: what was given back or given anew no longer counts under its old end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.run.leases import Leases


def test_by_hand():
    leases = Leases()
    assert leases.next_end_s is None
    leases.give("a", 5.0)
    leases.give("b", 3.0)
    leases.give("c", 4.0)
    leases.take_back("b")
    leases.give("a", 9.0)  # anew: its end at 5 is forgotten
    assert leases.next_end_s == 4.0
    assert leases.expired(3.9) == []
    assert leases.expired(6.0) == ["c"]
    assert leases.expired(6.0) == []
    assert leases.next_end_s == 9.0


def test_taking_back_what_was_never_given_is_no_error():
    leases = Leases()
    leases.take_back("a")
    assert leases.expired(1e9) == []


def test_a_lease_given_anew_with_the_same_end_expires_once():
    leases = Leases()
    leases.give("a", 5.0)
    leases.take_back("a")
    leases.give("a", 5.0)
    assert leases.expired(5.0) == ["a"]
    assert leases.next_end_s is None


def test_what_was_given_back_does_not_pile_up_behind_a_lease_that_lasts():
    leases = Leases()
    leases.give("long", 1000.0)
    for number in range(10_000):
        leases.give(number, 2000.0 + number)
        leases.take_back(number)
    assert len(leases) < 200
    assert leases.expired(1000.0) == ["long"]
    assert leases.next_end_s is None


@given(st.lists(st.tuples(st.sampled_from(["give", "back", "pass"]), st.integers(0, 5), st.integers(0, 9)), max_size=60))
def test_agrees_with_a_dictionary(events):
    leases, ends, now = Leases(), {}, 0
    for what, key, length in events:
        if what == "give":
            leases.give(key, now + length)
            ends[key] = now + length
        elif what == "back":
            leases.take_back(key)
            ends.pop(key, None)
        else:
            now += length
            over = leases.expired(now)
            assert sorted(over) == sorted(k for k, end in ends.items() if end <= now)
            assert [ends[k] for k in over] == sorted(ends[k] for k in over), "soonest first"
            ends = {k: end for k, end in ends.items() if end > now}
        assert leases.next_end_s == min(ends.values(), default=None)
