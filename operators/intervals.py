"""Intervals of shares and of means, in closed form.

MUGEN Table 2 (Wald intervals); counterfactual audits, appendix D.1 (Wilson intervals). Pure functions of numbers; a NaN among
the inputs is refused with a ValueError, since leaving observations out is a decision of the caller. Where there is no interval
(no observations, no variance) its ends are NaN, without a warning, so that one empty group does not end a report.

Ours are those that no library we may depend on gives: Wald's interval with the paper's z; Wilson's for means of shares,
which are no counts (scipy and statsmodels have that of counts: the tests compare), and with it Newcombe's of a difference
(likewise) and of a mean.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike

from operators.moments import Moments

ROUNDING = 1e-12  # relative to values, or to 1 for scores near 0


def wald_interval(k: int, n: int, z: float = 1.96) -> tuple[float, float]:
    """p -+ z * sqrt(p (1 - p) / n) for p = k / n, the interval of MUGEN Table 2; (nan, nan) where n is 0.

    Not clipped to [0, 1]: half its width is the number that the paper prints, also for p near 0. It has no
    width at all for p = 0 or 1, which is why `wilson_interval` is what this project reports by itself.
    *Our reading*: z is 1.96 and not the longer 1.959964, since only so do 79 of the table's 80 half widths
    come out to the printed digit (the last one was taken from an accuracy already rounded).
    """
    _check_counts(k, n)
    if n == 0:
        return math.nan, math.nan
    p = k / n
    half = z * math.sqrt(p * (1 - p) / n)
    return p - half, p + half


def wilson_interval(k: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval of k / n (uncorrected), inside [0, 1]; (nan, nan) where n is 0."""
    _check_counts(k, n)
    return wilson_interval_of_mean(k / n if n else math.nan, n, level)


def wilson_interval_of_mean(mean: float, n: float, level: float = 0.95) -> tuple[float, float]:
    """Wilson score interval around the `mean` of n independent values in [0, 1]; (nan, nan) where n is 0.

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), for values of 0 and 1 the interval of a
    proportion. Values between them vary less: the variance of one in [0, 1] with mean p is at most p (1 - p).
    So for shares (how many of an item's trials were right) the interval errs on the wide side, however closely
    the trials of an item depend on one another. Raises ValueError for a mean outside [0, 1].
    """
    if n == 0:
        return math.nan, math.nan
    if not 0 <= mean <= 1:
        raise ValueError(f"the mean of values in [0, 1] lies in [0, 1], got {mean}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = mean + z * z / (2 * n)
    half = z * math.sqrt(mean * (1 - mean) / n + (z / (2 * n)) ** 2)
    low, high = ((centre + side * half) / (1 + z * z / n) for side in (-1, 1))
    # What rounding would leave of 0 and 1 at the ends.
    return (low if mean > 0 else 0.0), (high if mean < 1 else 1.0)


def wilson_interval_of_clusters(
    right: Sequence[float], clusters: Sequence[Hashable], level: float = 0.95
) -> tuple[float, float]:
    """Wilson score interval of the mean of `right` [n] (0 and 1, or shares between them), where values of one cluster (the
    trials of a question) depend on one another; (nan, nan) for none.

    n is that of clusters, less where their sizes s differ (Kish 1965): (sum s)^2 / sum s^2. That is right if the values
    of a cluster are all alike, and on the wide side otherwise; clusters of one value give `wilson_interval`.
    """
    sizes = np.array(list(Counter(clusters).values()), dtype=np.float64)
    if len(right) != sizes.sum():
        raise ValueError(f"{len(right)} values for {len(clusters)} labels")
    if not len(right):
        return math.nan, math.nan
    return wilson_interval_of_mean(
        min(1.0, sum(right) / len(right)), float(sizes.sum() ** 2 / (sizes**2).sum()), level
    )


def newcombe_interval(
    first: tuple[float, float, float], second: tuple[float, float, float]
) -> tuple[float, float]:
    """Interval of the difference second - first of two independent shares, each given as (share, low, high) with its own
    interval (Newcombe 1998, method 10, where these are Wilson's).

    d - sqrt((p2 - l2)^2 + (u1 - p1)^2) to d + sqrt((u2 - p2)^2 + (p1 - l1)^2) for d = p2 - p1; NaN where a share is.
    """
    (p1, low1, high1), (p2, low2, high2) = first, second
    difference = p2 - p1
    return difference - math.hypot(p2 - low2, high1 - p1), difference + math.hypot(high2 - p2, p1 - low1)


def interval_of_mean(parts: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Interval of the mean of independent estimates, each given as (value, low, high) with its own interval (Zou and Donner
    2008, which for a difference of two is `newcombe_interval`).

    mean - sqrt(sum (v - l)^2) / k to mean + sqrt(sum (h - v)^2) / k for k estimates; NaN where an end is, or for none.
    """
    if not parts:
        return math.nan, math.nan
    values, lows, highs = np.array(parts, dtype=np.float64).T
    mean, k = float(values.mean()), len(parts)
    below, above = (float(np.sqrt((part**2).sum())) / k for part in (values - lows, highs - values))
    return mean - below, mean + above


def no_interval(n: int, unit: str = "item") -> str:
    """Why there is no Student's or bootstrap interval of a mean over n independent `unit`s: the reason of a table's row."""
    if n < 2:
        return f"too_few: {n or 'no'} {unit}"
    return f"no_spread: all {n} {unit}s are alike"


def t_interval(
    values: ArrayLike, level: float = 0.95, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """Student's t interval of the mean of independent values; (nan, nan) for fewer than two, and where all are alike.

    It is cut at `bounds`, between which all values lie by nature, and so their mean: the interval holds the mean exactly as
    often as the whole one.
    """
    of = Moments.of(finite(np.asarray(values, dtype=np.float64), "values"))
    return t_interval_of_moments(of, level, bounds)


def t_interval_of_moments(
    of: Moments, level: float = 0.95, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """The same for values of which only number, mean and spread are known."""
    from scipy.stats import t

    if of.n < 2 or of.sd <= ROUNDING * max(1.0, abs(of.mean)):
        return math.nan, math.nan
    half = float(t.ppf((1 + level) / 2, of.n - 1)) * of.sd / math.sqrt(of.n)
    return max(of.mean - half, bounds[0]), min(of.mean + half, bounds[1])


def _check_counts(k: int, n: int) -> None:
    if n < 0 or not 0 <= k <= n or k != int(k) or n != int(n):
        raise ValueError(f"expected whole numbers 0 <= k <= n, got k={k} of n={n}")


def finite(array: np.ndarray, name: str) -> np.ndarray:
    bad = array.size - np.count_nonzero(np.isfinite(array))
    if bad:
        raise ValueError(
            f"{name} holds {bad} values that are not finite; leave those cases out, and count them, first"
        )
    return array
