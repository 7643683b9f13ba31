"""The exam for implementations of `core.protocols.BlockEnvironment`.

    check_block_environment(make_block)

`make_block` opens a fresh block, always the same one: same environment, lanes and seed. Over penstock/Counting-v0 (best
with ragged=True, and enough lanes that some end together) the exam also reads what the rows say of themselves, and so
sees lanes that were swapped, final observations that were lost and actions that went astray; with any other environment
it checks form, flags and repeatability. Fails with an AssertionError that says which law was broken.
"""

from __future__ import annotations

import hashlib
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from penstock.core.protocols import ALL, BlockEnvironment, Lanes
from penstock.core.specs import Array, BoxSpec, DiscreteSpec, Leaf, MaskSpec, MultiDiscreteSpec, leaves, parts_of
from penstock.envs.standing import told

PATIENCE_S = 30.0
"""How long a lane may take before the exam calls it stuck."""

MakeBlock = Callable[[], BlockEnvironment]
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Stream:
    """What a block said over `steps` steps, time first: T+1 observations, T of everything else."""

    observation: Array
    action: Array
    reward: Array
    terminated: Array
    truncated: Array
    ended: Array
    valid: Array

    def digest(self) -> str:
        """One name for all of it; actions of reset steps, which mean nothing, are left out."""
        everything = hashlib.sha256()
        flags = (self.terminated, self.truncated, self.ended, self.valid)
        for array in (self.observation, self.reward, *flags, self.action[self.valid]):
            for _, part in parts_of(array):  # not the whole: what lies between the parts is nobody's
                everything.update(np.ascontiguousarray(part).tobytes())
        return everything.hexdigest()


def check_block_environment(make_block: MakeBlock, *, steps: int = 60) -> None:
    """Every law of the Protocol that can be seen from outside."""
    _check_rows(make_block)
    stream = _with_block(make_block, lambda block: record(block, actions_for(block, steps)))
    check_next_step_form(stream)
    check_counting(make_block, stream)
    _check_repeatable(make_block, stream, steps)
    _check_reset_action_is_ignored(make_block, stream)
    _check_waiting(make_block)
    _check_positions(make_block)
    _check_closing(make_block)


def actions_for(block: BlockEnvironment, steps: int, *, seed: int = 0) -> Array:
    """Random actions as the environment takes them, [steps, B, ...]."""
    random, action = np.random.default_rng(seed), block.spec.action
    actions = np.zeros((steps, block.num_lanes, *action.shape), action.dtype)
    for place in leaves(action):
        place.of(actions)[...] = _random_leaf(place.leaf, (steps, block.num_lanes, *place.leaf.shape), random)
    return actions


