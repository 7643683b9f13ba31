"""The learner: trains the batches that it is told to, in the order in which it is told, and publishes what comes of each.

    check headers -> normalise with the statistics of v -> algorithm.update -> merge the batch's statistics
    -> publish v + 1 -> extend the digest -> report

It does not know how batches are chosen; it does check that each slot holds the segment and version that it was told.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch

from penstock.algorithms.batch import Batch
from penstock.checkpoint import files
from penstock.core.errors import NonFinite, Refused, RunFailed
from penstock.core.fit import Demands, Guarantee, check_fit
from penstock.core.loading import load_object
from penstock.core.protocols import Channel
from penstock.core.specs import Array
from penstock.models.normaliser import Normaliser, discounted_returns
from penstock.models.policy import Policy, build_policy
from penstock.store.slots import Slots
from penstock.transport.messages import MAX_EPISODES, Anything, Episodes, Ready, Save, Saved, Slot, Stop, Train, Trained
from penstock.weights.board import Board
from penstock.workers.chaos import Delays
from penstock.workers.digest import BATCH_FIELDS, DigestChain
from penstock.workers.plans import LearnerPlan

FIELDS = (*BATCH_FIELDS, "value", "ended")
STATISTICS = "normaliser.statistics"
ALGORITHM_MEMBERS = ("flat", "update", "state", "restore")
REPORTED_APART = ("updates", "samples")


def _usable_device(name: str) -> torch.device:
    """The device of this name, if something can be kept there: torch says so in many ways, some of them pages long."""
    try:
        return torch.zeros(1, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise Refused(f"--device {name} cannot be used here: {cause}; use --device cpu, or see penstock doctor") from error


class Learner:
    """Owns the weights, the optimiser and the normaliser; everybody else has copies."""

    def __init__(self, plan: LearnerPlan, slots: Slots, channel: Channel) -> None:
        self._plan, self._slots, self._channel = plan, slots, channel
        torch.set_num_threads(plan.compute.learner_threads)
        device = _usable_device(plan.compute.device)
        policy = build_policy(plan.spec, plan.model, plan.seed, plan.custom_model).to(device)
        self._algorithm = self._made_algorithm(policy)
        self._layout = self._algorithm.flat.layout
        self._normaliser = Normaliser(plan.spec, plan.model)
        self._statistics = self._normaliser.initial()
        if plan.initial_weights is not None:
            self._take_weights(Path(plan.initial_weights))
        self._normaliser.load(self._statistics)
        self.version = 0
        self.board = Board.create(num_weights=self._layout.size, num_statistics=self._normaliser.size, staleness=plan.staleness)
        self._digest = DigestChain(plan.settings_digest, full=plan.full_digest) if plan.pinned else None
        self._delays = Delays(plan.chaos.delay_ms)
        self.stopped = False

    def _made_algorithm(self, policy: Policy) -> Any:
        """Code of a person's own may be anything; what is no algorithm is refused before it is asked to train."""
        plan, found = self._plan, self._fitting_algorithm()
        arguments = policy, plan.settings, plan.seed
        try:
            inspect.signature(found).bind(*arguments)
        except (TypeError, ValueError) as error:
            what = f"it is not made of (policy, settings, seed): {error}"
            raise Refused(f"{plan.algorithm} is no algorithm: {what}; see docs/algorithms.md") from error
        made = found(*arguments)
        if missing := [name for name in ALGORITHM_MEMBERS if not hasattr(made, name)]:
            raise Refused(f"{plan.algorithm} is no algorithm: it has no {', '.join(missing)}; see docs/algorithms.md")
        return made

    def _fitting_algorithm(self) -> Any:
        """The algorithm's class. One of a person's own may say what it demands, and is held to it here."""
        plan = self._plan
        found = load_object(plan.algorithm)
        demands: Demands | None = getattr(found, "demands", None)
        if demands is not None:
            guarantee = Guarantee("overlap or sync" if plan.pinned else "async", plan.staleness, plan.pinned)
            check_fit(plan.algorithm, plan.settings.correction_name, demands, guarantee, experiment=plan.experiment)
        return found

    def open(self) -> None:
        """Publish version 0 and say so."""
        self._publish()
        digest = self._digest.extend({}, [self._weights, self._statistics]) if self._digest else None
        ready = Ready(self._layout.size, self._normaliser.size, digest)
        self._channel.send(ready, descriptors=[self.board.arena.fd])

    def handle(self, message: Anything) -> None:
        """Obey one message."""
        match message:
            case Train():
                self._train(message)
            case Save(state):
                self._save(state)
            case Stop():
                self.stopped = True
            case _:
                raise TypeError(f"a learner has no use for {message!r}")

    # ---------------------------------------------------------------- training

    def _train(self, message: Train) -> None:
        self._delays.maybe()
        start = time.perf_counter()
        places = [entry.slot for entry in message.slots]
        raw = {name: self._slots.gather(name, places) for name in FIELDS}
        observation = self._slots.gather("observation", places)
        staleness = self._staleness(message.version, message.slots, raw["valid"])
        behaviour = self._behaviour(message)
        batch = self._batch(message.version, raw, observation, behaviour)
        metrics = self._update(batch, message.progress)
        self._delays.maybe()
        self._merge_statistics(places, raw, observation)
        self.version = message.version + 1
        self._publish()
        digest = self._extend_digest(raw, observation)
        returns, lengths = self._finished_episodes(places, raw)
        while len(returns) > MAX_EPISODES:
            self._channel.send(Episodes(returns[:MAX_EPISODES], lengths[:MAX_EPISODES]))
            returns, lengths = returns[MAX_EPISODES:], lengths[MAX_EPISODES:]
        rows = int(np.count_nonzero(raw["valid"]))
        self._channel.send(
            Trained(
                version=self.version,
                rows=rows,
                masked_rows=raw["valid"].size - rows,
                samples=int(metrics["samples"]),
                updates=int(metrics["updates"]),
                staleness=staleness,
                episode_returns=returns,
                episode_lengths=lengths,
                metrics={name: value for name, value in metrics.items() if name not in REPORTED_APART},
                busy_s=time.perf_counter() - start,
                digest=digest,
                chaos_events=self._delays.take_events(),
            )
        )

    def _update(self, batch: Batch, progress: float) -> dict[str, float]:
        """The algorithm's turn. Thread count and denormals are set around it, as other components may share the process."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self._plan.compute.learner_threads)
        torch.set_flush_denormal(self._plan.compute.flush_denormal)
        try:
            metrics: dict[str, float] = self._algorithm.update(batch, progress)
            if not torch.isfinite(self._algorithm.flat.published).all():
                raise NonFinite(f"the weights of version {batch.version + 1} are not finite; lower learner.learning_rate")
        except NonFinite as error:
            raise NonFinite(f"{error}; the batch is kept in {self._keep(batch)}", details=error.details) from error
        finally:
            torch.set_flush_denormal(False)
            torch.set_num_threads(threads)
        return metrics

    def _keep(self, batch: Batch) -> Path:
        """A batch that broke the update, for inspection."""
        path = Path(self._plan.run_dir) / f"nonfinite-{batch.version}.npz"
        arrays = {field.name: getattr(batch, field.name) for field in fields(batch) if field.name != "version"}
        np.savez_compressed(path, **{name: array for name, array in arrays.items() if array is not None})
        return path

    def _behaviour(self, message: Train) -> Array | None:
        """For delayed gradients, under which all of a batch is of one version: its weights if that is not this one's. Its
        statistics scale the batch, too."""
        acted = message.slots[0].version
        if self._plan.settings.correction_name != "delayed" or acted == message.version:
            return None
        weights, statistics = np.empty_like(self._weights), np.empty_like(self._statistics)
        self.board.load(acted, weights, statistics)
        self._normaliser.load(statistics)
        return weights

    def _batch(self, version: int, raw: dict[str, Array], observation: Array, behaviour: Array | None) -> Batch:
        return Batch(
            version=version,
            observation=self._normaliser.normalised(observation),
            action=raw["action"],
            log_prob=raw["log_prob"],
            reward=self._normalised_rewards(raw["reward"]),
            value=raw["value"],
            terminated=raw["terminated"],
            truncated=raw["truncated"],
            valid=raw["valid"],
            behaviour=behaviour,
        )

    def _normalised_rewards(self, raw: Array) -> Array:
        scaled = np.empty(raw.shape, np.float32)
        self._normaliser.normalise_rewards(raw, scaled)
        return scaled

    def _merge_statistics(self, places: list[int], raw: dict[str, Array], observation: Array) -> None:
        """What was trained under the statistics of v enters those of v + 1, in block order."""
        if not self._normaliser.size:
            return
        accumulators = self._slots.gather("return_accumulator", places)
        done = raw["terminated"] | raw["truncated"]
        gamma = self._plan.settings.gamma
        segments = []
        for reward, ended, valid, start, seen in zip(raw["reward"], done, raw["valid"], accumulators, observation, strict=True):
            returns, _ = discounted_returns(reward, ended, valid, start, gamma)
            segments.append((seen, returns, valid))
        self._statistics = self._normaliser.merged(self._statistics, segments)
        self._normaliser.load(self._statistics)

    def _staleness(self, version: int, slots: Sequence[Slot], valid: Array) -> tuple[int, ...]:
        """Valid rows by age, from the versions written in the slots themselves."""
        ages: Counter[int] = Counter()
        for entry, rows in zip(slots, valid, strict=True):
            segment = self._slots[entry.slot]
            found = int(segment.segment), int(segment.version)
            if found != (entry.segment, entry.version):
                raise RunFailed(
                    f"slot {entry.slot} holds segment {found[0]} of version {found[1]}, not segment {entry.segment} of "
                    f"version {entry.version}; this is a bug in Penstock: please report it with journal.jsonl"
                )
            ages[version - found[1]] += int(np.count_nonzero(rows))
        return tuple(ages[age] for age in range(max(ages) + 1))

    def _finished_episodes(self, places: list[int], raw: dict[str, Array]) -> tuple[tuple[float, ...], tuple[int, ...]]:
        """Episodes whose last step is in this batch, in (block, step, lane) order; those that lost rows are left out."""
        done = raw["ended"] & raw["valid"]
        if not done.any():
            return (), ()
        returns = self._slots.gather("episode_return", places)[done]
        lengths = self._slots.gather("episode_length", places)[done]
        whole = np.isfinite(returns)
        return tuple(returns[whole].tolist()), tuple(lengths[whole].tolist())

    def _extend_digest(self, raw: dict[str, Array], observation: Array) -> str | None:
        if self._digest is None:
            return None
        batch = {**raw, "observation": observation}
        return self._digest.extend(batch, [self._weights, self._statistics])

    # ---------------------------------------------------------------- weights

    @property
    def _weights(self) -> Array:
        return np.asarray(self._algorithm.flat.published.detach().cpu().numpy())

    def _publish(self) -> None:
        self.board.publish(self.version, self._weights, self._statistics)

    def _save(self, state: dict[str, Any]) -> None:
        optimizer = {name: tensor.detach().cpu().numpy() for name, tensor in self._algorithm.state().items()}
        directory = Path(self._plan.run_dir) / "checkpoints"
        path = files.save(
            directory,
            self.version,
            {**self._layout.views(self._weights), STATISTICS: self._statistics},
            optimizer,
            {**state, "digest": self._digest.value if self._digest else None, "policy": self._plan.about_policy},
        )
        files.prune(directory, self._plan.checkpoint.keep)
        self._channel.send(Saved(self.version, str(path.relative_to(self._plan.run_dir))))

    def _take_weights(self, source: Path) -> None:
        """`--init-from`: another run's weights and statistics, not its optimiser."""
        stored = files.load(files.newest(source) if (source / "checkpoints").is_dir() else source)
        weights = self._weights.copy()
        for name, view in self._layout.views(weights).items():
            if name not in stored.model or stored.model[name].shape != view.shape:
                raise RunFailed(f"--init-from {source}: its model has no '{name}' of shape {view.shape}")
            view[...] = stored.model[name]
        with torch.no_grad():
            self._algorithm.flat.published.copy_(torch.from_numpy(weights))
        if stored.model[STATISTICS].shape != self._statistics.shape:
            raise RunFailed(f"--init-from {source}: its normalisation is not that of this run; set model.normalize_* alike")
        self._statistics = stored.model[STATISTICS].copy()
