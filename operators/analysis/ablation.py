"""Does a metric rank the models alike whatever backbone computes it? ARIA-Rubrics, appendix B.5, Tables 8 to 10."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from operators.analysis.correlations import rank_agreement
from operators.analysis.estimates import Line
from operators.columns import RowError, find_columns, missing_columns, real_of, text_of
from operators.tables import Row, TableError

COLUMNS = {
    "metric": ("measure",),
    "backbone": ("scorer", "option"),
    "model": ("system", "model_name"),
    "benchmark": ("dataset",),
    "mean": ("score", "value"),
}
EXAMPLE = "metric,backbone,model,benchmark,mean\nm3,qwen2.5-1.5b,my-model,MMAR,0.74"


class Mean(NamedTuple):
    """A model's mean of a metric by one backbone on one benchmark."""

    metric: str
    backbone: str
    model: str
    benchmark: str
    mean: float


def read_means(file: str, rows: Sequence[Row], metric: str | None = None) -> list[Mean]:
    """The lines of an ablation table; the first backbone of a metric is the one that others are compared with.

    `metric`: the one that all lines are about, where the table has no column for it.
    """
    parts = find_columns(file, rows, COLUMNS, {}, "ablation")
    if missing := [part for part in COLUMNS if part not in parts and not (part == "metric" and metric)]:
        raise missing_columns(file, rows, COLUMNS, missing, "ablation", EXAMPLE)
    found: dict[tuple[str, ...], Mean] = {}
    for row in rows:
        try:
            cells = {part: row.get(name) for part, name in parts.items()}
            names = [text_of(cells.get(part, metric), part).strip() for part in list(COLUMNS)[:4]]
            one = Mean(*names, real_of(cells["mean"], "mean"))
        except RowError as error:
            raise TableError(f"{file}, {row.place}: {error}") from None
        if found.setdefault(one[:4], one) is not one:
            raise TableError(f"{file}, {row.place}: {', '.join(one[:4])} stands there twice")
    return list(found.values())


def backbone_agreement(means: Sequence[Mean]) -> Iterator[Line]:
    """Rank agreement of every backbone with the first of its metric, benchmark by benchmark."""
    for metric in dict.fromkeys(one.metric for one in means):
        mine = [one for one in means if one.metric == metric]
        first, *others = dict.fromkeys(one.backbone for one in mine)
        for benchmark in dict.fromkeys(one.benchmark for one in mine):
            scores = {(one.backbone, one.model): one.mean for one in mine if one.benchmark == benchmark}
            models = list(dict.fromkeys(one.model for one in mine))
            for other in others:
                x, y = ([scores.get((name, model), math.nan) for model in models] for name in (first, other))
                note = [f"benchmark {benchmark}"]
                yield from rank_agreement(
                    "ablation", metric, f"{other} against {first}", x, y, "models", note
                )