def _random_leaf(leaf: Leaf, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    match leaf:
        case BoxSpec():
            return random.uniform(*leaf.bounds, shape).astype(leaf.dtype)
        case DiscreteSpec(n, start):
            return random.integers(start, start + n, shape)
        case MultiDiscreteSpec(counts, start):
            first = np.reshape(start, leaf.shape)
            return random.integers(first, first + np.reshape(counts, leaf.shape), shape)
        case MaskSpec():
            raise AssertionError("a mask is no action")


def record(block: BlockEnvironment, actions: Array) -> Stream:
    """Reset, then step all lanes together with these actions, keeping every row."""
    block.reset()
    observations, rows = [block.observation.copy()], []
    for action in actions:
        block.send(ALL, action)
        receive_all(block)
        observations.append(block.observation.copy())
        rows.append([row.copy() for row in (block.reward, block.terminated, block.truncated, block.ended, block.valid)])
    reward, terminated, truncated, ended, valid = (np.stack(kind) for kind in zip(*rows, strict=True))
    return Stream(np.stack(observations), actions, reward, terminated, truncated, ended, valid)


def receive_all(block: BlockEnvironment) -> None:
    """Wait until each lane has been received once."""
    seen = np.zeros(block.num_lanes, int)
    while not seen.all():
        lanes = block.receive(PATIENCE_S)
        answered = np.arange(block.num_lanes)[lanes]
        assert len(answered), f"lanes {np.flatnonzero(seen == 0).tolist()} were sent and never answered"
        seen[answered] += 1
        assert (seen <= 1).all(), f"lanes {np.flatnonzero(seen > 1).tolist()} answered twice to one step"
        if len(answered) == block.num_lanes:
            assert isinstance(lanes, slice), "all lanes were ready and receive did not answer ALL"


def check_next_step_form(stream: Stream) -> None:
    """The step after an episode's end, and no other, is a reset step: not valid, no reward, no flag."""
    reset_due = np.zeros_like(stream.valid)
    reset_due[1:] = stream.ended[:-1]
    _no(stream.valid & reset_due, "the step after an episode's end is valid, though it only resets")
    _no(~stream.valid & ~reset_due, "a step that follows no episode's end is not valid")
    flagged = stream.terminated | stream.truncated
    _no(~stream.valid & (flagged | stream.ended), "a reset step has a flag")
    _no(stream.ended & ~flagged, "an episode ended that neither terminated nor was truncated")
    _no(stream.truncated & ~stream.ended, "an episode was truncated and did not end")
    _no(~stream.valid & (stream.reward != 0), "a reset step has a reward")
    assert np.isfinite(stream.reward).all(), "a reward is not finite"
    finite = all(np.isfinite(part).all() for _, part in parts_of(stream.observation))
    assert finite, "an observation is not finite"


def check_counting(make_block: MakeBlock, stream: Stream) -> None:
    """What rows of penstock/Counting-v0 say of themselves; any other environment passes."""
    if _with_block(make_block, lambda block: "Counting" not in block.spec.id):
        return
    tag, step, last_action = stream.observation[..., 0], stream.observation[..., 2], stream.observation[..., 3]
    steps, valid = np.zeros(step.shape[1]), stream.valid
    _no(step[0] != 0, "the first observation is not an episode's first")
    for t in range(len(valid)):
        steps = np.where(valid[t], steps + 1, 0)
        wrong = step[t + 1] != steps
        _no(wrong & stream.ended[t], f"step {t}: the row of an episode's end is not its final observation")
        _no(wrong, f"step {t}: the observation is not the lane's next one")
        _no(valid[t] & (last_action[t + 1] != stream.action[t]), f"step {t}: a lane was given another lane's action")
        _no(valid[t] & (stream.reward[t] != steps), f"step {t}: the reward belongs to another step")
        _no(valid[t] & (tag[t + 1] != tag[t]), f"step {t}: the lane shows another lane's episode")
    _no(np.array([len(set(tag[0])) != tag.shape[1]]), "lanes start from the same seed")
    assert stream.ended.any(), "no episode ended; give the exam shorter episodes"


def _check_rows(make_block: MakeBlock) -> None:
    block = make_block()
    try:
        block.reset()
        lanes, spec = block.num_lanes, block.spec
        _check_array("observation", block.observation, (lanes, *spec.observation.shape), spec.observation.dtype)
        _check_array("reward", block.reward, (lanes,), "float64")
        for name in ("terminated", "truncated", "ended", "valid"):
            _check_array(name, getattr(block, name), (lanes,), "bool")
        before = [block.observation, block.reward, block.terminated, block.truncated, block.ended, block.valid]
        block.send(ALL, actions_for(block, 1)[0])
        receive_all(block)
        after = [block.observation, block.reward, block.terminated, block.truncated, block.ended, block.valid]
        same = all(one is other for one, other in zip(before, after, strict=True))
        assert same, "receive must overwrite the block's arrays, not replace them"
        if isinstance(spec.observation, BoxSpec):
            low, high = spec.observation.bounds
            inside = (block.observation >= low) & (block.observation <= high)
            assert inside.all(), "an observation is outside the bounds that its spec declares"
    finally:
        block.close()


def _check_array(name: str, array: Array, shape: tuple[int, ...], dtype: Any) -> None:
    assert array.shape == shape, f"{name} has shape {array.shape}, not {shape}"
    assert array.dtype == np.dtype(dtype), f"{name} has dtype {array.dtype}, not {dtype}"


def _check_repeatable(make_block: MakeBlock, stream: Stream, steps: int) -> None:
    def twice(block: BlockEnvironment) -> Stream:
        record(block, actions_for(block, 3))
        return record(block, actions_for(block, steps))

    again = _with_block(make_block, lambda block: record(block, actions_for(block, steps)))
    assert again.digest() == stream.digest(), "the same block with the same actions gave another stream"
    if "Counting" not in _with_block(make_block, lambda block: block.spec.id):  # it counts on over resets
        assert _with_block(make_block, twice).digest() == stream.digest(), "reset does not start over"


def _check_reset_action_is_ignored(make_block: MakeBlock, stream: Stream) -> None:
    other = stream.action.copy()
    other[~stream.valid] = np.roll(stream.action, 1, axis=0)[~stream.valid]
    replayed = _with_block(make_block, lambda block: record(block, other))
    assert replayed.digest() == stream.digest(), "the action of a reset step changed what followed"


def _check_waiting(make_block: MakeBlock) -> None:
    def check(block: BlockEnvironment) -> None:
        block.reset()
        assert not _any(block, block.receive(0)), "receive answered with lanes that were not sent"
        for action in actions_for(block, 3):
            block.send(ALL, action)
            if block.fileno() >= 0:
                readable, _, _ = select.select([block.fileno()], [], [], PATIENCE_S)
                assert readable, "the descriptor did not become readable"
                ready = block.receive(0)
                assert _any(block, ready), "the descriptor was readable, yet receive(0) found nothing"
                while not isinstance(ready, slice) and len(ready) < block.num_lanes:
                    ready = np.concatenate([ready, np.arange(block.num_lanes)[block.receive(PATIENCE_S)]])
                assert not select.select([block.fileno()], [], [], 0)[0], "readable with nothing under way"
            else:
                assert isinstance(block.receive(0), slice), "without a descriptor all lanes are ready after send"

    _with_block(make_block, check)


def _check_positions(make_block: MakeBlock) -> None:
    def check(block: BlockEnvironment) -> None:
        block.reset()
        at = [block.position(lane) for lane in range(block.num_lanes)]
        assert [where.lane - at[0].lane for where in at] == list(range(block.num_lanes)), "lanes are not consecutive"
        assert at[0].lane % block.num_lanes == 0, "position must give global lane numbers"
        assert all((where.episode, where.step) == (0, 0) for where in at), "after reset: episode 0, step 0"
        episodes, steps = np.zeros(block.num_lanes, int), np.zeros(block.num_lanes, int)
        for action in actions_for(block, 30):
            block.send(ALL, action)
            receive_all(block)
            episodes += ~block.valid
            steps = np.where(block.valid, steps + 1, 0)
            at = [block.position(lane) for lane in range(block.num_lanes)]
            assert [where.episode for where in at] == episodes.tolist(), "position miscounts episodes"
            assert [where.step for where in at] == steps.tolist(), "position miscounts steps"
            for where, given in zip(at, action, strict=True):
                assert where.step == 0 or where.last_action == told(given), "position tells a wrong action"

    _with_block(make_block, check)


def _check_closing(make_block: MakeBlock) -> None:
    """With a step under way, and twice; and before anything has begun."""
    make_block().close()
    block = make_block()
    block.reset()
    block.send(ALL, actions_for(block, 1)[0])
    block.close()
    block.close()


def _with_block(make_block: MakeBlock, use: Callable[[BlockEnvironment], Seen]) -> Seen:
    block = make_block()
    try:
        return use(block)
    finally:
        block.close()


def _any(block: BlockEnvironment, lanes: Lanes) -> bool:
    return len(np.arange(block.num_lanes)[lanes]) > 0


def _no(wrong: Array, law: str) -> None:
    if wrong.any():
        raise AssertionError(f"{law} (first at {tuple(int(index[0]) for index in np.nonzero(wrong))})")
