"""How metrics go together, and how their ranks of models go with those of judges, human raters and other backbones.

ARIA-Rubrics, section 4: "Component's metrics' correlation" (Figure 4), Table 2 (LLM judges), Table 5 (human raters),
Tables 8 to 10 (backbones).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from statistics import NormalDist

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from operators.analysis.cells import Cells, values_of
from operators.analysis.estimates import (
    LEVEL,
    MODELS_REPEAT,
    Line,
    estimate,
    percentile_interval,
    resample,
    rows_by_label,
    two_sided,
)
from operators.schema import METRICS

FISHER = "Fisher z"
FIELLER = "Fisher z with Fieller's variance; p of scipy.stats.kendalltau"
EXACT_BELOW = 10  # pairs: 9! = 362,880 orders take half a second
_PERFECT = 1 - 1e-12
OVER_ITEMS = "percentile bootstrap, items drawn with all chains about them"


def pearson(x: np.ndarray, y: np.ndarray) -> tuple[float, tuple[float, float], float]:
    """Pearson's r of [n] and [n], its 95% interval and p; NaN for fewer than 3 pairs or a constant side.

    A perfect r has neither interval nor p: Fisher's z and Student's t are infinite there, which says nothing of few pairs.
    """
    from scipy.stats import pearsonr

    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan, (math.nan, math.nan), math.nan
    found = pearsonr(x, y)
    if abs(found.statistic) > _PERFECT:
        return float(found.statistic), (math.nan, math.nan), math.nan
    interval = found.confidence_interval() if len(x) > 3 else (math.nan, math.nan)
    return float(found.statistic), (float(interval[0]), float(interval[1])), float(found.pvalue)


def spearman(x: ArrayLike, y: ArrayLike) -> tuple[float, tuple[float, float], float]:
    """Spearman's rho, that is Pearson's r of ranks (ties share their mean rank), with interval as `pearson`, and p.

    p of fewer than 10 pairs, or of a perfect rho, counts the orders that agree as far (the permutation test that
    scipy.stats.spearmanr recommends for few pairs); p of others is Student's t, as the paper's.
    """
    from scipy.special import gammaln
    from scipy.stats import rankdata

    a, b = rankdata(x), rankdata(y)
    rho, interval, p = pearson(a, b)
    if math.isfinite(rho) and len(a) < EXACT_BELOW:
        p = _p_over_all_orders(a, b)
    elif abs(rho) > _PERFECT:
        ties = np.unique(a, return_counts=True)[1]  # 2 t1! t2! ... / n!
        p = 2 * math.exp(gammaln(ties + 1).sum() - gammaln(len(a) + 1))
    return rho, interval, p


def _p_over_all_orders(a: np.ndarray, b: np.ndarray) -> float:
    """Two-sided p of rho of the ranks [n] and [n]: twice the share of the n! pairings with a rho as high, or as low."""
    from scipy.stats import permutation_test

    def agreement(pairing: np.ndarray, axis: int) -> np.ndarray:
        return (pairing * b).sum(axis=axis)  # rho of given ranks rises with it alone

    found = permutation_test((a,), agreement, permutation_type="pairings", n_resamples=math.inf, batch=50_000)
    return float(found.pvalue)


def ranks_method(n: int, rho: float) -> str:
    """How interval and p of a `spearman` of n pairs were made."""
    exact = n < EXACT_BELOW or abs(rho) > _PERFECT
    return "Fisher z of ranks; p " + ("over all orders" if exact else "of Student's t")


def metric_correlations(cells: Cells, rows: pa.Table | None, n_resamples: int, seed: int) -> Iterator[Line]:
    """Pearson's r of every pair of metrics over models (their means over benchmarks), over models on single benchmarks,
    and, where rows are given, over chains."""
    whose = np.arange(len(cells.models))
    units = [
        ("models", whose, lambda m: np.where(np.isfinite(cells.means[m]).all(1), cells.means[m].mean(1), np.nan))
    ]  # fmt: skip
    if len(cells.datasets) > 1:
        repeated = np.repeat(whose, len(cells.datasets))
        units.append(("models on a benchmark", repeated, lambda m: cells.means[m].ravel()))
    for one, other in combinations(METRICS, 2):
        for unit, of, values in units:
            x, y = values(one), values(other)
            both = np.isfinite(x) & np.isfinite(y)
            r, interval, p = pearson(x[both], y[both])
            n, n_models = int(both.sum()), len(set(of[both].tolist()))
            yield estimate(
                "metrics", one, "pearson_r", r, n=n, unit=unit, n_clusters=n_models, clusters_are="models", method=FISHER,
                interval=interval, p=p, versus=other, notes=[*cells.notes, *([MODELS_REPEAT] if n_models < n else [])],
            )  # fmt: skip
        if rows is not None:
            yield over_chains(rows, one, other, n_resamples, seed)


def over_chains(rows: pa.Table, one: str, other: str, n_resamples: int, seed: int) -> Line:
    """r over single chains: sums of x, y and their products by item, so that items can be drawn with all their chains."""
    x, y = values_of(rows, one), values_of(rows, other)
    both = np.isfinite(x) & np.isfinite(y)
    items = rows_by_label([label for label, kept in zip(item_labels(rows), both, strict=True) if kept])
    terms = np.stack(
        [np.ones(both.sum()), x[both], y[both], x[both] ** 2, y[both] ** 2, x[both] * y[both]], axis=1
    )
    n, drawn = len(terms), np.array([])
    r = pearson(x[both], y[both])[0]
    if len(items) > 1:
        sums = np.stack([terms[at].sum(axis=0) for at in items])
        weights = np.random.default_rng(seed).multinomial(
            len(items), np.full(len(items), 1 / len(items)), n_resamples
        )
        drawn = _r_of_sums(weights @ sums)
    return estimate(
        "metrics", one, "pearson_r", r, n=n, unit="chains", n_clusters=len(items), method=OVER_ITEMS,
        interval=percentile_interval(drawn), p=two_sided(drawn) if len(drawn) else math.nan, versus=other,
    )  # fmt: skip


def _r_of_sums(sums: np.ndarray) -> np.ndarray:
    n, x, y, xx, yy, xy = sums.T
    with np.errstate(invalid="ignore", divide="ignore"):
        return (n * xy - x * y) / np.sqrt((n * xx - x**2) * (n * yy - y**2))


def rank_agreement(
    analysis: str, measure: str, versus: str, x: ArrayLike, y: ArrayLike, unit: str, notes: Sequence[str] = ()
) -> Iterator[Line]:
    """Spearman's rho and Kendall's tau-b of two scores of the same models; pairs that lack one are left out."""
    from scipy.stats import kendalltau

    a, b = _paired(np.asarray(x, dtype=float), np.asarray(y, dtype=float))
    rho, interval, p = spearman(a, b)
    yield estimate(
        analysis, measure, "spearman_rho", rho, n=len(a), unit=unit, method=ranks_method(len(a), rho), interval=interval, p=p,
        versus=versus, notes=notes,
    )  # fmt: skip
    tau = kendalltau(a, b) if math.isfinite(rho) else None
    value, p = (float(tau.statistic), float(tau.pvalue)) if tau else (math.nan, math.nan)
    yield estimate(
        analysis, measure, "kendall_tau_b", value, n=len(a), unit=unit, method=FIELLER,
        interval=tau_interval(value, len(a)), p=p, versus=versus, notes=notes,
    )  # fmt: skip


def tau_interval(tau: float, n: int) -> tuple[float, float]:
    """95% interval of Kendall's tau of n pairs: Fisher's z with the variance 0.437 / (n - 4) of Fieller et al. (1957).

    (nan, nan) for fewer than 5 pairs or a tau of -1 or 1.
    """
    if n < 5 or not abs(tau) < _PERFECT:
        return math.nan, math.nan
    half = NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(0.437 / (n - 4))
    return math.tanh(math.atanh(tau) - half), math.tanh(math.atanh(tau) + half)


def clustered_rank_correlation(
    analysis: str,
    measure: str,
    versus: str,
    x: np.ndarray,
    y: np.ndarray,
    items: Sequence,
    n_resamples: int,
    seed: int,
) -> Line:
    """Spearman's rho over chains, with interval and p from drawing items."""
    both = np.isfinite(x) & np.isfinite(y)
    a, b = x[both], y[both]
    clusters = rows_by_label([label for label, kept in zip(items, both, strict=True) if kept])
    rho, drawn = spearman(a, b)[0], np.array([])
    if len(clusters) > 1 and math.isfinite(rho):
        drawn = resample(lambda rows: spearman_only(a[rows], b[rows]), clusters, n_resamples, seed)
    return estimate(
        analysis, measure, "spearman_rho", rho, n=len(a), unit="chains", n_clusters=len(clusters), method=OVER_ITEMS,
        interval=percentile_interval(drawn), p=two_sided(drawn) if len(drawn) else math.nan, versus=versus,
    )  # fmt: skip


def spearman_only(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rho without interval and p, for resamples; NaN where a side is constant."""
    from scipy.stats import rankdata

    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def item_labels(rows: pa.Table) -> list[tuple[str, str]]:
    """What the chains of one item share: benchmark and item id."""
    return list(zip(rows["benchmark"].to_pylist(), rows["item_id"].to_pylist(), strict=True))


def _paired(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    both = np.isfinite(x) & np.isfinite(y)
    return x[both], y[both]
