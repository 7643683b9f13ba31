"""Where lanes stand can be read by who shares their memory, in every kind of block, also once nobody steps them any more."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from counting_blocks import COUNTING, PLAIN_KINDS, RAGGED, settings_of
from faulty_envs import Faulty
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from penstock.core.errors import EnvironmentFault
from penstock.core.protocols import ALL, BlockEnvironment
from penstock.core.seeds import episode_seed
from penstock.core.specs import BoxSpec, DiscreteSpec, EnvironmentSpec
from penstock.envs.making import EnvironmentMaker
from penstock.envs.opening import open_block
from penstock.envs.probing import probe
from penstock.envs.settings import EnvSettings
from penstock.envs.standing import Standings
from penstock.envs.vector import VectorBlock
from penstock.testing.block_environment import receive_all

SEED, LANES, BLOCK = 11, 4, 2
MODES = tuple(AutoresetMode)


def opened(kind: Any) -> tuple[BlockEnvironment, Standings]:
    """A block of the counting environment that keeps up its record, and the records as another process sees them."""
    settings = settings_of(COUNTING, lanes=LANES, **RAGGED)
    maker = EnvironmentMaker.of(settings)
    spec = probe(maker, settings).spec
    kept = Standings.create(spec, lanes=LANES, blocks=BLOCK + 1)
    seen = Standings.attach(os.dup(kept.arena.fd), spec, lanes=LANES, blocks=BLOCK + 1)
    if isinstance(kind, AutoresetMode):
        vector: Any = SyncVectorEnv([maker] * LANES, autoreset_mode=kind)
        return VectorBlock(vector, spec, block=BLOCK, seed=SEED, standing=kept[BLOCK]), seen
    return open_block(maker, spec, settings, SEED, BLOCK, kind, kept[BLOCK]), seen


@pytest.mark.parametrize("kind", [*PLAIN_KINDS, *MODES])
def test_who_shares_the_memory_sees_the_positions_that_the_block_tells(kind: Any) -> None:
    block, seen = opened(kind)
    block.reset()
    for step in range(20):
        block.send(ALL, np.arange(step, step + LANES) % 2)
        receive_all(block)
        for row in range(LANES):
            assert seen[BLOCK].position(row, lane=BLOCK * LANES + row, seed=SEED) == block.position(row)
        assert seen.under_way((0, 1, 2), SEED) == (), "all are at rest"
    assert {block.position(row).episode for row in range(LANES)} != {0}
    block.close()


SPEC = EnvironmentSpec("Faulty", BoxSpec((2,), "float32", (-10, -10), (10, 10)), DiscreteSpec(3))


def three_steps(block: BlockEnvironment) -> None:
    block.reset()
    for _ in range(3):
        block.send(ALL, np.array([1, 2, 0, 1]))
        receive_all(block)


def broken(open_it: Callable[[Any], BlockEnvironment]) -> tuple[str, ...]:
    """What is left to read of a block that broke in its third step."""
    kept = Standings.create(SPEC, lanes=LANES, blocks=BLOCK + 1)
    block = open_it(kept[BLOCK])
    with pytest.raises(EnvironmentFault):
        three_steps(block)
    block.close()
    return kept.under_way(range(BLOCK + 1), SEED)


@pytest.mark.parametrize("kind", PLAIN_KINDS)
@pytest.mark.parametrize(("way", "doing", "step"), [("raise", "step", 3), ("reset", "reset", 0)])
def test_who_was_at_work_is_told_once_the_block_is_gone(kind: Any, way: str, doing: str, step: int) -> None:
    settings = EnvSettings(id="Faulty", n_envs=LANES, n_blocks=1)
    maker = EnvironmentMaker(Faulty, {"way": way})
    told = broken(lambda standing: open_block(maker, SPEC, settings, SEED, BLOCK, kind, standing))
    assert 1 <= len(told) <= (1 if kind == "serial" else LANES)
    lane = int(told[0].split("lane ")[1].split(",")[0])
    action = [1, 2, 0, 1][lane - BLOCK * LANES] if step else None
    place = f"lane {lane}, seed {episode_seed(SEED, lane, 0)}, episode 0, step {step}, last action {action}"
    assert told[0] == f"environment 'Faulty' was in {doing} ({place})"


def test_where_lanes_step_as_one_the_block_is_told() -> None:
    makers = [lambda: Faulty("raise")] + [Faulty] * (LANES - 1)
    vector: Any = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    (told,) = broken(lambda standing: VectorBlock(vector, SPEC, block=BLOCK, seed=SEED, standing=standing))
    place = f"lanes 8 to 11, seed {episode_seed(SEED, 8, 0)}, episode 0, step 3, last action 1"
    assert told == f"environment 'Faulty' was in step ({place})"


def test_one_that_dies_while_it_is_made_is_told() -> None:
    kept = Standings.create(SPEC, lanes=LANES, blocks=1)

    def make() -> Any:
        raise RuntimeError("no licence")

    block = open_block(EnvironmentMaker(make), SPEC, EnvSettings(id="F", n_envs=LANES, n_blocks=1), SEED, 0, "serial", kept[0])
    with pytest.raises(EnvironmentFault, match="failed in making"):
        block.reset()
    (told,) = kept.under_way((0,), SEED)
    assert told.startswith("environment 'Faulty' was in making (lane 0, ")
