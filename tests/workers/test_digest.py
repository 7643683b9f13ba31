"""The digest chain: whatever changes anywhere changes every link from there on."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.workers.digest import BATCH_FIELDS, DigestChain

SHAPE = (2, 4, 3)


def batch_of(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    flags = {name: random.random(SHAPE) < 0.5 for name in ("terminated", "truncated", "valid")}
    return {
        "action": random.integers(0, 4, SHAPE),
        "reward": random.normal(size=SHAPE).astype(np.float32),
        "log_prob": random.normal(size=SHAPE).astype(np.float32),
        "observation": random.normal(size=(2, 5, 3, 2)).astype(np.float32),
        "value": random.normal(size=(2, 5, 3)).astype(np.float32),
        **flags,
    }


def weights_of(seed: int) -> list[np.ndarray]:
    return [np.random.default_rng(seed).normal(size=7).astype(np.float32), np.arange(3.0)]


def chain_of(*links: tuple[dict, list], full: bool = True) -> list[str]:
    chain = DigestChain("settings", full=full)
    return [chain.extend(*link) for link in links]


@given(st.sampled_from([*BATCH_FIELDS, "observation", "weights", "statistics"]), st.integers(0, 2**16), st.booleans())
def test_any_one_element_that_changes_changes_every_link_from_there_on(name, place, full):
    links = [(batch_of(number), weights_of(number)) for number in range(3)]
    before = chain_of(*links, full=full)
    batch, weights = links[1]
    array = {"weights": weights[0], "statistics": weights[1]}.get(name, batch.get(name))
    assert array is not None
    bits = array.reshape(-1).view(np.uint8)
    size = array.itemsize
    element = place % array.size
    bits[element * size] ^= 1  # the lowest bit
    after = chain_of(*links, full=full)
    seen = full or name != "observation"
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, not seen, not seen]


def test_what_a_batch_is_is_pinned():
    assert BATCH_FIELDS == ("action", "reward", "terminated", "truncated", "valid", "log_prob")
    one, other = batch_of(0), batch_of(0)
    other["value"] += 1  # a value follows from weights and observations
    assert chain_of((one, weights_of(0))) == chain_of((other, weights_of(0)))


def test_by_hand():
    """d(0) = SHA-256(hex of SHA-256(settings), weights 0); the hex text of a link goes into the next."""
    weights = np.array([1.0, 2.0], np.float32)
    start = hashlib.sha256(b"settings").hexdigest()
    assert chain_of(({}, [weights])) == [hashlib.sha256(start.encode() + weights.tobytes()).hexdigest()]


def test_order_and_settings_matter():
    links = [(batch_of(number), weights_of(number)) for number in range(2)]
    assert chain_of(*links)[-1] != chain_of(*links[::-1])[-1]
    assert DigestChain("settings", full=True).extend(*links[0]) != DigestChain("other", full=True).extend(*links[0])


@pytest.mark.parametrize("full", [False, True])
def test_views_with_gaps_are_read_as_what_they_hold(full):
    batch = batch_of(0)
    doubled = {name: np.repeat(array, 2, axis=0)[::2] for name, array in batch.items()}
    assert chain_of((batch, weights_of(0)), full=full) == chain_of((doubled, weights_of(0)), full=full)
