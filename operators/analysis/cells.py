"""Mean scores by model and benchmark: the table [models, datasets] that ARIA-Rubrics, section 4, takes apart.

The cells come from the rows of runs, and can then be drawn anew item by item, or from a summary in the shape of the
paper's Table 1 that knows means alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregate import MEASURES
from operators.columns import RowError, find_columns, missing_columns, real_of, text_of
from operators.schema import METRICS
from operators.tables import Row, TableError

SHORT = {f"m{number}": metric for number, metric in enumerate(METRICS, start=1)} | {"aria": "aria"}
ALL_MEASURES = (*MEASURES, "accuracy")
COLUMNS: dict[str, tuple[str, ...]] = {
    "model": ("system", "model_name"),
    "benchmark": ("dataset", "data_set"),
    **{short: (name, f"{name}_mean", f"{short}_mean") for short, name in SHORT.items()},
    "accuracy": ("acc", "acc(%)"),
}
EXAMPLE = "A summary has one line per model and benchmark:\nmodel,benchmark,m1,m2,m3,m4,m5,m6,accuracy\nmy-model,MMAR,0.37,0.71,0.78,0.75,0.43,0.42,67.6%"


@dataclass(frozen=True)
class Items:
    """Per item of one benchmark and model the sum of a measure over its scored trials, and their number [items, models].

    Only items that some model has the measure of: others say nothing about it, drawn or not.
    """

    sums: np.ndarray
    counts: np.ndarray

    def means(self, weights: np.ndarray) -> np.ndarray:
        """Mean of item means by model [..., models], each item counted as often as `weights` [..., items] says."""
        with np.errstate(invalid="ignore"):
            each = np.where(self.counts > 0, self.sums / self.counts, 0.0)
            return (weights @ each) / (weights @ (self.counts > 0))


@dataclass(frozen=True)
class Cells:
    """Means [models, datasets] per measure; `items`[measure] holds what they are means of, where that is known."""

    models: tuple[str, ...]
    datasets: tuple[str, ...]
    means: Mapping[str, np.ndarray]
    items: Mapping[str, tuple[Items, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def complete(self, measure: str) -> tuple[np.ndarray, np.ndarray]:
        """The table without models that lack a cell, and which models it holds."""
        table = self.means[measure]
        kept = np.isfinite(table).all(axis=1)
        return table[kept], np.flatnonzero(kept)

    def redrawn(self, measure: str, n_resamples: int, seed: int) -> np.ndarray | None:
        """Tables [n_resamples, models, datasets] from items drawn with replacement within each benchmark; None where
        the items are not known, or there is but one of a benchmark, which drawn again and again stays what it is."""
        if measure not in self.items or min(len(items.sums) for items in self.items[measure]) < 2:
            return None
        rng = np.random.default_rng(seed)
        columns = []
        for items in self.items[measure]:
            n = len(items.sums)
            weights = rng.multinomial(n, np.full(n, 1 / n), size=n_resamples)
            columns.append(items.means(weights))
        return np.stack(columns, axis=-1)

    def n_items(self, measure: str, models: np.ndarray | Sequence[int]) -> int:
        """How many items are scored for `measure` in a model of `models` (places) or more; 0 where that is not known."""
        return sum(int((one.counts[:, models] > 0).any(axis=1).sum()) for one in self.items.get(measure, ()))


def cells_of_rows(rows: pa.Table) -> Cells:
    """Cells from scored rows (`model`, `benchmark`, `item_id`, `correct`, MEASURES), one per item, model and trial.

    As in `aggregate.summarise`: an item's trials are averaged first, nulls are left out of means.
    """
    models = tuple(sorted(set(rows["model"].to_pylist())))
    datasets = tuple(sorted(set(rows["benchmark"].to_pylist())))
    parts = [rows.filter(pc.equal(rows["benchmark"], name)) for name in datasets]
    items = {m: tuple(_items(part, m, models) for part in parts) for m in ALL_MEASURES}
    means = {
        measure: np.stack([one.means(np.ones(len(one.sums))) for one in found], axis=-1)
        for measure, found in items.items()
    }
    return Cells(models, datasets, means, items)


def values_of(rows: pa.Table, measure: str) -> np.ndarray:
    """A measure as floats, NaN for null; accuracy is 0 or 1."""
    column = rows["correct" if measure == "accuracy" else measure]
    return pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)


def _items(rows: pa.Table, measure: str, models: Sequence[str]) -> Items:
    """Sums and counts of a measure by item and model, in one benchmark."""
    names = {name: place for place, name in enumerate(dict.fromkeys(rows["item_id"].to_pylist()))}
    places = {name: place for place, name in enumerate(models)}
    at = (
        np.array([names[name] for name in rows["item_id"].to_pylist()], dtype=np.int64),
        np.array([places[name] for name in rows["model"].to_pylist()], dtype=np.int64),
    )
    values = values_of(rows, measure)
    scored = np.isfinite(values)
    sums, counts = np.zeros((2, len(names), len(models)))
    np.add.at(sums, at, np.where(scored, values, 0.0))
    np.add.at(counts, at, scored.astype(float))
    known = (counts > 0).any(axis=1)
    return Items(sums[known], counts[known])


def cells_of_summary(file: str, rows: Sequence[Row]) -> Cells:
    """Cells from a user's summary: one line per model and benchmark with columns as in COLUMNS.

    Our own summary.parquet is one too. ARIA is the mean of the six where the file has no column for it. Raises
    TableError naming file and row.
    """
    rows = [row for row in rows if row.get("group_kind") in (None, "overall")]
    parts = find_columns(file, rows, COLUMNS, {}, "table")
    missing = [part for part in ("model", "benchmark", *list(SHORT)[:6]) if part not in parts]
    if missing:
        raise missing_columns(file, rows, COLUMNS, missing, "table", EXAMPLE)
    found: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        key = tuple(_name(file, row, parts[part], part) for part in ("model", "benchmark"))
        if key in found:
            raise TableError(f"{file}, {row.place}: {key[0]!r} on {key[1]!r} stands there twice")
        found[key] = dict(_scores(file, row, parts))
    models, datasets = (tuple(dict.fromkeys(key[axis] for key in found)) for axis in (0, 1))
    means = {
        measure: np.array([[found.get((m, d), {}).get(measure, math.nan) for d in datasets] for m in models])
        for measure in ALL_MEASURES
    }
    return Cells(models, datasets, means, notes=(f"means alone, from {file}",))


def _scores(file: str, row: Row, parts: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    values = {
        part: _real(file, row, name) for part, name in parts.items() if part not in ("model", "benchmark")
    }
    six = [values.get(short, math.nan) for short in list(SHORT)[:6]]
    yield from ((SHORT[short], values.get(short, math.nan)) for short in list(SHORT)[:6])
    yield "aria", values.get("aria", float(np.mean(six)))
    yield "accuracy", values.get("accuracy", math.nan)


def _name(file: str, row: Row, column: str, part: str) -> str:
    try:
        name = text_of(row.get(column), part).strip()
    except RowError as error:
        raise TableError(f"{file}, {row.place}: {error}") from None
    if not name:
        raise TableError(f"{file}, {row.place}: no {part}")
    return name


def _real(file: str, row: Row, column: str) -> float:
    """A score in [0, 1], NaN for an empty cell."""
    try:
        value = real_of(row.get(column), column)
    except RowError as error:
        raise TableError(f"{file}, {row.place}: {error}") from None
    if not (math.isnan(value) or 0 <= value <= 1):
        told = f"{column!r} is {value:g}, and a score lies in [0, 1]; write percentages with a percent sign"
        raise TableError(f"{file}, {row.place}: {told}")
    return value
