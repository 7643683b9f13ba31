"""The learner: what it checks, what it counts, and in which order versions, statistics and episodes come."""

from __future__ import annotations

import numpy as np
import pytest
from worker_plans import LANES, MODEL, SPEC, STEPS, learner_plan, new_slots

from penstock.checkpoint import files
from penstock.core.errors import NonFinite, RunFailed
from penstock.models.normaliser import Normaliser, discounted_returns
from penstock.models.settings import ModelSettings
from penstock.store.slots import Segment
from penstock.transport.channel import LocalChannel
from penstock.transport.messages import Episodes, HandIn, Ready, Save, Saved, Slot, Stop, Train, Trained
from penstock.weights.board import Board, TornRead
from penstock.workers import learner as learner_module
from penstock.workers.chaos import ChaosPlan
from penstock.workers.learner import Learner

NORMALISED = ModelSettings(hidden_sizes=(4,), normalize_observation=True, normalize_reward=True)


def fill(segment: Segment, seed: int) -> None:
    """Random rows: an end now and then, a reset row after it."""
    random = np.random.default_rng(seed)
    segment.observation[...] = random.normal(3, 2, segment.observation.shape)
    segment.action[...] = random.integers(0, 4, segment.action.shape)
    for name in ("reward", "log_prob", "value", "episode_return"):
        getattr(segment, name)[...] = random.normal(size=getattr(segment, name).shape)
    segment.return_accumulator[...] = random.normal(size=LANES)
    done = random.random((STEPS, LANES)) < 0.25
    segment.valid[...], segment.truncated[...] = True, False
    for t in range(1, STEPS):
        segment.valid[t] = ~done[t - 1]
        done[t] &= segment.valid[t]
    segment.terminated[...] = segment.ended[...] = done
    segment.reward[~segment.valid] = 0
    segment.episode_length[...] = random.integers(1, 99, (STEPS, LANES))


class Bench:
    """A learner, its slots filled with segments 10, 11, ... of these versions, and the other end of its channel."""

    def __init__(self, run_dir, versions=(0, 0, 0, 0), **changes) -> None:
        self.slots = new_slots()
        for place, version in enumerate(versions):
            fill(self.slots[place], place)
            self.slots[place].stamp(segment=10 + place, version=version, block=place, worker=1)
        self.ours, theirs = LocalChannel.pair()
        self.learner = Learner(learner_plan(run_dir, **changes), self.slots, theirs)
        self.learner.open()
        (self.ready,) = self.ours.receive()

    @property
    def algorithm(self):
        return self.learner._algorithm

    def train(self, version: int, places=(0, 1), progress: float = 0.5) -> Trained:
        members = tuple(Slot(place, 10 + place, int(self.slots[place].version)) for place in places)
        self.learner.handle(Train(version, members, progress))
        *_, trained = self.ours.receive()
        assert isinstance(trained, Trained)
        return trained

    def published(self, version: int) -> tuple[np.ndarray, np.ndarray]:
        return published(self.learner.board, version)


def published(board: Board, version: int) -> tuple[np.ndarray, np.ndarray]:
    weights, statistics = np.zeros(board._weights.shape[1], np.float32), np.zeros(board._statistics.shape[1])
    board.load(version, weights, statistics)
    return weights, statistics


def test_version_0_is_published_and_said(tmp_path):
    bench = Bench(tmp_path)
    weights, _ = bench.published(0)
    assert isinstance(bench.ready, Ready)
    assert (bench.ready.num_weights, bench.ready.num_statistics) == (len(weights), 0)
    assert weights.any()


def test_each_batch_makes_the_next_version(tmp_path):
    bench = Bench(tmp_path)
    first, _ = bench.published(0)
    trained = bench.train(0, progress=0.25)
    assert (trained.version, trained.updates, trained.samples) == (1, 3, 50)
    assert trained.metrics == {"policy_loss": 0.5}
    assert np.array_equal(bench.published(1)[0], first + 1)
    bench.train(1)
    assert np.array_equal(bench.published(2)[0], first + 1 + 1)
    assert np.array_equal(bench.published(1)[0], first + 1)
    assert bench.algorithm.progress == [0.25, 0.5]
    assert [batch.version for batch in bench.algorithm.batches] == [0, 1]


@pytest.mark.parametrize("places", [(0, 1), (3, 1, 2)])
def test_the_batch_is_the_slots_rows_in_the_order_told(tmp_path, places):
    bench = Bench(tmp_path)
    trained = bench.train(0, places)
    (batch,) = bench.algorithm.batches
    for name in ("observation", "action", "log_prob", "reward", "value", "terminated", "truncated", "valid"):
        expected = np.stack([getattr(bench.slots[place], name) for place in places])
        assert np.array_equal(getattr(batch, name), expected.astype(getattr(batch, name).dtype)), name
    rows = int(np.count_nonzero(batch.valid))
    assert (trained.rows, trained.masked_rows) == (rows, batch.valid.size - rows)


