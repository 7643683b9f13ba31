"""IMPALA's learner (Espeholt et al. 2018, arXiv:1802.01561): A2C's step, with V-trace for data of older policies.

One optimiser step a batch. Where the paper sums over the batch, losses here are means, so that learning rates do not depend
on its size. Knows no environment and no actor.
"""

from __future__ import annotations

from penstock.algorithms.a2c import A2C
from penstock.algorithms.batch import Batch
from penstock.algorithms.rows import Rows, generalized_estimate, read_again, select_valid, vtrace_estimate


class IMPALA(A2C):
    """Turns batches into new weights."""

    def rows(self, batch: Batch) -> Rows:
        """The batch's data in the eyes of the policy as it is now: v_s of equation 1, and rho_s (r_s + gamma v_{s+1} - V(x_s))
        of section 4.2 for advantage."""
        settings = self.settings
        if settings.correction_name == "none":
            return select_valid(batch, generalized_estimate(batch, settings.gamma, settings.gae_lambda))
        now = read_again(self.policy, batch)
        bars = {"rho_bar": settings.rho_bar, "c_bar": settings.c_bar}
        traced = vtrace_estimate(batch, now, settings.gamma, settings.gae_lambda, **bars)
        return select_valid(batch, traced, value=now.value[:, :-1])
