"""Statistics of the three papers: intervals of proportions, paired comparisons, agreement between benchmarks.

MUGEN Table 2 (Wald intervals); counterfactual audits, appendix D.1 (Wilson intervals, paired bootstrap over
items); ARIA-Rubrics section 4, "Dataset-independent analysis" and "Component's metrics' correlation" (two-way
ANOVA, Kendall's W, ICC(2,1), Pearson correlations). All are pure functions of numbers; a NaN among the inputs
is refused with a ValueError, since leaving observations out is a decision of the caller. Where a statistic
does not exist (no observations, no variance) the result is NaN, without a warning, so that one empty group
does not end a report.

Ours are those that no library we may depend on gives: Wald's interval with the paper's z; Wilson's for means of shares,
which are no counts (scipy and statsmodels have that of counts: the tests compare), and with it Newcombe's of a difference
(likewise) and of a mean; Kendall's W; ICC(2,1) and its interval (pingouin has them, under the GPL, and rounds: the tests compare); the
variance shares of a table, which are resampled thousands of times (statsmodels tests and confirms them, one table at a
time). The bootstrap is scipy's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from operators.moments import Moments

ROUNDING = 1e-12  # relative to values, or to 1 for scores near 0


class PairedDifference(NamedTuple):
    """Mean of a - b, its percentile interval and two-sided p-value (NaN where no resample differs from another), number of
    pairs and of clusters."""

    difference: float
    low: float
    high: float
    p: float
    n: int
    n_clusters: int


class VarianceShares(NamedTuple):
    """Shares of the total sum of squares; they add up to 1."""

    model: float
    dataset: float
    residual: float


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


def t_interval(
    values: ArrayLike, level: float = 0.95, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> tuple[float, float]:
    """Student's t interval of the mean of independent values; (nan, nan) for fewer than two, and where all are alike.

    It is cut at `bounds`, between which all values lie by nature, and so their mean: the interval holds the mean exactly as
    often as the whole one.
    """
    of = Moments.of(_finite(np.asarray(values, dtype=np.float64), "values"))
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


def paired_bootstrap(
    a: ArrayLike,
    b: ArrayLike,
    cluster: Sequence[Hashable] | np.ndarray | None = None,
    *,
    n_resamples: int = 10_000,
    level: float = 0.95,
    seed: int = 0,
) -> PairedDifference:
    """Mean difference of paired values (scores, or 0/1 for right and wrong), bootstrapped.

    a, b: [n], row i of both about the same case. `cluster`: [n] labels; rows of one cluster (the two branches
    of a counterfactual item, the trials of a question) are drawn together, and a resample's mean is weighted
    by their number. *Our reading* of the p-value, which the papers do not define: twice the smaller share of
    resamples on one side of zero (ties count on both), with one added to numerator and denominator so that it
    is never 0; at most 1. Where resamples have the same mean, as for differences that are all alike, interval and p
    are NaN: what does not vary says nothing of how far it could.

    Raises ValueError for other lengths, NaN, or fewer than two clusters.
    """
    from scipy.stats import bootstrap

    difference = _vector(a, "a") - _vector(b, "b", len(np.asarray(a)))
    labels = np.arange(len(difference)) if cluster is None else _codes(cluster, len(difference))
    sizes = np.bincount(labels)
    if len(sizes) < 2:
        raise ValueError(f"a bootstrap needs at least 2 clusters to draw from, got {len(sizes)}")
    result = bootstrap(
        (np.bincount(labels, weights=difference), sizes.astype(float)),
        lambda total, size, axis: total.sum(axis=axis) / size.sum(axis=axis),
        n_resamples=n_resamples,
        batch=max(1, 2_000_000 // len(sizes)),
        paired=True,
        vectorized=True,
        confidence_level=level,
        method="percentile",
        rng=np.random.default_rng(seed),
    )
    drawn = result.bootstrap_distribution
    low, high = (float(bound) for bound in result.confidence_interval)
    if alike([low, high]):
        return PairedDifference(float(difference.mean()), *[math.nan] * 3, len(difference), len(sizes))
    tail = min(np.count_nonzero(drawn <= 0), np.count_nonzero(drawn >= 0))
    p = min(1.0, 2 * (tail + 1) / (n_resamples + 1))
    return PairedDifference(float(difference.mean()), low, high, p, len(difference), len(sizes))


def alike(values: ArrayLike) -> bool:
    """Whether values differ by no more than what rounding leaves (of none, too): then they have no spread to go by."""
    found = np.asarray(values, dtype=np.float64)
    return not found.size or bool(np.ptp(found) <= ROUNDING * max(1.0, float(np.abs(found).max())))


def kendalls_w(scores: ArrayLike) -> float:
    """Kendall's coefficient of concordance in [0, 1], corrected for ties.

    scores: [raters, items], at least 2 x 2; only their order within a rater matters. For m raters, n items
    and rank sums R: W = 12 * sum (R - mean R)^2 / (m^2 (n^3 - n) - m * sum over groups of t equal values (t^3
    - t)). NaN where every rater ties all items.
    """
    from scipy.stats import rankdata

    scores = _matrix(scores, "scores [raters, items]")
    m, n = scores.shape
    ranks = rankdata(scores, axis=1).sum(axis=0)
    ties = sum(float((t**3 - t).sum()) for t in (np.unique(row, return_counts=True)[1] for row in scores))
    return _ratio(12 * float(((ranks - ranks.mean()) ** 2).sum()), m**2 * (n**3 - n) - m * ties)


def icc_2_1(scores: ArrayLike) -> float:
    """Intraclass correlation ICC(2,1): two-way random effects, absolute agreement, a single rater. At most 1.

    scores: [items, raters], at least 2 x 2 (in ARIA-Rubrics: [models, benchmarks]). With the mean squares of
    rows, columns and error: (MSR - MSE) / (MSR + (k - 1) MSE + k (MSC - MSE) / n). NaN where all scores are
    equal.
    """
    scores = _matrix(scores, "scores [items, raters]")
    n, k = scores.shape
    rows, columns, error = _sums_of_squares(scores)
    msr, msc, mse = rows / (n - 1), columns / (k - 1), error / ((n - 1) * (k - 1))
    return _ratio(msr - mse, msr + (k - 1) * mse + k * (msc - mse) / n)


def icc_interval(scores: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Interval of `icc_2_1` from the F distribution (McGraw and Wong, 1996, Table 7, case 2A), not clipped at -1.

    (nan, nan) where the ICC is, and where F has no finite value: nothing but items varies, or items do not differ at all,
    which leaves the F distribution no degrees of freedom.
    """
    from scipy.stats import f

    scores = _matrix(scores, "scores [items, raters]")
    n, k = scores.shape
    rows, columns, error = _sums_of_squares(scores)
    msr, msc, mse = rows / (n - 1), columns / (k - 1), error / ((n - 1) * (k - 1))
    if mse <= 1e-12 * (msr + msc) or msr <= 1e-12 * (msc + mse):
        return math.nan, math.nan
    icc = icc_2_1(scores)
    a, b = k * icc / (n * (1 - icc)), 1 + k * icc * (n - 1) / (n * (1 - icc))
    free = (a * msc + b * mse) ** 2 / ((a * msc) ** 2 / (k - 1) + (b * mse) ** 2 / ((n - 1) * (k - 1)))
    lower, upper = (float(f.ppf((1 + level) / 2, *pair)) for pair in ((n - 1, free), (free, n - 1)))
    if not (math.isfinite(lower) and math.isfinite(upper)):
        return math.nan, math.nan
    rest = k * msc + (k * n - k - n) * mse
    low = n * (msr - lower * mse) / (lower * rest + n * msr)
    high = n * (upper * msr - mse) / (rest + n * upper * msr)
    return float(low), float(high)


