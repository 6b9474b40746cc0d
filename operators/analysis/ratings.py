"""Human ratings of chains: how raters agree, and how far the metrics rank chains as people do (ARIA-Rubrics, Table 5).

A table of ratings has one line per rater and chain: item_id, model, benchmark, trial, rater, group, rating (1 to 5;
empty: not rated), annotated_at. A chain is one item's of one benchmark, by one model, in one trial.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from operators.analysis.cells import SHORT, values_of
from operators.analysis.correlations import clustered_rank_correlation, item_labels, ranks_method, spearman
from operators.analysis.estimates import (
    MODELS_REPEAT,
    Line,
    estimate,
    percentile_interval,
    resample,
    rows_by_label,
)
from operators.columns import RowError, find_columns, missing_columns, number_of, real_of, text_of
from operators.tables import Row, TableError

COLUMNS = {
    "item_id": ("id", "question_id"),
    "model": ("system", "model_name"),
    "rater": ("annotator", "rater_id"),
    "rating": ("score",),
    "group": ("rater_group",),
    "benchmark": ("dataset",),
    "trial": (),
}
NAMES = ("item_id", "model", "rater", "group", "benchmark")
EXAMPLE = "item_id,model,benchmark,trial,rater,group,rating\nq1,my-model,MMAR,0,ann,1,4"
GROUPS = {"m1+m6": ("m1", "m6"), "m2+m3": ("m2", "m3"), "m4+m5": ("m4", "m5")}  # Table 5
ALPHA_METHOD = "percentile bootstrap, items drawn with all ratings of their chains"


class Chain(NamedTuple):
    """What was rated, as far as the table says: any benchmark where it is "", the first trial with ARIA where None."""

    item_id: str
    model: str
    benchmark: str = ""
    trial: int | None = None


class Rating(NamedTuple):
    """One rater's word on one chain; NaN: not rated. A table may leave out `benchmark` ("") and `trial` (None)."""

    item_id: str
    model: str
    rater: str
    group: str
    rating: float
    benchmark: str = ""
    trial: int | None = None

    @property
    def chain(self) -> Chain:
        return Chain(self.item_id, self.model, self.benchmark, self.trial)


def read_ratings(file: str, rows: Sequence[Row]) -> list[Rating]:
    """The ratings of a file. Raises TableError naming file and row; a rater who rates a chain twice is refused."""
    parts = find_columns(file, rows, COLUMNS, {}, "ratings")
    missing = [part for part in ("item_id", "model", "rater", "rating") if part not in parts]
    if missing:
        raise missing_columns(file, rows, COLUMNS, missing, "ratings", EXAMPLE)
    found: dict[tuple[Chain, str], Rating] = {}
    for row in rows:
        try:
            cells = {part: row.get(name) for part, name in parts.items()}
            names = {part: text_of(cells.get(part, ""), part).strip() for part in NAMES}
            trial = number_of(cells["trial"], "trial") if text_of(cells.get("trial", ""), "trial") else None
            one = Rating(**names, rating=real_of(cells["rating"], "rating"), trial=trial)
        except RowError as error:
            raise TableError(f"{file}, {row.place}: {error}") from None
        if found.setdefault((one.chain, one.rater), one) is not one:
            raise TableError(
                f"{file}, {row.place}: rater {one.rater!r} rates {one.model!r} on {one.item_id!r} twice"
            )
    return list(found.values())


def rater_agreement(ratings: Sequence[Rating], n_resamples: int, seed: int) -> Iterator[Line]:
    """Krippendorff's alpha of all raters, and of each group, with missing ratings left missing.

    *Our reading*: the paper does not name the level of measurement; a five-point scale is ordinal. The interval level
    is reported beside it.
    """
    groups = sorted({one.group for one in ratings})
    for group in [None, *(groups if len(groups) > 1 else [])]:
        kept = [one for one in ratings if group in (None, one.group)]
        matrix, items = reliability(kept)
        clusters = rows_by_label(items)
        for level in ("ordinal", "interval"):
            drawn = resample(lambda at, m=matrix, lv=level: alpha(m[:, at], lv), clusters, n_resamples, seed)
            yield estimate(
                "raters", "rating", f"krippendorff_alpha_{level}", alpha(matrix, level), n=matrix.shape[1],
                unit="chains", n_clusters=len(clusters), method=ALPHA_METHOD, interval=percentile_interval(drawn),
                versus="all raters" if group is None else f"group {group}",
                notes=[f"{len(matrix)} raters, {int(np.isfinite(matrix).sum())} ratings"],
            )  # fmt: skip


