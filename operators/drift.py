"""What changed between two scorings of the stored responses, by how much, whether that is more than chance, and why.

Rows are compared by model name, benchmark, item and trial. *Our reading* of "beyond its interval": the mean now lies
outside the 95% interval of the mean then, over items: Student's t for a metric, Wilson's for accuracy. Such a change is
larger than another draw of as many items explains; with fewer than two items there is no interval, and any change counts.
What a change is made of is told apart: rows that came or went, and rows that both scored with other results (`rescored`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from operators.aggregate import MEASURES
from operators.fingerprint import differing
from operators.nights import Night
from operators.schema import METRICS
from operators.statistics import t_interval, wilson_interval_of_mean

PLACE = ["model", "benchmark", "item_id", "trial"]
COMPARED = (*MEASURES, "accuracy")
_TEXT = 60


class Cause(NamedTuple):
    """kind: one word for a machine. text: a sentence's part for a person."""

    kind: str
    text: str


@dataclass(frozen=True)
class Change:
    """One measure of one model on one benchmark, then and now (means over items; None: nothing was scored).

    low, high: the interval of `last`. n_last, n_now: rows scored. rescored: mean change over the items that both nights
    scored, None where there are none. n_differ: rows of both with another value.
    """

    model: str
    benchmark: str
    measure: str
    last: float | None
    now: float | None
    low: float | None
    high: float | None
    beyond: bool
    n_last: int
    n_now: int
    n_lost: int
    n_differ: int
    rescored: float | None
    causes: tuple[Cause, ...]

    @property
    def change(self) -> float | None:
        return None if self.last is None or self.now is None else self.now - self.last


@dataclass(frozen=True)
class Drift:
    """All changes between two nights; `n_compared` measures were looked at. `new_models` have no last night."""

    last: str
    now: str
    changes: tuple[Change, ...]
    n_compared: int
    new_models: tuple[str, ...]
    gone_models: tuple[str, ...]


def other_scorers(last: Night, now: Night) -> list[str]:
    """The metrics ("m1".."m6") whose scorers differ: their numbers are not on one scale."""
    return differing(
        [night.record.get("fingerprints", {}) for night in (last, now)], [m[:2] for m in METRICS]
    )


def unrecorded_scorers(last: Night, now: Night) -> list[str]:
    """The metrics that both nights have values of, and neither says by what scorer: nobody knows whether they compare."""
    silent = [name for name in METRICS if not (last.fingerprint(name[:2]) or now.fingerprint(name[:2]))]
    return [
        name[:2]
        for name in silent
        if all(night.rows[name].null_count < len(night.rows) for night in (last, now))
    ]


def drift(last: Night, now: Night) -> Drift:
    """Compare two nights measure by measure."""
    then, today = _frame(last), _frame(now)
    joined = then.merge(today, on=PLACE, how="outer", suffixes=("_last", "_now"), indicator="side")
    systems = [
        {tuple(pair) for pair in f[["model", "benchmark"]].drop_duplicates().values} for f in (then, today)
    ]
    changes, compared = [], 0
    for pair, rows in joined.groupby(["model", "benchmark"], sort=True):
        if pair in systems[0] and pair in systems[1]:
            compared += len(COMPARED)
            changes += [change for change in _changes(last, now, pair, rows) if change]
    new, gone = ([f"{model} on {name}" for model, name in sorted(a - b)] for a, b in (systems[::-1], systems))
    return Drift(last.name, now.name, tuple(changes), compared, tuple(new), tuple(gone))


def _frame(night: Night) -> pd.DataFrame:
    frame = night.rows.to_pandas()
    frame["accuracy"] = frame["correct"].astype("float64")
    frame["accuracy_reason"] = frame["row_error"].fillna(frame["answer_reason"])
    frame["aria_reason"] = "a metric is missing"
    for name in ("fingerprint", "content"):
        frame[name] = frame.get(name)
    kept = [*COMPARED, *(f"{name}_reason" for name in COMPARED), "fingerprint", "content"]
    return frame[[*PLACE, *kept]]


def _changes(last: Night, now: Night, pair: tuple[str, str], rows: pd.DataFrame) -> Iterator[Change | None]:
    for measure in COMPARED:
        then, today = (rows[f"{measure}_{side}"].to_numpy(float, na_value=np.nan) for side in ("last", "now"))
        both = (rows["side"] == "both").to_numpy()
        counts = {
            "new": int(((rows["side"] == "right_only").to_numpy() & ~np.isnan(today)).sum()),
            "gone": int(((rows["side"] == "left_only").to_numpy() & ~np.isnan(then)).sum()),
            "lost": int((both & ~np.isnan(then) & np.isnan(today)).sum()),
            "gained": int((both & np.isnan(then) & ~np.isnan(today)).sum()),
        }
        differ = both & ~np.isnan(then) & ~np.isnan(today) & (then != today)
        if not differ.any() and not any(counts.values()):
            yield None
            continue
        causes = tuple(_causes(last, now, pair[0], measure, rows, counts, differ))
        yield _change(pair, measure, rows["item_id"].to_numpy(), then, today, counts, differ, causes)


