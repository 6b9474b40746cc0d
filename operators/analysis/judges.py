"""ARIA beside LLM judges and accuracy (ARIA-Rubrics, Table 2): do they rank the models alike?

A table of judges has the columns model, judge and score, and perhaps benchmark; several rows of one model are averaged.
Or it has one column per judge beside `model`, as the paper prints it. The scale of a judge plays no part: ranks do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from operators.analysis.cells import Cells
from operators.analysis.correlations import rank_agreement
from operators.analysis.estimates import Line
from operators.columns import RowError, columns_of, find_columns, missing_columns, real_of, text_of
from operators.tables import Row, TableError

COLUMNS = {
    "model": ("system", "model_name"),
    "judge": ("judge_name", "evaluator"),
    "score": ("rating", "value"),
    "benchmark": ("dataset",),
}
EXAMPLE = "model,judge,score\nmy-model,my-judge,0.78\nor one column per judge:\nmodel,my-judge,other-judge\nmy-model,0.78,4.1"
RANKS = pa.schema(
    [
        ("judge", pa.string()),
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("aria", pa.float64()),
        ("score", pa.float64()),
        ("aria_rank", pa.float64()),
        ("judge_rank", pa.float64()),
    ]
)
Scores = Mapping[
    str, Mapping[tuple[str, str | None], float]
]  # judge -> (model, benchmark or None) -> mean score


def read_judges(file: str, rows: Sequence[Row]) -> Scores:
    """{judge: {(model, benchmark or None): mean score}} from either form. Raises TableError naming file and row."""
    parts = find_columns(file, rows, COLUMNS, {}, "judge_scores")
    if "model" not in parts:
        raise missing_columns(file, rows, COLUMNS, ["model"], "judge_scores", EXAMPLE)
    long = "judge" in parts and "score" in parts
    wide = {name: name for name in columns_of(rows) if name not in parts.values()} if not long else {}
    if not long and not wide:
        raise missing_columns(file, rows, COLUMNS, ["judge", "score"], "judge_scores", EXAMPLE)
    found: dict[str, dict[tuple[str, str | None], list[float]]] = {}
    for row in rows:
        try:
            names = {
                part: text_of(row.get(column), part).strip()
                for part, column in parts.items()
                if part != "score"
            }
            judged = {names["judge"]: parts["score"]} if long else wide
            for judge, column in judged.items():
                score = real_of(row.get(column), column)
                if not math.isnan(score):
                    key = (names["model"], names.get("benchmark") or None)
                    found.setdefault(judge, {}).setdefault(key, []).append(score)
        except RowError as error:
            raise TableError(f"{file}, {row.place}: {error}") from None
    return {
        judge: {key: float(np.mean(scores)) for key, scores in rated.items()}
        for judge, rated in found.items()
    }


def accuracy_as_judge(cells: Cells) -> Scores:
    """Accuracy of every model on every benchmark, to be compared with ARIA as a judge is."""
    table = cells.means["accuracy"]
    places = [(m, d) for m in range(len(cells.models)) for d in range(len(cells.datasets))]
    return {"accuracy": {(cells.models[m], cells.datasets[d]): float(table[m, d]) for m, d in places}}


def compared(cells: Cells, scores: Scores) -> pa.Table:
    """RANKS: ARIA and judge side by side, ranks from 1 (best) within a judge and benchmark, ties sharing their mean."""
    from scipy.stats import rankdata

    lines = []
    for judge, rated in scores.items():
        for benchmark in dict.fromkeys(key[1] for key in rated):
            pairs = [(m, aria_of(cells, m, b), score) for (m, b), score in rated.items() if b == benchmark]
            known = [pair for pair in pairs if math.isfinite(pair[1]) and math.isfinite(pair[2])]
            ranks = [rankdata([-pair[place] for pair in known]) if known else [] for place in (1, 2)]
            lines += [
                {"judge": judge, "model": model, "benchmark": benchmark, "aria": aria, "score": score,
                 "aria_rank": ranks[0][at], "judge_rank": ranks[1][at]}
                for at, (model, aria, score) in enumerate(known)
            ]  # fmt: skip
    return pa.Table.from_pylist(lines, schema=RANKS)


def judge_agreement(cells: Cells, scores: Scores) -> Iterator[Line]:
    """Rank agreement of ARIA with every judge, on each benchmark, and on the mean over benchmarks where a judge names
    none."""
    table = compared(cells, scores)
    keys = list(zip(table["judge"].to_pylist(), table["benchmark"].to_pylist(), strict=True))
    for judge, benchmark in dict.fromkeys(keys):
        kept = table.filter(pa.array([key == (judge, benchmark) for key in keys]))
        absent = len(scores[judge]) - keys.count((judge, benchmark)) if benchmark is None else 0
        notes = [f"benchmark {benchmark}" if benchmark else "mean over benchmarks", *cells.notes]
        notes += [f"{absent} models of the judge have no ARIA here"] if absent else []
        aria, score = (kept[name].to_numpy() for name in ("aria", "score"))
        yield from rank_agreement("judges", "aria", judge, aria, score, "models", notes)


def aria_of(cells: Cells, model: str, benchmark: str | None) -> float:
    """A model's ARIA on a benchmark, or its mean over those that have one; NaN where there is none."""
    if model not in cells.models or benchmark not in (None, *cells.datasets):
        return math.nan
    row = cells.means["aria"][cells.models.index(model)]
    if benchmark is not None:
        return float(row[cells.datasets.index(benchmark)])
    return float(row[np.isfinite(row)].mean()) if np.isfinite(row).any() else math.nan
