"""Accuracy and ARIA per group of items: what the official tables of MMAR and MMAU show, for every model of a run.

One Markdown table per benchmark and kind of group (category, then the names that the items' `groups` give): a row per
group, a column per model. Names are untrusted text.
"""

from __future__ import annotations

import pyarrow as pa

from operators.leaderboard_cells import bracketed
from operators.printing import ABSENT, markdown_cell


def breakdown(summary: pa.Table) -> str:
    """The tables for the SUMMARY of `aggregate.summarise`, "" where no kind has two groups."""
    kinds: dict[tuple[str, str], list[dict]] = {}
    for row in summary.to_pylist():
        if row["group_kind"] != "overall":
            kinds.setdefault((row["benchmark"] or "", row["group_kind"]), []).append(row)
    return "\n".join(
        _table(*key, rows) for key, rows in kinds.items() if len({row["group"] for row in rows}) > 1
    )


def _table(benchmark: str, kind: str, rows: list[dict]) -> str:
    models = list(dict.fromkeys(row["model"] for row in rows))
    cells = {(row["group"], row["model"]): row for row in rows}
    groups = sorted({row["group"] for row in rows})
    lines = [
        f"**{markdown_cell(benchmark)}** by {markdown_cell(kind)}: accuracy % (right/valid), ARIA, with 95% intervals",
        "",
    ]
    lines.append(f"| {markdown_cell(kind)} | {' | '.join(map(markdown_cell, models))} |")
    lines.append(f"| --- |{' ---: |' * len(models)}")
    for group in groups:
        told = [_cell(cells.get((group, model))) for model in models]
        lines.append(f"| {markdown_cell(group)} | {' | '.join(told)} |")
    return "\n".join(lines) + "\n"


def _cell(row: dict | None) -> str:
    if row is None or row["accuracy"] is None:
        return ABSENT
    accuracy = " ".join(
        [f"{100 * row['accuracy']:.1f} ({row['n_correct']}/{row['n_valid']})", *bracketed(row, "accuracy")]
    )
    aria = ABSENT
    if row["aria_mean"] is not None:
        aria = " ".join([f"{row['aria_mean']:.3f}", *bracketed(row, "aria"), f"n={row['aria_n_scored']}"])
    return f"{accuracy}, {aria}"