def _change(pair, measure, items, then, today, counts, differ, causes) -> Change:
    old, new = _item_means(then, items), _item_means(today, items)
    shared = ~np.isnan(then) & ~np.isnan(today)
    rescored = _item_means(np.where(shared, today - then, np.nan), items)
    low, high = _interval(measure, old)
    last, now = (float(m.mean()) if len(m) else None for m in (old, new))
    outside = last is not None and now is not None and now != last and not low <= now <= high
    return Change(
        *pair, measure, last, now, *(None if math.isnan(bound) else bound for bound in (low, high)), outside,
        int((~np.isnan(then)).sum()), int((~np.isnan(today)).sum()), counts["lost"], int(differ.sum()),
        float(rescored.mean()) if len(rescored) else None, causes,
    )  # fmt: skip


def _item_means(values: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Mean over the trials of each item that has any; several trials of an item are not several items."""
    return pd.Series(values).groupby(items).mean().dropna().to_numpy()


def _interval(measure: str, means: np.ndarray) -> tuple[float, float]:
    if measure == "accuracy" and len(means):
        return wilson_interval_of_mean(float(means.mean()), len(means))
    return t_interval(means)


def _causes(
    last: Night, now: Night, model: str, measure: str, rows: pd.DataFrame, counts: dict, differ: np.ndarray
) -> Iterator[Cause]:
    """Everything that can have moved a measure; a changed value that nothing explains is said to be so."""
    if counts["new"]:
        yield Cause("new_rows", f"{_rows(counts['new'])} new")
    if counts["gone"]:
        yield Cause("gone_rows", f"{_rows(counts['gone'])} no longer there")
    explained = list(_changed_specs(last, now, model, measure))
    yield from explained
    touched = differ & (rows["content_last"] != rows["content_now"]).to_numpy()
    if touched.any() and now.model(model).get("fingerprint") == last.model(model).get("fingerprint"):
        yield Cause("changed_items", f"{_rows(int(touched.sum()))} about items that the benchmark changed")
    if differ.any() and not explained and not touched.any():
        why = "the same scorer gave other values: it is not deterministic, or the store was changed"
        yield Cause("unexplained", f"{_rows(int(differ.sum()))} differ and {why}")
    if counts["lost"]:
        side = rows[
            rows[f"{measure}_last"].notna() & rows[f"{measure}_now"].isna() & (rows["side"] == "both")
        ]
        reasons = side[f"{measure}_reason_now"].fillna("no reason").str.split(":").str[0].value_counts()
        yield Cause("lost_rows", f"{_rows(counts['lost'])} no longer scored ({', '.join(reasons.index[:3])})")
    if counts["gained"]:
        yield Cause("gained_rows", f"{_rows(counts['gained'])} that could not be scored before")


def _changed_specs(last: Night, now: Night, model: str, measure: str) -> Iterator[Cause]:
    before, after = last.model(model), now.model(model)
    if before.get("fingerprint") != after.get("fingerprint"):
        paths = list(differences(before.get("spec"), after.get("spec")))
        prompt = any("prompt" in path for path in paths)
        kind, what = (
            ("new_prompt", "another prompt") if prompt else ("new_model", "another model behind this name")
        )
        yield Cause(kind, f"{what} ({_listed(paths)})")
    if last.fingerprint("extract") != now.fingerprint("extract"):
        yield Cause("new_extraction", "answers and slots are read by another version of the extractor")
    for stage in other_scorers(last, now):
        if measure == "aria" or measure.startswith(f"{stage}_"):
            paths = list(differences(last.spec(stage), now.spec(stage)))
            yield Cause("new_scorer", f"another scorer of {stage.upper()} ({_listed(paths)})")


def differences(last: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two specs differ, as "backbone.dtype: float32 to bfloat16"; long texts are only named."""
    if isinstance(last, Mapping) and isinstance(now, Mapping):
        for name in sorted({*last, *now}):
            yield from differences(last.get(name), now.get(name), f"{path}.{name}" if path else str(name))
    elif last != now:
        texts = [str(value) for value in (last, now)]
        short = all(len(text) <= _TEXT and "\n" not in text for text in texts)
        yield f"{path or 'file'}: {texts[0]} to {texts[1]}" if short else f"{path or 'spec'} changed"


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return "; ".join(paths[:3]) + more if paths else "its code version or description"


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
