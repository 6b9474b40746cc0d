"""How much a metric depends on the backbone that computes it: ARIA-Rubrics, appendix B.5 (Tables 8 to 10).

The paper shows the mean of each model on each benchmark under every backbone and reads off that the ranking stays. *Our
reading* of what to report beside it: means are taken over the rows that every backbone could score (`n_common`), so that no
backbone is judged on other rows; agreement on the ranking of models is Kendall's W over the backbones and Spearman's rho of
each with the first, per benchmark; `rho_rows` is Spearman's rho over the single rows, which stays informative where there are
few models. The variance shares come from a two-way ANOVA without replication over [models, backbones] means: due to the
model (what one wants to measure), due to the backbone (a shift of scale that leaves ranks alone), and their interaction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.statistics import eta_squared, kendalls_w, t_interval


class Agreement(NamedTuple):
    """How far backbones agree on one benchmark; None where a statistic needs more models or some variance."""

    benchmark: str
    n_models: int
    kendalls_w: float | None
    spearman: tuple[float | None, ...]
    rho_rows: tuple[float | None, ...]
    from_model: float | None
    from_backbone: float | None
    interaction: float | None


MEANS = pa.schema(
    [
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("backbone", pa.string()),
        # `mean_low`, `mean_high`: Student's 95% interval over `n_items`; null for one item. `n_common` counts rows.
        *((name, pa.float64()) for name in ("mean", "mean_low", "mean_high")),
        *((name, pa.int64()) for name in ("n_items", "n_common")),
        ("n_scored", pa.int64()),
        ("n_failed", pa.int64()),
    ]
)


def means(rows: pa.Table, scores: Mapping[str, np.ndarray]) -> pa.Table:
    """MEANS: one row per model, benchmark and backbone, in the order of their names.

    rows: `model`, `benchmark`, `item_id`. scores: {backbone: [rows] value, NaN where it could not score}. Trials of an item
    are averaged first.
    """
    frame = rows.select(["model", "benchmark", "item_id"]).to_pandas()
    common = ~np.isnan(np.stack(list(scores.values()))).any(axis=0)
    found = []
    for (model, benchmark), places in sorted(frame.groupby(["model", "benchmark"]).indices.items()):
        for backbone, values in scores.items():
            mine = values[places]
            kept = places[common[places]]
            items = frame["item_id"].iloc[kept].to_numpy()
            by_item = [values[kept[items == item]].mean() for item in dict.fromkeys(items)]
            mean = float(np.mean(by_item)) if by_item else None
            n = int((~np.isnan(mine)).sum())
            ends = [_or_none(end) for end in t_interval(by_item)]
            found.append((model, benchmark, backbone, mean, *ends, len(by_item), len(kept), n, len(mine) - n))
    return pa.Table.from_pylist([dict(zip(MEANS.names, row, strict=True)) for row in found], schema=MEANS)


def agreement(rows: pa.Table, scores: Mapping[str, np.ndarray], table: pa.Table) -> list[Agreement]:
    """One row per benchmark; `table` as `means` gives it for the same rows and scores."""
    backbones, entries = list(scores), table.to_pylist()
    benchmark_of = np.array(rows["benchmark"].to_pylist(), dtype=object)
    found = []
    for benchmark in sorted({entry["benchmark"] for entry in entries}):
        mine = [entry for entry in entries if entry["benchmark"] == benchmark and entry["mean"] is not None]
        models = list(dict.fromkeys(entry["model"] for entry in mine))
        by_place = {(entry["model"], entry["backbone"]): entry["mean"] for entry in mine}
        grid = np.array([[by_place[model, one] for one in backbones] for model in models])
        here = benchmark_of == benchmark
        found.append(agreement_of(benchmark, grid, [values[here] for values in scores.values()]))
    return found


def agreement_of(benchmark: str, grid: np.ndarray, rows: list[np.ndarray]) -> Agreement:
    """grid: [models, backbones] means. rows: per backbone its row scores, NaN where it has none."""
    enough = grid.ndim == 2 and min(grid.shape) >= 2
    w = kendalls_w(grid.T) if enough else math.nan
    shares = eta_squared(grid) if enough else (math.nan,) * 3
    columns = grid.T if enough else []
    return Agreement(
        benchmark,
        len(grid),
        _or_none(w),
        tuple(spearman(columns[0], column) for column in columns),
        tuple(spearman(rows[0], row) for row in rows),
        *(_or_none(share) for share in shares),
    )


def spearman(a: np.ndarray, b: np.ndarray) -> float | None:
    """Spearman's rho of the pairs that have both values; None for fewer than three of them, or a constant side."""
    from scipy.stats import spearmanr

    both = ~(np.isnan(a) | np.isnan(b))
    if both.sum() < 3 or np.ptp(a[both]) == 0 or np.ptp(b[both]) == 0:
        return None
    return float(spearmanr(a[both], b[both]).statistic)


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else float(value)
