"""How LLM judges rate the models of a run, beside accuracy and ARIA: Table 2 of ARIA-Rubrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.intervals import no_interval, t_interval
from operators.leaderboard_cells import mark_of
from operators.printing import ABSENT, MIN_WIDTH, markdown_cell, printable

# One rating of one response.
RATINGS = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "benchmark", "item_id")),
        ("trial", pa.int64()),
        ("judge", pa.string()),
        ("score", pa.float64()),
        ("reason", pa.string()),
        ("details", pa.string()),
    ]
)
# What a judge makes of a model. `score_if_failed_0` counts the ratings that failed as 0: the worst that they could be.
# `score_low`, `score_high`: Student's 95% interval over `n_items`, cut at 0 and 1, the trials of an item being averaged first
# (as the means of the leaderboard); the score itself is the mean over rows. Null for one item.
JUDGED = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "benchmark", "judge")),
        *((name, pa.float64()) for name in ("accuracy", "aria")),
        ("aria_rank", pa.int64()),
        *((name, pa.float64()) for name in ("score", "score_low", "score_high", "score_if_failed_0")),
        ("interval_reason", pa.string()),
        ("n_scored", pa.int64()),
        ("n_items", pa.int64()),
        ("n_failed", pa.int64()),
    ]
)


def judged(ratings: pa.Table, summary: pa.Table) -> pa.Table:
    """One row per model, benchmark and judge (JUDGED), best ARIA first; a model's score is the mean over its rated rows.

    ratings: RATINGS. summary: of `aggregate.summarise`. A model without ARIA, or with ARIA for too few rows, has no rank.
    """
    overall = {
        (row["model"], row["benchmark"]): row for row in summary.to_pylist() if row["group_kind"] == "overall"
    }
    ranks = _ranks(overall)
    scores: dict[tuple, list[tuple[str, float | None]]] = {}
    for row in ratings.to_pylist():
        scores.setdefault((row["model"], row["benchmark"], row["judge"]), []).append(
            (row["item_id"], row["score"])
        )
    rows = [_row(key, values, overall[key[:2]], ranks.get(key[:2])) for key, values in scores.items()]
    rows.sort(key=lambda row: (row["benchmark"], row["aria_rank"] or math.inf, row["model"], row["judge"]))
    return pa.Table.from_pylist(rows, schema=JUDGED)


def _row(
    key: tuple, values: Sequence[tuple[str, float | None]], told: Mapping[str, Any], rank: int | None
) -> dict[str, Any]:
    by_item: dict[str, list[float]] = {}
    for item, value in values:
        if value is not None:
            by_item.setdefault(item, []).append(value)
    scored = [value for found in by_item.values() for value in found]
    low, high = t_interval([sum(found) / len(found) for found in by_item.values()], bounds=(0, 1))
    return {
        **dict(zip(("model", "benchmark", "judge"), key, strict=True)),
        "accuracy": told["accuracy"],
        "aria": told["aria_mean"],
        "aria_rank": rank,
        "score": sum(scored) / len(scored) if scored else None,
        "score_low": None if math.isnan(low) else low,
        "score_high": None if math.isnan(high) else high,
        "interval_reason": no_interval(len(by_item)) if math.isnan(low) else None,
        "score_if_failed_0": sum(scored) / len(values),
        "n_scored": len(scored),
        "n_items": len(by_item),
        "n_failed": len(values) - len(scored),
    }


def _ranks(overall: Mapping[tuple[str, str], Mapping[str, Any]]) -> dict[tuple[str, str], int]:
    """From 1, ties share the better one; as on the leaderboard, none for an ARIA over too few rows."""
    ranks: dict[tuple[str, str], int] = {}
    for benchmark in {benchmark for _, benchmark in overall}:
        rows = {key: row for key, row in overall.items() if key[1] == benchmark}
        rated = {
            key: row["aria_mean"]
            for key, row in rows.items()
            if row["aria_mean"] is not None and not mark_of(row, list(rows.values()))
        }
        ranks |= {key: 1 + sum(other > aria for other in rated.values()) for key, aria in rated.items()}
    return ranks


def cells(table: pa.Table) -> tuple[list[str], list[list[str]]]:
    """Heads and lines of the table to read: a line per model and benchmark, a column per judge."""
    rows = table.to_pylist()
    judges = list(dict.fromkeys(row["judge"] for row in rows))
    found = {(row["model"], row["benchmark"], row["judge"]): row for row in rows}
    lines = []
    for model, benchmark in dict.fromkeys((row["model"], row["benchmark"]) for row in rows):
        mine = [found.get((model, benchmark, judge)) for judge in judges]
        first = next(row for row in mine if row)
        rated = [_score(row) for row in mine]
        lines.append(
            [
                model,
                benchmark,
                _number(first["accuracy"]),
                *rated,
                _number(first["aria"]),
                str(first["aria_rank"] or ABSENT),
            ]
        )
    return ["Model", "Benchmark", "Acc", *judges, "ARIA", "ARIA rank"], lines


def _score(row: Mapping[str, Any] | None) -> str:
    if row is None or row["score"] is None:
        return ABSENT if row is None else f"{ABSENT} ({row['n_failed']} failed)"
    if not row["n_failed"]:
        return _with_interval(row)
    return f"{_with_interval(row)} ({row['n_failed']} failed, {_number(row['score_if_failed_0'])} at worst)"


def _with_interval(row: Mapping[str, Any]) -> str:
    """As in "0.612 [0.551, 0.673]"."""
    ends = "" if row["score_low"] is None else f" [{_number(row['score_low'])}, {_number(row['score_high'])}]"
    return f"{_number(row['score'])}{ends}"


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def show(table: pa.Table) -> None:
    """Print the table of Table 2's shape."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH)
    heads, lines = cells(table)
    shown = Table(box=box.SIMPLE_HEAD, title="LLM judges", title_justify="left")
    for head in heads:
        shown.add_column(Text(printable(head)), justify="left" if head in ("Model", "Benchmark") else "right")
    for line in lines:
        shown.add_row(*(Text(printable(cell)) for cell in line))
    console.print(shown)


def to_markdown(table: pa.Table) -> str:
    """The same as GitHub-flavoured Markdown."""
    heads, lines = cells(table)
    rows = [[markdown_cell(cell) for cell in line] for line in (heads, *lines)]
    rows.insert(1, ["---", "---", *["---:"] * (len(heads) - 2)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"
