"""Does M1 reward generic words? ARIA-Rubrics, appendix G, Tables 12 and 13."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.analysis.cells import Cells
from operators.analysis.correlations import item_labels, rank_agreement
from operators.analysis.estimates import COUNT, Line, estimate, percentile_interval, resample, rows_by_label
from operators.text import words

GENERIC_WORDS = frozenset({"speech", "voice", "music", "song", "instrument", "audio", "sound"})  # Table 12
TABLE_13 = ("original", "all_music", "all_speech", "half_generic")
OVER_ITEMS = "percentile bootstrap, items drawn"


def generic_words(text: str) -> int:
    """How many words of `text` are generic. *Our reading*: whole words as the paper lists them, no plurals; the tags of
    slots are no words."""
    return sum(word in GENERIC_WORDS for word in words(text))


def generic_counts(rows: pa.Table, cells: Cells, n_resamples: int, seed: int) -> Iterator[Line]:
    """Table 12 by model: generic words in all and per chain, and how their rate goes with M1 across models."""
    told = rows.filter(pc.is_valid(rows["response"]))
    counts = np.array([generic_words(text) for text in told["response"].to_pylist()], dtype=float)
    models, labels = np.array(told["model"].to_pylist(), dtype=object), item_labels(told)
    rates = np.full(len(cells.models), np.nan)
    for place, model in enumerate(cells.models):
        mine = np.flatnonzero(models == model)
        if not len(mine):
            continue
        rates[place] = counts[mine].mean()
        clusters = [mine[at] for at in rows_by_label([labels[row] for row in mine])]
        drawn = resample(lambda at: float(counts[at].mean()), clusters, n_resamples, seed)
        size = {"n": len(mine), "unit": "chains", "n_clusters": len(clusters), "versus": model}
        yield estimate("generic_words", "m1", "words", counts[mine].sum(), method=COUNT, **size)
        yield estimate(
            "generic_words", "m1", "words_per_chain", rates[place], method=OVER_ITEMS,
            interval=percentile_interval(drawn), **size,
        )  # fmt: skip
    m1 = cells.means["m1_acoustic_grounding"]
    means = np.array([row[np.isfinite(row)].mean() if np.isfinite(row).any() else np.nan for row in m1])
    yield from rank_agreement("generic_words", "m1", "words_per_chain", means, rates, "models")


def manipulation_test(changes: pa.Table) -> Iterator[Line]:
    """Table 13 from a stress test (operators.stress.CHANGES): mean M1 as it was, and under each strategy its change."""
    wanted = [
        row for row in changes.to_pylist()
        if row["outcome"] == "m1_acoustic_grounding" and row["manipulation"] in TABLE_13 and row["before"] is not None
    ]  # fmt: skip
    # The strategy beside which a model's own M1 is told: all_music, where that ran.
    first: dict[str, str] = {}
    for row in sorted(wanted, key=lambda row: TABLE_13.index(row["manipulation"])):
        first.setdefault(row["model"], row["manipulation"])
    for row in wanted:
        size = {"n": row["n"], "unit": "chains", "n_clusters": row["n_clusters"], "versus": row["model"]}
        if row["manipulation"] == first[row["model"]]:
            yield _mean_m1("original", row, "before", size)
        yield _mean_m1(row["manipulation"], row, "after", size)
        bounds = _bounds(row, "")
        p = float("nan") if row["p"] is None else row["p"]
        yield estimate(
            "table_13", row["manipulation"], "change_of_m1", row["difference"], method=row["method"], interval=bounds,
            p=p, **size,
        )  # fmt: skip


def _mean_m1(measure: str, row: dict[str, Any], name: str, size: dict[str, Any]) -> Line:
    bounds = _bounds(row, f"{name}_")
    return estimate("table_13", measure, "mean_m1", row[name], method=OVER_ITEMS, interval=bounds, **size)


def _bounds(row: dict[str, Any], name: str) -> tuple[float, float]:
    """The ends of an interval; NaN for one that a table of an earlier version, or of one item, does not have."""
    low, high = (row.get(f"{name}{end}") for end in ("low", "high"))
    return (math.nan if low is None else low), (math.nan if high is None else high)
