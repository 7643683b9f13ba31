"""Where random numbers come from.

A draw belongs to (seed, purpose, where, when): never to a process, a thread or the order in which things happened to
run. Each such key opens its own Philox stream, so a segment drawn again on another worker draws the same numbers.
"""

from __future__ import annotations

import enum
import hashlib

import numpy as np


class Purpose(enum.Enum):
    """What a draw is for. The value is part of the key: never reuse or reorder one."""

    INITIAL_WEIGHTS = 1
    ACTION = 2
    EPISODE = 3
    MINIBATCH = 4
    BLOCK_RESET = 5
    EVALUATION = 6
    PROBE = 7
    CHAOS = 8
    DELAY = 9


def _key(seed: int, purpose: Purpose, *where: int) -> bytes:
    text = ":".join(str(part) for part in (seed, purpose.value, *where))
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def stream(seed: int, purpose: Purpose, *where: int) -> np.random.Generator:
    """The generator that belongs to this key alone. `where` is, say, (block, segment) or (version, epoch)."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_key(seed, purpose, *where), "little")))


def derived_seed(seed: int, purpose: Purpose, *where: int) -> int:
    """A 31-bit seed for code that wants a number (an environment's reset, torch's generator)."""
    return int.from_bytes(_key(seed, purpose, *where)[:4], "little") & 0x7FFF_FFFF


def episode_seed(seed: int, lane: int, episode: int) -> int:
    """Lane `lane`'s episode `episode` starts from this seed, whoever hosts it."""
    return derived_seed(seed, Purpose.EPISODE, lane, episode)