def eta_squared(table: ArrayLike) -> VarianceShares:
    """Two-way ANOVA without replication: the shares of variance due to model, to dataset, and to neither.

    table: [models, datasets] of mean scores, at least 2 x 2. NaN where all entries are equal.
    """
    parts = _sums_of_squares(_matrix(table, "table [models, datasets]"))
    return VarianceShares(*(_ratio(part, sum(parts)) for part in parts))


def pearson_matrix(columns: ArrayLike) -> np.ndarray:
    """Pearson correlations [k, k] between the columns of [observations, k]; NaN against a constant column."""
    columns = _matrix(columns, "columns [observations, variables]")
    # What would be left of a constant column after centring is rounding error, not variance.
    return np.corrcoef(np.where(np.ptp(columns, axis=0) == 0, np.nan, columns), rowvar=False)


def _sums_of_squares(table: np.ndarray) -> tuple[float, float, float]:
    """Between rows, between columns, and the remainder."""
    n, k = table.shape
    if np.ptp(table) == 0:
        return 0.0, 0.0, 0.0
    by_row = table.mean(axis=1, keepdims=True) - table.mean()
    by_column = table.mean(axis=0, keepdims=True) - table.mean()
    rest = table - table.mean() - by_row - by_column
    return k * float((by_row**2).sum()), n * float((by_column**2).sum()), float((rest**2).sum())


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _check_counts(k: int, n: int) -> None:
    if n < 0 or not 0 <= k <= n or k != int(k) or n != int(n):
        raise ValueError(f"expected whole numbers 0 <= k <= n, got k={k} of n={n}")


def _codes(cluster: Sequence[Hashable] | np.ndarray, n: int) -> np.ndarray:
    """Labels of any hashable type as 0, 1, ... by first appearance, so that a seed fixes the result."""
    if len(cluster) != n:
        raise ValueError(f"{len(cluster)} cluster labels for {n} pairs")
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in cluster], dtype=np.int64)


def _vector(values: ArrayLike, name: str, length: int | None = None) -> np.ndarray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or (length is not None and len(vector) != length):
        raise ValueError(
            f"{name} has shape {vector.shape}; expected one value per pair, as many in b as in a"
        )
    return _finite(vector, name)


def _matrix(values: ArrayLike, name: str) -> np.ndarray:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or min(matrix.shape) < 2:
        raise ValueError(f"{name} has shape {matrix.shape}; expected two dimensions of at least 2")
    return _finite(matrix, name)


def _finite(array: np.ndarray, name: str) -> np.ndarray:
    bad = array.size - np.count_nonzero(np.isfinite(array))
    if bad:
        raise ValueError(
            f"{name} holds {bad} values that are not finite; leave those cases out, and count them, first"
        )
    return array