@pytest.mark.parametrize("wrong", [Slot(1, 99, 0), Slot(1, 11, 5), Slot(0, 11, 0)])
def test_a_slot_that_holds_something_else_ends_the_run(tmp_path, wrong):
    bench = Bench(tmp_path)
    with pytest.raises(RunFailed, match=r"slot \d holds segment 1\d of version 0, not segment"):
        bench.learner.handle(Train(0, (Slot(0, 10, 0), wrong), 0.0))
    assert bench.algorithm.batches == []
    assert bench.learner.version == 0


def test_staleness_is_counted_from_the_slots_in_valid_rows(tmp_path):
    bench = Bench(tmp_path, versions=(5, 4, 5, 3))
    rows = [int(np.count_nonzero(bench.slots[place].valid)) for place in range(4)]
    trained = bench.train(5, (0, 1, 2, 3))
    assert trained.staleness == (rows[0] + rows[2], rows[1], rows[3])


def test_what_is_not_finite_is_never_published(tmp_path):
    bench = Bench(tmp_path)
    bench.train(0)
    bench.algorithm.poison = True
    with pytest.raises(NonFinite, match="weights of version 2 are not finite"):
        bench.train(1)
    assert bench.learner.version == 1
    assert np.isfinite(bench.published(1)[0]).all()
    with pytest.raises(TornRead):
        bench.published(2)
    assert bench.ours.receive() == []


# ---------------------------------------------------------------- normalisation


def test_a_batch_is_scaled_by_the_statistics_of_its_version_and_merged_after(tmp_path):
    bench = Bench(tmp_path, model=NORMALISED)
    normaliser = Normaliser(SPEC, NORMALISED)
    statistics = normaliser.initial()
    assert np.array_equal(bench.published(0)[1], statistics)
    for version, places in enumerate([(0, 1), (2, 3)]):
        bench.train(version, places)
        batch = bench.algorithm.batches[version]
        normaliser.load(statistics)
        raw = [bench.slots[place] for place in places]
        observation, reward = (np.stack([getattr(segment, name) for segment in raw]) for name in ("observation", "reward"))
        scaled = np.empty(observation.shape, np.float32), np.empty(reward.shape, np.float32)
        normaliser.scale("", observation, scaled[0])
        normaliser.normalise_rewards(reward, scaled[1])
        assert np.array_equal(batch.observation, scaled[0])
        assert np.array_equal(batch.reward, scaled[1])
        statistics = normaliser.merged(statistics, [merged_of(segment) for segment in raw])
        assert np.array_equal(bench.published(version + 1)[1], statistics)
    assert not np.array_equal(bench.published(1)[1], bench.published(2)[1])


def merged_of(segment: Segment):
    done = segment.terminated | segment.truncated
    returns, _ = discounted_returns(segment.reward, done, segment.valid, segment.return_accumulator, 0.5)
    return segment.observation, returns, segment.valid


def test_raw_rows_are_trained_without_a_copy_of_observations(tmp_path):
    bench = Bench(tmp_path)
    seen = []
    bench.algorithm.update = lambda batch, progress: seen.append(batch) or {"updates": 1, "samples": 1}
    bench.train(0, (0, 1))
    assert np.shares_memory(seen[0].observation, bench.slots[0].observation)


# ---------------------------------------------------------------- episodes


def test_episodes_come_in_block_step_lane_order_and_broken_ones_are_left_out(tmp_path):
    bench = Bench(tmp_path)
    for place in (0, 1):
        segment = bench.slots[place]
        segment.terminated[...], segment.truncated[...], segment.valid[...] = False, False, True
        segment.episode_return[...] = 1000 * place + 10 * np.arange(STEPS)[:, None] + np.arange(LANES)
        segment.episode_length[...] = np.arange(LANES) + 1
    bench.slots[1].terminated[0, 2] = bench.slots[1].truncated[0, 1] = True
    bench.slots[0].terminated[5, 0] = bench.slots[0].truncated[3, 2] = True
    bench.slots[0].terminated[4, 1] = True
    bench.slots[0].episode_return[4, 1] = np.nan  # it lost rows
    for slot in bench.slots[0], bench.slots[1]:
        slot.ended[...] = slot.terminated | slot.truncated
    bench.slots[0].terminated[2, 0] = True  # a life lost in a game that goes on
    bench.slots[0].ended[6, 1], bench.slots[0].valid[6, 1] = True, False  # not data
    trained = bench.train(0, (0, 1))
    assert trained.episode_returns == (32, 50, 1001, 1002)
    assert trained.episode_lengths == (3, 1, 2, 3)


def test_more_episodes_than_fit_a_message_travel_before_it(tmp_path, monkeypatch):
    monkeypatch.setattr(learner_module, "MAX_EPISODES", 5)
    bench = Bench(tmp_path)
    bench.slots[0].terminated[...] = bench.slots[0].ended[...] = bench.slots[0].valid[...] = True
    bench.slots[0].episode_return[...] = np.arange(STEPS * LANES).reshape(STEPS, LANES)
    bench.learner.handle(Train(0, (Slot(0, 10, 0),), 0.0))
    *pieces, trained = bench.ours.receive()
    assert all(isinstance(piece, Episodes) and len(piece.returns) == len(piece.lengths) == 5 for piece in pieces)
    assert sum((piece.returns for piece in pieces), ()) + trained.episode_returns == tuple(range(STEPS * LANES))


