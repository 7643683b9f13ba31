"""Student's t, for confidence intervals of few measurements. Knows nothing of what was measured."""

from __future__ import annotations

# fmt: off
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)
# fmt: on
"""Student's t at 0.975 for 1 to 30 degrees of freedom."""


def student_t(degrees: int) -> float:
    """Student's t at 0.975; past the table the first term of its expansion, which is right to 1e-3 there."""
    return _T_975[degrees - 1] if degrees <= len(_T_975) else 1.96 + 2.372 / degrees
