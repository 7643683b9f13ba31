"""Running statistics of observations and returns, and the scaling made of them. Knows no tensor library and no policy.

All statistics of a version are one flat float64 vector: for observations, then for discounted returns, each where its
normalisation is on: [count, mean..., sum of squared deviations...]. With both off the vector is empty and scaling is
identity. A version's vector never changes; `merged` makes the next one's.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from penstock.core.specs import Array, BoxSpec, CompositeSpec, EnvironmentSpec, Place
from penstock.models.features import columns_of
from penstock.models.settings import ModelSettings

FIRST_COUNT = 1e-4
"""Weight of the initial guess (mean 0, variance 1): gone with the first data, but no division by zero before."""
SMALLEST_VARIANCE = 1e-8


class Normaliser:
    """Scales with the statistics it was last given. Variances are those of a population."""

    def __init__(self, spec: EnvironmentSpec, settings: ModelSettings) -> None:
        settings.check_for(spec)
        self.settings = settings
        self._scaled: dict[str, tuple[Place, slice]] = {}  # leaves that are scaled, and their columns in the statistics
        columns = 0
        for place in normalised_places(spec) if settings.normalize_observation else ():
            self._scaled[place.name] = place, slice(columns, columns + columns_of(place.leaf))
            columns += columns_of(place.leaf)
        self._plain = not isinstance(spec.observation, CompositeSpec)
        observed = 1 + 2 * columns if columns else 0
        self._observation = slice(0, observed)
        self._returns = slice(observed, observed + (3 if settings.normalize_reward else 0))
        self.size = self._returns.stop
        self._mean = np.zeros(columns)
        self._scale = np.ones(columns)
        self._reward_scale = 1.0
        self._wide: dict[tuple[int, ...], Array] = {}

    def initial(self) -> Array:
        """The statistics before any data."""
        vector = np.zeros(self.size)
        for part in (self._observation, self._returns):
            moments = vector[part]
            if len(moments):
                moments[0] = FIRST_COUNT
                moments[1 + len(moments) // 2 :] = FIRST_COUNT
        return vector

    def load(self, statistics: Array) -> None:
        """Scale with these from now on."""
        if self._scaled:
            self._mean, variance = mean_and_variance(statistics[self._observation])
            self._scale = 1.0 / np.sqrt(variance + SMALLEST_VARIANCE)
        if self.settings.normalize_reward:
            _, variance = mean_and_variance(statistics[self._returns])
            self._reward_scale = float(1.0 / np.sqrt(variance[0] + SMALLEST_VARIANCE))

    def normalised(self, raw: Array) -> Array:
        """Rows of observations as a policy expects them: themselves where nothing is to be scaled."""
        if not self._scaled:
            return raw
        if self._plain:
            scaled = np.empty(raw.shape, np.float32)
            self.scale("", raw, scaled)
            return scaled
        result = raw.copy()
        for place, _ in self._scaled.values():
            self.scale(place.name, place.of(raw), place.of(result))
        return result

    def scale(self, name: str, raw: Array, out: Array) -> None:
        """The rows of the leaf of this name, scaled if it is one that is; `out` has their shape, or has them flat."""
        if name not in self._scaled:
            out[...] = raw if raw.shape == out.shape else raw.reshape(out.shape)
            return
        columns = self._scaled[name][1]
        mean, scale = self._mean[columns], self._scale[columns]
        rows = raw.reshape(-1, len(mean))
        wide = self._wide.get(rows.shape)
        if wide is None:
            self._wide = {rows.shape: (wide := np.empty(rows.shape))}
        np.subtract(rows, mean, out=wide)
        np.multiply(wide, scale, out=wide)
        limit = self.settings.clip_observation
        np.maximum(wide, -limit, out=wide)
        np.minimum(wide, limit, out=wide)
        out[...] = wide.reshape(out.shape)

    def normalise_rewards(self, raw: Array, out: Array) -> None:
        """Rewards are divided by the deviation of the discounted return; their mean, and so their sign, stays."""
        if self.settings.reward_sign:
            np.sign(raw, out=out)
            return
        if not self.settings.normalize_reward:
            out[...] = raw
            return
        limit = self.settings.clip_reward
        out[...] = np.clip(raw * self._reward_scale, -limit, limit)

    def merged(self, statistics: Array, segments: Iterable[tuple[Array, Array, Array]]) -> Array:
        """These statistics and a batch's, merged in the order given (block order), valid rows only.

        A segment is (observation [T or T+1, B, ...] raw, discounted returns [T, B], valid [T, B]).
        """
        result = statistics.copy()
        for observation, returns, valid in segments:
            if self._scaled:
                merge_rows(result[self._observation], self._columns(observation[: len(valid)][valid]))
            if self.settings.normalize_reward:
                merge_rows(result[self._returns], returns[valid].reshape(-1, 1))
        return result

    def _columns(self, rows: Array) -> Array:
        """What of these rows is counted, [rows, columns]."""
        leaves = [place.of(rows).reshape(len(rows), columns_of(place.leaf)) for place, _ in self._scaled.values()]
        return leaves[0] if len(leaves) == 1 else np.concatenate(leaves, axis=1, dtype=np.float64)


def normalised_places(spec: EnvironmentSpec) -> tuple[Place, ...]:
    """Leaves whose numbers mean amounts: a Box that is no image; beside other parts, one of floats."""
    boxes = [(place, place.leaf) for place in spec.seen_places if isinstance(place.leaf, BoxSpec)]
    alone = not isinstance(spec.observation, CompositeSpec)
    return tuple(place for place, box in boxes if (alone or box.dtype == "float32") and not box.is_image)


def mean_and_variance(moments: Array) -> tuple[Array, Array]:
    """Of [count, mean..., sum of squared deviations...]."""
    columns = len(moments) // 2
    return moments[1 : 1 + columns].copy(), moments[1 + columns :] / moments[0]


def merge_rows(moments: Array, rows: Array) -> None:
    """Merge rows [n, columns] in place (Chan, Golub and LeVeque 1979, equations 2.1), in float64.

    mean' = mean + d n / (c + n),  M2' = M2 + m2 + d^2 c n / (c + n),  d = the rows' mean - mean, c the count before
    """
    added = len(rows)
    if not added:
        return
    rows = rows.astype(np.float64, copy=False)
    columns = len(moments) // 2
    count, mean, squares = moments[0], moments[1 : 1 + columns], moments[1 + columns :]
    row_mean = rows.mean(0)
    difference = row_mean - mean
    squares += ((rows - row_mean) ** 2).sum(0) + difference**2 * (count * added / (count + added))
    mean += difference * (added / (count + added))
    moments[0] = count + added


def discounted_returns(reward: Array, done: Array, valid: Array, start: Array, gamma: float) -> tuple[Array, Array]:
    """Each lane's discounted sum of rewards so far, R_t = gamma (1 - done_{t-1}) R_{t-1} + r_t, and what goes on from it.

    `start` [B] is what the previous segment handed on: (1 - done) R of its last valid row, 0 at first. Returns
    [T, B] float64, 0 on rows that are not valid, and the [B] to hand on to the lane's next segment.
    """
    carry = start.astype(np.float64)
    returns = np.zeros(reward.shape)
    for t in range(len(reward)):
        following = gamma * carry + reward[t]
        returns[t] = np.where(valid[t], following, 0.0)
        carry = np.where(valid[t], np.where(done[t], 0.0, following), carry)
    return returns, carry
