"""How much a metric depends on the backbone that computes it: ARIA-Rubrics, appendix B.5 (Tables 8 to 10).

The paper shows the mean of each model on each benchmark under every backbone and reads off that the ranking stays. *Our
reading* of what to report beside it: means are taken over the rows that every backbone could score (`n_common`), so that no
backbone is judged on other rows; agreement on the ranking of models is Kendall's W over the backbones and Spearman's rho of
each with the first, per benchmark; Spearman's rho over the single rows stays informative where there are few models. The
variance shares come from a two-way ANOVA without replication over [models, backbones] means: due to the model (what one
wants to measure), due to the backbone (a shift of scale that leaves ranks alone), and their interaction. Intervals come
from drawing items, each with all that every model and backbone has of it: they are about these models and these
backbones, which were chosen and not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from operators.analysis.cells import Items
from operators.analysis.correlations import clustered_rank_correlation, spearman_only
from operators.analysis.estimates import ESTIMATES, FEW, Line, estimate, share_interval
from operators.analysis.rank_intervals import BY_INVERSION, rank_correlations, rank_interval
from operators.intervals import no_interval, t_interval
from operators.statistics import concordances, eta_squared, kendalls_w

N_RESAMPLES = 1000
OVER_ITEMS = "percentile bootstrap, items drawn with all models and backbones"
SHARES = ("share_model", "share_backbone", "share_interaction")
ALL = "all backbones"
# One estimate of one benchmark. `versus`: the backbone that is compared with the first, or ALL.
AGREEMENT = pa.schema([pa.field("benchmark", pa.string()), *ESTIMATES])
MEANS = pa.schema(
    [
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("backbone", pa.string()),
        # `mean_low`, `mean_high`: Student's 95% interval over `n_items`, cut at 0 and 1; null where `interval_reason` says why.
        # `n_common` counts rows.
        *((name, pa.float64()) for name in ("mean", "mean_low", "mean_high")),
        ("interval_reason", pa.string()),
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
            items = np.unique(frame["item_id"].iloc[kept].to_numpy(), return_inverse=True)[1]
            by_item = np.bincount(items, values[kept]) / np.bincount(items)
            mean = float(by_item.mean()) if len(by_item) else None
            n = int((~np.isnan(mine)).sum())
            ends = [None if math.isnan(end) else end for end in t_interval(by_item, bounds=(0, 1))]
            why = no_interval(len(by_item)) if ends[0] is None else None
            counts = (len(by_item), len(kept), n, len(mine) - n)
            found.append((model, benchmark, backbone, mean, *ends, why, *counts))
    return pa.Table.from_pylist([dict(zip(MEANS.names, row, strict=True)) for row in found], schema=MEANS)


def agreement(
    rows: pa.Table,
    scores: Mapping[str, np.ndarray],
    metric: str,
    n_resamples: int = N_RESAMPLES,
    seed: int = 0,
) -> pa.Table:
    """AGREEMENT of rows and scores as `means` takes them: W, rho over models, rho over rows, shares of variance.

    What does not exist is null, and so is an interval; `note` says why.
    """
    frame = rows.select(["model", "benchmark", "item_id"]).to_pandas()
    found: list[Line] = []
    for benchmark, places in sorted(frame.groupby("benchmark").indices.items()):
        models, items = (frame[name].iloc[places].tolist() for name in ("model", "item_id"))
        here = {backbone: values[places] for backbone, values in scores.items()}
        lines = [
            *over_models(metric, models, items, here, n_resamples, seed),
            *over_rows(metric, items, here, n_resamples, seed),
        ]
        found += [{"benchmark": benchmark, **line} for line in lines]
    return pa.Table.from_pylist(found, schema=AGREEMENT)


def over_models(
    metric: str,
    models: Sequence[str],
    items: Sequence[str],
    scores: Mapping[str, np.ndarray],
    n_resamples: int,
    seed: int,
) -> Iterator[Line]:
    """The statistics of [models, backbones] means, each with what its resamples say and why it has none."""
    cells = _common(models, items, np.stack(list(scores.values()), axis=-1))
    n_items, n_models = cells[0].sums.shape
    grid = _grid(cells, np.ones(n_items))
    values, drawn = of_grid(grid), np.empty((0, *grid.shape))
    if n_items > 1 and n_models > 1:
        rng, even = np.random.default_rng(seed), np.full(n_items, 1 / n_items)
        drawn = np.array([_grid(cells, rng.multinomial(n_items, even)) for _ in range(n_resamples)])
    ends = _intervals(values, grid, drawn)
    others = list(scores)[1:]
    named = [*((name, ALL) for name in ("kendalls_w", *SHARES)), *(("spearman_rho", one) for one in others)]
    for (name, versus), value, interval in zip(named, values, ends, strict=True):
        yield estimate(
            "ablation", metric, name, value, n=n_models, unit="models", n_clusters=n_items,
            method=f"{OVER_ITEMS}, {'moved by twice its bias' if name in SHARES else BY_INVERSION}",
            interval=interval, versus=versus, notes=_why(name, value, n_models, n_items),
        )  # fmt: skip


def _intervals(values: np.ndarray, grid: np.ndarray, drawn: np.ndarray) -> list[tuple[float, float]]:
    """Of every value of `of_grid`, from grids [n_resamples, models, backbones]; those of ranks as `rank_intervals` says."""
    if not len(drawn) or np.isnan(values[0]):
        return [(math.nan, math.nan)] * len(values)
    shares = np.array([eta_squared(one) if np.isfinite(one).all() else [np.nan] * 3 for one in drawn])
    found = [rank_interval(_w, grid, drawn)]
    found += [
        share_interval(draws, value)
        for draws, value in zip(shares.T, values[1 : 1 + len(SHARES)], strict=True)
    ]
    pairs = ([0, other] for other in range(1, grid.shape[1]))
    ranks = [rank_interval(rank_correlations, grid[:, pair], drawn[..., pair]) for pair in pairs]
    known = np.isfinite(values[1 + len(SHARES) :])
    return found + [one if there else (math.nan, math.nan) for one, there in zip(ranks, known, strict=True)]


def _w(grids: np.ndarray) -> np.ndarray:
    """W of [..., models, backbones]."""
    return concordances(np.swapaxes(grids, -1, -2))


def of_grid(grid: np.ndarray) -> np.ndarray:
    """Of means [models, backbones]: W, the shares of model, backbone and both, rho of every backbone with the first.

    NaN where a statistic needs more models (rho three), or a spread that the means do not have.
    """
    n_models, n_backbones = grid.shape
    if n_models < 2 or not np.isfinite(grid).all():
        return np.full(len(SHARES) + n_backbones, np.nan)
    rhos = [spearman_only(grid[:, 0], column) if n_models > 2 else math.nan for column in grid.T[1:]]
    return np.array([kendalls_w(grid.T), *eta_squared(grid), *rhos])


def over_rows(
    metric: str, items: Sequence[str], scores: Mapping[str, np.ndarray], n_resamples: int, seed: int
) -> Iterator[Line]:
    """Spearman's rho of every backbone with the first over the rows that both scored, items drawn with all their rows."""
    first, *others = scores
    for other in others:
        a, b = scores[first], scores[other]
        line = clustered_rank_correlation("ablation", metric, other, a, b, items, n_resamples, seed)
        if line["estimate"] is None:
            line["note"] = "; ".join(
                ["no value: few rows, or scores that do not vary", line["note"] or ""]
            ).strip("; ")
        yield line


