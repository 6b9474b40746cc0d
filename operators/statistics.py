"""Statistics of the three papers: paired comparisons, agreement between benchmarks, shares of variance.

Counterfactual audits, appendix D.1 (paired bootstrap over items); ARIA-Rubrics section 4, "Dataset-independent analysis" and
"Component's metrics' correlation" (two-way ANOVA, Kendall's W, ICC(2,1), Pearson correlations). All are pure functions of
numbers; a NaN among the inputs is refused with a ValueError, since leaving observations out is a decision of the caller.
Where a statistic does not exist (no observations, no variance) the result is NaN, without a warning, so that one empty group
does not end a report. Intervals of shares and means are in operators.intervals; the papers' two are found here as well.

Ours are those that no library we may depend on gives: Kendall's W; ICC(2,1) and its interval (pingouin has them, under the
GPL, and rounds: the tests compare); the variance shares of a table, which are resampled thousands of times (statsmodels tests
and confirms them, one table at a time). The bootstrap is scipy's.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from operators.intervals import ROUNDING, finite
from operators.intervals import wald_interval as wald_interval
from operators.intervals import wilson_interval as wilson_interval


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
    return float(concordances(_matrix(scores, "scores [raters, items]")))


def concordances(scores: np.ndarray) -> np.ndarray:
    """`kendalls_w` of many tables [..., raters, items] at once, as resamples need it; NaN where a value is not finite.

    The sum over ties is that by which squared ranks fall short of those of 1 to n: n (n + 1) (2n + 1) / 6 - sum (t^3 - t) / 12.
    """
    from scipy.stats import rankdata

    m, n = scores.shape[-2:]
    ranks = rankdata(scores, axis=-1)
    sums = ranks.sum(axis=-2)
    ties = 2 * m * n * (n + 1) * (2 * n + 1) - 12 * (ranks**2).sum(axis=(-2, -1))
    whole = m**2 * (n**3 - n) - m * ties
    with np.errstate(invalid="ignore", divide="ignore"):
        w = 12 * ((sums - sums.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1) / whole
    return np.where(np.isfinite(scores).all(axis=(-2, -1)) & (whole > 0.5), w, np.nan)


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
    return finite(vector, name)


def _matrix(values: ArrayLike, name: str) -> np.ndarray:
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim != 2 or min(matrix.shape) < 2:
        raise ValueError(f"{name} has shape {matrix.shape}; expected two dimensions of at least 2")
    return finite(matrix, name)
