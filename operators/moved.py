"""What happened between two nights to the rows behind every mean: counted in portions that add up.

A portion holds all rows about its items, so that means over an item's trials are those of all its trials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import pyarrow as pa

from operators.aggregate import MEASURES
from operators.asked import PLACE
from operators.moments import Moments

COMPARED = (*MEASURES, "accuracy")
NONE = Moments()
SAME = 1e-6  # what other batches and other cores leave of a score in single precision


@dataclass(frozen=True)
class Moved:
    """One measure of one model on one benchmark.

    n_last, n_now: rows scored then and now. added, gone: scored rows of only one night. lost, gained: rows of both, scored in
    only one. differ: scored in both, more than SAME apart; touched: those of them whose item changed; untold: those of them whose
    item's state a night does not say. old, new, rescored: means of items then, now, and the change of those that both scored.
    reasons: why rows were lost.
    """

    n_last: int = 0
    n_now: int = 0
    added: int = 0
    gone: int = 0
    lost: int = 0
    gained: int = 0
    differ: int = 0
    touched: int = 0
    untold: int = 0
    old: Moments = NONE
    new: Moments = NONE
    rescored: Moments = NONE
    reasons: Counter[str] = field(default_factory=Counter)

    def __add__(self, other: Moved) -> Moved:
        return Moved(
            *(one + more for one, more in zip(vars(self).values(), vars(other).values(), strict=True))
        )

    @property
    def anything(self) -> bool:
        return bool(self.added or self.gone or self.lost or self.gained or self.differ)


class Comparison:
    """Two nights side by side, portion by portion.

    before, after: the (model, benchmark) pairs of each night. moved: per pair a Moved for each of COMPARED.
    """

    def __init__(self) -> None:
        self.before: set[tuple[str, str]] = set()
        self.after: set[tuple[str, str]] = set()
        self.moved: dict[tuple[str, str], list[Moved]] = {}

    def add(self, last: pa.Table, now: pa.Table) -> Comparison:
        """Count a portion: what both nights hold (NIGHT_ROW) about some items."""
        self.before |= _systems(last)
        self.after |= _systems(now)
        for pair, found in moves(last, now):
            known = self.moved.get(pair)
            self.moved[pair] = [a + b for a, b in zip(known, found, strict=True)] if known else found
        return self


def _systems(rows: pa.Table) -> set[tuple[str, str]]:
    pairs = rows.select(["model", "benchmark"]).group_by(["model", "benchmark"]).aggregate([])
    return {tuple(pair.values()) for pair in pairs.to_pylist()}


def moves(last: pa.Table, now: pa.Table) -> Iterator[tuple[tuple[str, str], list[Moved]]]:
    """((model, benchmark), one Moved for each of COMPARED) of two portions of nights about the same items."""
    joined = _frame(last).merge(
        _frame(now), on=list(PLACE), how="outer", suffixes=("_last", "_now"), indicator="side"
    )
    for pair, rows in joined.groupby(["model", "benchmark"], sort=True):
        items = pd.factorize(rows["item_id"])[0]
        yield pair, [_moved(rows, measure, items) for measure in COMPARED]


def _frame(rows: pa.Table) -> pd.DataFrame:
    wanted = [*PLACE, *MEASURES, "correct"]
    optional = ("fingerprint", "content", "row_error", "answer_reason", *(f"{m}_reason" for m in MEASURES))
    frame = rows.select([*wanted, *(name for name in optional if name in rows.column_names)]).to_pandas()
    frame["accuracy"] = frame.pop("correct").astype("float64")
    frame["accuracy_reason"] = frame.pop("row_error").fillna(frame.pop("answer_reason"))
    frame["aria_reason"] = "a metric is missing"
    for name in ("fingerprint", "content"):
        frame[name] = frame.get(name)
    return frame


def _moved(rows: pd.DataFrame, measure: str, items: np.ndarray) -> Moved:
    then, today = (rows[f"{measure}_{side}"].to_numpy(float, na_value=np.nan) for side in ("last", "now"))
    had, has = ~np.isnan(then), ~np.isnan(today)
    side = rows["side"].to_numpy().astype(str)
    both, only_now, only_last = (side == name for name in ("both", "right_only", "left_only"))
    shared = both & had & has
    differ, lost = shared & (np.abs(np.where(shared, today - then, 0.0)) > SAME), both & had & ~has
    touched, untold = _items_changed(rows[differ]) if differ.any() else (0, 0)
    reasons = Counter()
    if lost.any():
        why = rows[f"{measure}_reason_now"][lost].fillna("no reason").str.split(":").str[0]
        reasons.update(why.value_counts().to_dict())
    return Moved(
        *(int(mask.sum()) for mask in (had, has, only_now & has, only_last & had, lost, both & ~had & has)),
        int(differ.sum()), touched, untold,
        _over_items(then, had, items), _over_items(today, has, items), _over_items(today - then, shared, items),
        reasons,
    )  # fmt: skip


def _items_changed(rows: pd.DataFrame) -> tuple[int, int]:
    """How many rows are about an item that changed, and of how many that cannot be said."""
    then, today = rows["content_last"], rows["content_now"]
    told = then.notna() & today.notna()
    return int((told & (then != today)).sum()), int((~told).sum())


def _over_items(values: np.ndarray, usable: np.ndarray, items: np.ndarray) -> Moments:
    """Of the means over the trials of each item that has any: several trials of an item are not several items."""
    sums = np.bincount(items[usable], values[usable], minlength=1)
    counts = np.bincount(items[usable], minlength=1)
    return Moments.of(sums[counts > 0] / counts[counts > 0])
