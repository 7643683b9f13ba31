"""What an algorithm demands against what a schedule guarantees."""

from __future__ import annotations

import pytest

from penstock.core.errors import Refused
from penstock.core.fit import Demands, Guarantee, check_fit

DEMANDS = Demands(greatest_staleness={"clip": 2, "delayed": None, "none": 0}, pinned_only=frozenset({"delayed"}))


@pytest.mark.parametrize(
    ("correction", "guarantee"),
    [
        ("clip", Guarantee("async", 2, pinned=False)),
        ("none", Guarantee("sync", 0, pinned=True)),
        ("delayed", Guarantee("overlap", 1000, pinned=True)),
    ],
)
def test_what_fits_is_let_through(correction, guarantee):
    check_fit("ppo", correction, DEMANDS, guarantee)


@pytest.mark.parametrize(
    ("correction", "guarantee", "message"),
    [
        ("vtrace", Guarantee("sync", 0, pinned=True), "no correction 'vtrace'; it offers: clip, delayed, none"),
        ("clip", Guarantee("async", 3, pinned=False), "sound up to staleness 2, but schedule 'async' allows 3"),
        ("none", Guarantee("overlap", 1, pinned=True), "use --schedule sync"),
        ("delayed", Guarantee("async", 1, pinned=False), "needs a pinned schedule"),
    ],
)
def test_what_does_not_is_refused_by_name(correction, guarantee, message):
    with pytest.raises(Refused, match=message):
        check_fit("ppo", correction, DEMANDS, guarantee)
