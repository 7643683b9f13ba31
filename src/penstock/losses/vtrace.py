"""V-trace over [T, lanes], in NumPy where the data lies. Arrays as in `returns`: time first, `valid` false on other rows.

Knows nothing of segments, tensors or policies.
"""

from __future__ import annotations

import numpy as np

from penstock.losses.returns import Flags, Floats


def vtrace(
    reward: Floats,
    v_t: Floats,
    v_tp1: Floats,
    log_rho: Floats,
    terminated: Flags,
    truncated: Flags,
    valid: Flags,
    gamma: float,
    gae_lambda: float,
    rho_bar: float,
    c_bar: float,
) -> tuple[Floats, Floats]:
    """Advantages and value targets of V-trace (Espeholt et al. 2018, arXiv:1802.01561, equation 1 and section 4.2).

    rho_t   = min(rho_bar, pi(a_t|s_t) / mu(a_t|s_t)),    c_t = lambda min(c_bar, pi / mu)
    delta_t = rho_t (r_t + gamma (1 - terminated_t) V_{t+1} - V_t)
    E_t     = delta_t + gamma c_t (1 - done_t) E_{t+1},      E = 0 where not valid;      v_t = V_t + E_t
    A_t     = rho_t (r_t + gamma (1 - terminated_t) (V_{t+1} + lambda (1 - done_t) E_{t+1}) - V_t)

    With pi = mu this is generalized advantage estimation: A_t = E_t. `log_rho` is log pi - log mu of the action taken.
    """
    ratio = np.exp(np.where(valid, log_rho, 0.0))
    rho, c = np.minimum(ratio, rho_bar), gae_lambda * np.minimum(ratio, c_bar)
    goes_on = np.where(valid & ~(terminated | truncated), gamma, 0.0)
    delta = np.where(valid, reward + gamma * np.where(terminated, 0.0, v_tp1) - v_t, 0.0)
    excess, advantage = np.zeros_like(v_t), np.zeros_like(v_t)
    carry = np.zeros_like(v_t[0])
    for t in range(len(v_t) - 1, -1, -1):
        advantage[t] = rho[t] * (delta[t] + goes_on[t] * gae_lambda * carry)
        carry = rho[t] * delta[t] + goes_on[t] * c[t] * carry
        excess[t] = carry
    return advantage, v_t + excess
