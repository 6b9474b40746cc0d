"""One form for every estimate of an analysis: a value, its interval and how that was made, and what it rests on.

One rule holds for intervals here and in `statistics`: what does not vary has none. Where all resamples of a statistic, or
all values of a mean, are alike, a bootstrap or Student's interval would have no width and claim a certainty that few
or coarse values cannot give; so the ends, and a p from the same resamples, are NaN (null in tables), and the note says so.
Shares of right answers have Wilson's interval instead, which has a width where all are right, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from operators.statistics import alike

# `n` counts `unit`s; `n_clusters` the independent ones among them (items, where several chains are about one; models,
# where one stands there once per benchmark); `note`
# says what a reader must know before believing the line.
ESTIMATES = pa.schema(
    [(name, pa.string()) for name in ("analysis", "measure", "versus", "statistic")]
    + [(name, pa.float64()) for name in ("estimate", "low", "high", "p")]
    + [("n", pa.int64()), ("unit", pa.string()), ("n_clusters", pa.int64())]
    + [("method", pa.string()), ("note", pa.string())]
)
LEVEL = 0.95
MODELS_REPEAT = (
    "a model stands there once per benchmark, and interval and p take its benchmarks as independent"
)
FEW = 20
COUNT = "count"  # the method of what is counted, not estimated: it has no interval
Line = dict[str, Any]


def estimate(
    analysis: str,
    measure: str,
    statistic: str,
    value: float,
    *,
    n: int,
    unit: str,
    method: str,
    interval: tuple[float, float] = (math.nan, math.nan),
    p: float = math.nan,
    versus: str | None = None,
    n_clusters: int | None = None,
    clusters_are: str = "items",
    notes: Iterable[str] = (),
) -> Line:
    """One line of ESTIMATES. A value that does not exist is null; few independent units are said in the note, and where
    an estimate has no interval. One unit has none: drawn again and again it stays what it is."""
    clusters = n if n_clusters is None else n_clusters
    if clusters < 2:
        interval, p = (math.nan, math.nan), math.nan
    about = unit if n_clusters is None else clusters_are
    told = [*notes, *filter(None, [few(clusters, about)])]
    if math.isfinite(value) and not math.isfinite(interval[0]) and method != COUNT:
        told.append(
            "no interval: the method gives none for so few values, for values or resamples that do not vary, or for a perfect agreement"
        )
    numbers = {"estimate": value, "low": interval[0], "high": interval[1], "p": p}
    return {
        "analysis": analysis,
        "measure": measure,
        "versus": versus,
        "statistic": statistic,
        **{name: float(number) if math.isfinite(number) else None for name, number in numbers.items()},
        "n": int(n),
        "unit": unit,
        "n_clusters": int(clusters),
        "method": method,
        "note": "; ".join(told) or None,
    }


def few(n: int, unit: str = "items") -> str | None:
    """What to say of an estimate that rests on so few independent units; None where they are enough."""
    return f"few {unit} ({n}): the interval is rough" if n < FEW else None


def as_table(lines: Sequence[Line]) -> pa.Table:
    """Lines as one table in the schema ESTIMATES."""
    return pa.Table.from_pylist(list(lines), schema=ESTIMATES)


def percentile_interval(drawn: ArrayLike) -> tuple[float, float]:
    """The middle 95% of what a statistic was over resamples; (nan, nan) where a tenth of them has no value, and where they do
    not vary."""
    values = np.asarray(drawn, dtype=np.float64)
    finite = values[np.isfinite(values)]
    if len(values) == 0 or len(finite) < 0.9 * len(values):
        return math.nan, math.nan
    low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return _with_width(float(low), float(high))


def share_interval(drawn: ArrayLike, share: float) -> tuple[float, float]:
    """`moved_interval` of a share of variance in [0, 1].

    Unmoved, the interval of a share of nothing never reaches 0. In simulations of 2 to 9 models and 31 to 200 items, with
    shares of model from 0 to 0.88, it held the truth in 87 to 100% of 300 tables, the unmoved one in 0 to 97%.
    """
    return moved_interval(drawn, share, (0.0, 1.0))


def moved_interval(drawn: ArrayLike, value: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """`percentile_interval` of a statistic's resamples, moved by twice their bias, inside `bounds`, around `value`.

    A value holds the noise of its items, and a resample that of the draw besides: where noise pushes one way, the mean of
    the resamples lies as far beyond the value as the value beyond what it estimates (Efron and Tibshirani 1993, chapter 10).
    """
    values = np.asarray(drawn, dtype=np.float64)
    low, high = percentile_interval(values)
    if math.isnan(low):
        return low, high
    moved = 2 * (float(values[np.isfinite(values)].mean()) - value)
    return _with_width(max(bounds[0], min(low - moved, value)), min(bounds[1], max(high - moved, value)))


def _with_width(low: float, high: float) -> tuple[float, float]:
    return (math.nan, math.nan) if alike([low, high]) else (low, high)


def two_sided(drawn: ArrayLike) -> float:
    """Twice the smaller share of resamples on one side of zero, as `statistics.paired_bootstrap` counts it; NaN where they do
    not vary."""
    values = np.asarray(drawn, dtype=np.float64)
    values = values[np.isfinite(values)]
    if alike(values):
        return math.nan
    tail = min(np.count_nonzero(values <= 0), np.count_nonzero(values >= 0))
    return min(1.0, 2 * (tail + 1) / (len(values) + 1))


def resample(
    statistic: Callable[[np.ndarray], float], clusters: Sequence[np.ndarray], n_resamples: int, seed: int
) -> np.ndarray:
    """`statistic(rows)` [n_resamples] for rows of clusters drawn with replacement; `clusters`: the rows of each."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(clusters), size=(n_resamples, len(clusters)))
    return np.array([statistic(np.concatenate([clusters[one] for one in draw])) for draw in drawn])


def rows_by_label(labels: Sequence[Any]) -> list[np.ndarray]:
    """The rows that carry each label, labels by first appearance."""
    found: dict[Any, list[int]] = {}
    for row, label in enumerate(labels):
        found.setdefault(label, []).append(row)
    return [np.array(rows, dtype=np.int64) for rows in found.values()]
