"""Do the metrics measure the model or the benchmark? ARIA-Rubrics, section 4, "Dataset-independent analysis".

Two-way analysis of variance of the table [models, datasets] without replication, Kendall's W of the ranks of models
across datasets, ICC(2,1) of models across datasets.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from operators.analysis.cells import ALL_MEASURES, Cells
from operators.analysis.estimates import Line, estimate, percentile_interval, resample, share_interval
from operators.analysis.rank_intervals import BY_INVERSION, rank_interval
from operators.statistics import concordances, eta_squared, icc_2_1, icc_interval, kendalls_w

OVER_ITEMS = "percentile bootstrap, items drawn within each benchmark"
SHARES_OVER_ITEMS = f"{OVER_ITEMS}, moved by twice its bias"
W_OVER_ITEMS = f"{OVER_ITEMS}, {BY_INVERSION}"
OVER_MODELS = "percentile bootstrap, models drawn"
SHARES_OVER_MODELS = f"{OVER_MODELS}, moved by twice its bias"
F_INTERVAL = "F interval of McGraw and Wong (1996)"
Statistic = Callable[[np.ndarray], float]

# name -> value from [models, datasets]
STATISTICS: dict[str, Statistic] = {
    "eta_squared_model": lambda table: eta_squared(table).model,
    "eta_squared_dataset": lambda table: eta_squared(table).dataset,
    "eta_squared_residual": lambda table: eta_squared(table).residual,
    "kendalls_w": lambda table: kendalls_w(table.T),
    "icc_2_1": icc_2_1,
}


def consistency(cells: Cells, n_resamples: int, seed: int) -> Iterator[Line]:
    """Every statistic of every measure that two models or more have on two benchmarks or more.

    Intervals come from drawing items anew where the items are known, and else from drawing models; ICC's is that of its
    own F distribution. W over items takes noise into account (`rank_intervals`). W over models is a percentile interval as it
    is: drawn models repeat, as ties, and what W falls by that is little. Simulated (100 tables each of 2 or 3 benchmarks
    that agree in nothing to nearly all), it held the truth in 89 to 99% with 9 or 18 models; with 4 models, W is 1
    in up to 69% of tables, and then has none. p of the variance shares: the F tests of the analysis of variance.
    """
    for measure in ALL_MEASURES:
        table, kept = cells.complete(measure)
        if min(table.shape) < 2:
            continue
        left_out = len(cells.models) - len(kept)
        notes = [*cells.notes, *([f"{left_out} models lack a benchmark"] if left_out else [])]
        p_values = anova(table)
        redrawn = cells.redrawn(measure, n_resamples, seed)
        for name, statistic in STATISTICS.items():
            interval, method = _interval(name, statistic, table, redrawn, kept, n_resamples, seed)
            yield estimate(
                "consistency", measure, name, statistic(table), n=len(table), unit="models", method=method,
                n_clusters=cells.n_items(measure, kept) if method in (W_OVER_ITEMS, SHARES_OVER_ITEMS) else None,
                interval=interval, p=p_values.get(name, math.nan), notes=notes,
                versus=f"{table.shape[1]} benchmarks",
            )  # fmt: skip


def anova(table: np.ndarray) -> dict[str, float]:
    """p of model and of dataset in a two-way analysis of variance of [models, datasets]; {} where nothing varies."""
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    if np.ptp(table) == 0 or eta_squared(table).residual == 0:
        return {}
    model, dataset = np.indices(table.shape)
    frame = pd.DataFrame({"score": table.ravel(), "model": model.ravel(), "dataset": dataset.ravel()})
    p = anova_lm(ols("score ~ C(model) + C(dataset)", frame).fit())["PR(>F)"]
    return {"eta_squared_model": float(p["C(model)"]), "eta_squared_dataset": float(p["C(dataset)"])}


def _interval(
    name: str, statistic: Statistic, table: np.ndarray, redrawn: np.ndarray | None, kept: np.ndarray,
    n_resamples: int, seed: int,
) -> tuple[tuple[float, float], str]:  # fmt: skip
    if name == "icc_2_1":
        return icc_interval(table), F_INTERVAL
    if name == "kendalls_w" and redrawn is not None:
        return rank_interval(_w, table, redrawn[:, kept]), W_OVER_ITEMS
    if redrawn is not None:
        drawn = [_or_nan(statistic, one[kept]) for one in redrawn]
    else:
        models = [np.array([row]) for row in range(len(table))]
        drawn = resample(lambda rows: _or_nan(statistic, table[rows]), models, n_resamples, seed)
    if name == "kendalls_w":
        return percentile_interval(drawn), OVER_MODELS
    return share_interval(
        drawn, statistic(table)
    ), SHARES_OVER_MODELS if redrawn is None else SHARES_OVER_ITEMS


def _w(tables: np.ndarray) -> np.ndarray:
    """W of [..., models, benchmarks]."""
    return concordances(np.swapaxes(tables, -1, -2))


def _or_nan(statistic: Statistic, table: np.ndarray) -> float:
    """A resample may leave a model without any scored item."""
    return statistic(table) if np.isfinite(table).all() else math.nan