def _common(models: Sequence[str], items: Sequence[str], values: np.ndarray) -> list[Items]:
    """Per backbone what its means are means of: of the rows [rows, backbones] that every backbone scored."""
    kept = np.flatnonzero(~np.isnan(values).any(axis=1))
    at = [np.unique([names[place] for place in kept], return_inverse=True)[1] for names in (items, models)]
    shape = tuple(len(set(codes.tolist())) for codes in at)
    sums, counts = np.zeros((values.shape[1], *shape)), np.zeros(shape)
    np.add.at(counts, tuple(at), 1.0)
    for place, total in enumerate(sums):
        np.add.at(total, tuple(at), values[kept, place])
    return [Items(total, counts) for total in sums]


def _grid(cells: Sequence[Items], weights: np.ndarray) -> np.ndarray:
    """Means [models, backbones], every item counted as often as `weights` says."""
    return np.stack([one.means(weights) for one in cells], axis=-1)


def _why(name: str, value: float, n_models: int, n_items: int) -> list[str]:
    """What a reader must know of a statistic of so few models, and why one is not there."""
    if math.isnan(value):
        least = 3 if name == "spearman_rho" else 2
        lacking = n_models < least
        return [
            f"no value: {f'{n_models} of {least} models it needs' if lacking else 'means that do not vary'}"
        ]
    few = [f"few models ({n_models})"] if n_models < FEW else []
    return few + (["one item cannot be drawn anew"] if n_items < 2 else [])
