"""Statistics of a comparison: intervals of a proportion."""

from __future__ import annotations

import math


def wilson_interval(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of a proportion k / n, inside [0, 1]; (nan, nan) where n is 0."""
    if n == 0:
        return math.nan, math.nan
    from scipy.stats import binomtest

    interval = binomtest(int(k), int(n)).proportion_ci(level, method="wilson")
    return float(interval.low), float(interval.high)