# ---------------------------------------------------------------- digest, checkpoints


def test_the_digest_is_a_chain_over_batches_and_weights(tmp_path):
    one, same, other = Bench(tmp_path), Bench(tmp_path), Bench(tmp_path, settings_digest="others")
    assert one.ready.digest == same.ready.digest != other.ready.digest
    assert one.train(0).digest == same.train(0).digest
    other.slots[0].reward[0, 0] += 1
    same.slots[1].log_prob[0, 0] += 1
    assert one.train(1).digest != same.train(1).digest
    assert one.train(2, (2, 3)).digest != same.train(2, (2, 3)).digest  # from there on the chain stays another


def test_free_flow_has_no_digest(tmp_path):
    bench = Bench(tmp_path, pinned=False)
    assert bench.ready.digest is None
    assert bench.train(0).digest is None


def test_full_digests_see_observations(tmp_path):
    for full in (False, True):
        one, other = Bench(tmp_path, full_digest=full), Bench(tmp_path, full_digest=full)
        other.slots[0].observation[0, 0] += 1
        assert (one.train(0).digest == other.train(0).digest) != full


def test_checkpoints_hold_version_weights_statistics_and_what_the_run_says(tmp_path):
    bench = Bench(tmp_path, model=NORMALISED)
    for version in range(4):
        trained = bench.train(version)
        bench.learner.handle(Save({"env_steps": version}))
        (saved,) = bench.ours.receive()
        assert saved == Saved(version + 1, f"checkpoints/{version + 1}")
    assert files.versions(tmp_path / "checkpoints") == [3, 4]
    found = files.load(files.newest(tmp_path))
    flat = np.concatenate([found.model[name].ravel() for name in found.model if name != learner_module.STATISTICS])
    assert sorted(flat) == sorted(bench.published(4)[0])
    assert np.array_equal(found.model[learner_module.STATISTICS], bench.published(4)[1])
    assert found.optimizer["count"] == 4
    expected = {"env_steps": 3, "digest": trained.digest, "policy": {"spec": "of the policy"}}
    assert {key: found.state[key] for key in expected} == expected


def test_a_run_starts_from_anothers_weights_and_statistics(tmp_path):
    first = Bench(tmp_path / "first", model=NORMALISED)
    first.train(0)
    first.learner.handle(Save({}))
    for source in (tmp_path / "first", tmp_path / "first" / "checkpoints" / "1"):
        second = Bench(tmp_path / "second", model=NORMALISED, initial_weights=str(source))
        for mine, theirs in zip(second.published(0), first.published(1), strict=True):
            assert np.array_equal(mine, theirs)
        second.train(0)  # and its normaliser scales with them
        assert np.abs(second.algorithm.batches[0].observation).mean() < 2


def test_they_are_taken_where_weights_do_not_lie_in_this_memory(tmp_path, monkeypatch):
    """As on another device: what NumPy sees of the weights is a copy."""
    first = Bench(tmp_path / "first")
    first.train(0)
    first.learner.handle(Save({}))
    near = Learner._weights.fget
    monkeypatch.setattr(Learner, "_weights", property(lambda self: near(self).copy()))
    second = Bench(tmp_path / "second", initial_weights=str(tmp_path / "first"))
    assert np.array_equal(second.published(0)[0], first.published(1)[0])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MODEL, "its normalisation is not that of this run"),
        (
            ModelSettings(hidden_sizes=(5,), normalize_observation=True, normalize_reward=True),
            "its model has no 'policy.0.weight'",
        ),
        (ModelSettings(hidden_sizes=(4, 4)), "its model has no"),
    ],
)
def test_weights_that_do_not_fit_are_named(tmp_path, model, message):
    first = Bench(tmp_path / "first", model=NORMALISED)
    first.learner.handle(Save({}))
    with pytest.raises(RunFailed, match=message):
        Bench(tmp_path / "second", model=model, initial_weights=str(tmp_path / "first"))


def test_stop_and_what_it_has_no_use_for(tmp_path):
    bench = Bench(tmp_path)
    bench.learner.handle(Stop())
    assert bench.learner.stopped
    with pytest.raises(TypeError, match="no use for HandIn"):
        bench.learner.handle(HandIn(1))


def test_delays_are_counted_and_change_nothing(tmp_path):
    plain = Bench(tmp_path)
    slow = Bench(tmp_path, chaos=ChaosPlan.parse("delays:0.01"))
    digests = [(plain.train(v).digest, slow.train(v)) for v in range(20)]
    assert all(one == other.digest for one, other in digests)
    assert 0 < sum(other.chaos_events for _, other in digests) < 40, "before and after each of 20 updates, every other time"
