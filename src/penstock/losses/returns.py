"""Advantages and returns over [T, lanes], computed where the data lies: in NumPy, before anything becomes a tensor.

All arrays share one shape, time first. `valid` is false on reset rows and on rows after a cut; those get 0. An episode
that was cut off (truncated, or a lane cut short) bootstraps from `v_tp1` of its last row; a terminated one never does.
Knows nothing of segments, tensors or policies.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]
Flags = npt.NDArray[np.bool_]


def generalized_advantages(
    reward: Floats,
    v_t: Floats,
    v_tp1: Floats,
    terminated: Flags,
    truncated: Flags,
    valid: Flags,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Generalized advantage estimation (Schulman et al. 2015, arXiv:1506.02438, equations 11, 12 and 16).

    delta_t = r_t + gamma (1 - terminated_t) V_{t+1} - V_t
    A_t     = delta_t + gamma lambda (1 - done_t) A_{t+1},    done = terminated or truncated, A = 0 where not valid
    """
    delta = np.where(valid, reward + gamma * np.where(terminated, 0, v_tp1) - v_t, 0).astype(v_t.dtype, copy=False)
    decay = np.where(valid & ~(terminated | truncated), gamma * gae_lambda, 0).astype(v_t.dtype, copy=False)
    advantage = np.empty_like(delta)
    carry = np.zeros_like(delta[0])
    for t in range(len(delta) - 1, -1, -1):
        np.multiply(decay[t], carry, out=carry)
        np.add(delta[t], carry, out=carry)
        advantage[t] = carry
    return advantage


def discounted_returns(
    reward: Floats, v_tp1: Floats, terminated: Flags, truncated: Flags, valid: Flags, gamma: float
) -> Floats:
    """The discounted sum of rewards to the end of what was seen, bootstrapped where the episode goes on unseen.

    G_t = r_t + gamma (1 - terminated_t) * (V_{t+1} where row t is truncated or the last valid one, else G_{t+1})

    Sutton and Barto 2018, equation 3.9; it equals V + A of `generalized_advantages` with lambda = 1.
    """
    returns = np.zeros_like(reward)
    goes_on = np.zeros_like(valid[0])  # is the next row a valid row of the same episode?
    following = np.zeros_like(reward[0])
    for t in range(len(reward) - 1, -1, -1):
        tail = np.where(goes_on & ~truncated[t], following, v_tp1[t])
        following = np.where(valid[t], reward[t] + gamma * np.where(terminated[t], 0, tail), 0)
        returns[t] = following
        goes_on = valid[t]
    return returns
