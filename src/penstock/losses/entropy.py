"""The entropy term. Knows no distribution: rows of entropy in, one number out."""

from __future__ import annotations

from torch import Tensor


def entropy_loss(entropy: Tensor) -> Tensor:
    """Negative mean entropy, to be minimised (Williams and Peng 1991; S of equation 9 in arXiv:1707.06347).

    L = -mean(H(pi(.|s)))
    """
    return entropy.mean().neg()