def reliability(ratings: Sequence[Rating]) -> tuple[np.ndarray, list[tuple[str, str]]]:
    """Ratings [raters, chains], NaN for none, and the benchmark and item of each chain."""
    raters = list(dict.fromkeys(one.rater for one in ratings))
    chains = list(dict.fromkeys(one.chain for one in ratings))
    matrix = np.full((len(raters), len(chains)), np.nan)
    places = [{name: at for at, name in enumerate(names)} for names in (raters, chains)]
    for one in ratings:
        matrix[places[0][one.rater], places[1][one.chain]] = one.rating
    return matrix, [(chain.benchmark, chain.item_id) for chain in chains]


def alpha(matrix: np.ndarray, level: str = "ordinal") -> float:
    """Krippendorff's alpha of [raters, chains] (NaN: not rated); NaN where no two ratings of a chain can be compared or
    all are equal."""
    import krippendorff

    pairable = matrix[:, np.isfinite(matrix).sum(axis=0) > 1]
    if pairable.size == 0 or np.nanmin(pairable) == np.nanmax(pairable):
        return math.nan
    return float(krippendorff.alpha(reliability_data=matrix, level_of_measurement=level))


def human_correlation(
    rows: pa.Table, ratings: Sequence[Rating], n_resamples: int, seed: int
) -> Iterator[Line]:
    """Spearman's rho of every metric, of the groups of Table 5 and of ARIA with the mean rating.

    Over chains (items drawn for the interval), and over the means of models by benchmark, whose p is the paper's: with
    its 9 models on 2 benchmarks, eight of Table 5's ten p values are those of n = 18.
    """
    rated = rated_rows(rows, mean_ratings(ratings))
    if not np.isfinite(rated).any():
        raise TableError(
            "no rated chain is in the run: item_id and model of the ratings must be those of the run"
        )
    names = rows["model"].to_pylist()
    cells = rows_by_label(list(zip(names, rows["benchmark"].to_pylist(), strict=True)))
    for name, values in scores_by_group(rows).items():
        yield clustered_rank_correlation(
            "human", name, "mean rating", values, rated, item_labels(rows), n_resamples, seed
        )
        both = [at[np.isfinite(values[at]) & np.isfinite(rated[at])] for at in cells]
        both = [at for at in both if len(at)]
        pairs = np.array([(values[at].mean(), rated[at].mean()) for at in both]).reshape(-1, 2)
        n_models = len({names[at[0]] for at in both})
        rho, interval, p = spearman(*pairs.T)
        yield estimate(
            "human", name, "spearman_rho", rho, n=len(pairs), unit="models on a benchmark", n_clusters=n_models,
            clusters_are="models", method=ranks_method(len(pairs), rho), interval=interval, p=p, versus="mean rating",
            notes=[MODELS_REPEAT] if n_models < len(pairs) else [],
        )  # fmt: skip


def rated_rows(rows: pa.Table, human: Mapping[Chain, float]) -> np.ndarray:
    """The mean rating of each row, NaN for none.

    *Our reading* of ratings that name no trial: people rated the item's first chain that has an ARIA, which is the one
    that `pipelines.annotate` draws. Raises TableError where a rating that names no benchmark may be of either of two.
    """
    rated = np.full(rows.num_rows, np.nan)
    columns = [rows[name].to_pylist() for name in ("item_id", "model", "benchmark", "trial")]
    met: dict[Chain, tuple[str, int]] = {}
    for place in np.argsort(~np.isfinite(values_of(rows, "aria")), kind="stable"):
        item, model, benchmark, trial = (column[place] for column in columns)
        spoken = [Chain(item, model, b, t) for b in (benchmark, "") for t in (trial, None)]
        for chain in (chain for chain in spoken if chain in human):
            first = met.setdefault(chain, (benchmark, int(place)))
            if first[0] != benchmark:
                told = f"{item!r} is an item of {first[0]} and of {benchmark}"
                raise TableError(f"{told}, and ratings do not say of which: give them a column benchmark")
            if first[1] == place and np.isnan(rated[place]):
                rated[place] = human[chain]
    return rated


def scores_by_group(rows: pa.Table) -> dict[str, np.ndarray]:
    """Every measure and group of Table 5 per row: a group's score is the mean of its two metrics."""
    metrics = {short: values_of(rows, SHORT[short]) for short in SHORT}
    grouped = {name: (metrics[a] + metrics[b]) / 2 for name, (a, b) in GROUPS.items()}
    aria = {"aria": metrics.pop("aria")}
    return metrics | grouped | aria


def mean_ratings(ratings: Sequence[Rating]) -> Mapping[Chain, float]:
    """{chain: mean of its ratings}, chains without any left out."""
    found: dict[Chain, list[float]] = {}
    for one in ratings:
        if math.isfinite(one.rating):
            found.setdefault(one.chain, []).append(one.rating)
    return {chain: float(np.mean(values)) for chain, values in found.items()}
