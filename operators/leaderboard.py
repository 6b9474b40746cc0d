"""The summary of a run as a table to read: ARIA-Rubrics Table 1 with the interval and the counts that a mean needs beside it.

One block per benchmark, the best model by ARIA first. In a terminal the best value of a column is bold; wherever there is no
colour (a file, a pipe) it carries a star instead, and plain ASCII is used if the output cannot encode more. Model names and
reasons are untrusted text: they are never read as markup, and what cannot be printed is spelled out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import pyarrow as pa
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from operators.leaderboard_cells import (
    COVERED,
    best_of,
    blocks_of,
    bracketed,
    cell_of,
    interval_below,
    is_best,
    mark_of,
    number_of_items,
    small_print,
)
from operators.printing import MIN_WIDTH, markdown_cell, printable
from operators.schema import METRICS

MAX_REASONS = 20
NOTHING = "No rows to show."
_HEADERS = {
    "accuracy": "Acc %\nof all",
    "accuracy_answered": "Acc %\nansw'd",
    "no_answer_rate": "No\nans %",
    "counts": "scored\nfailed",
}


class Leaderboard:
    """A rich renderable that suits itself to the console it is printed on; made by `render`."""

    def __init__(self, summary: pa.Table, failures: pa.Table | None = None) -> None:
        self.blocks = blocks_of(summary)
        self.failures = failures

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        starred = console.color_system is None
        for benchmark, rows in self.blocks:
            yield Text(f"{printable(benchmark, options.encoding)}: {number_of_items(rows)}", style="bold")
            wide = _block(rows, options, starred)
            # What it needs, and not what there is of it.
            needed = Measurement.get(console, options.update(max_width=10_000), wide).minimum
            yield wide if needed <= options.max_width else _block(rows, options, starred, stacked=True)
        if not self.blocks:
            yield Text(NOTHING)
            return
        best = "* best of its column. " if starred and any(len(rows) > 1 for _, rows in self.blocks) else ""
        yield Text(best + small_print(self.blocks, "+-" if options.ascii_only else "±", "Below"), style="dim")
        if self.failures is not None and len(self.failures):
            yield _failure_lines(self.failures, options.encoding)


def render(summary: pa.Table, failures: pa.Table | None = None) -> Leaderboard:
    """What to give to `rich.console.Console.print`: readable from 100 columns, in colour or piped to a file.

    `summary` is that of `aggregate.summarise` (its overall rows are shown), `failures` that of
    `failures.failure_reasons`: with it, a list of what went wrong and how often stands below the table.
    """
    return Leaderboard(summary, failures)


def show(summary: pa.Table, failures: pa.Table | None = None, file: TextIO | None = None) -> None:
    """Print `render(summary, failures)` to `file` (standard output by default), 100 columns wide where that
    is no terminal: rich would otherwise take a pipe to be 80 columns wide and cut the table."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH)
    console.print(render(summary, failures))


def to_markdown(summary: pa.Table) -> str:
    """The same blocks as GitHub-flavoured Markdown, the best value of a column in bold."""
    parts, blocks = [], blocks_of(summary)
    for benchmark, rows in blocks:
        best = best_of(rows)
        heads = [
            "Model",
            *(f"M{i}" for i in range(1, 7)),
            "ARIA",
            "Acc % of all",
            "Acc % of answered",
            "No answer %",
        ]
        lines = [
            f"**{markdown_cell(benchmark)}**: {number_of_items(rows)}",
            "",
            _row([*heads, "n_scored", "n_failed"]),
        ]
        lines.append(_row(["---", *["---:"] * (len(heads) + 1)]))
        for row in rows:
            cells = [f"{markdown_cell(row['model'])} {mark_of(row, rows)}".strip()]
            for column in COVERED:
                first, *below = cell_of(row, column, "±")
                first = f"**{first}**" if is_best(row, column, best, rows) else first
                told = (f"({text})" if "/" in text else text for text in below)
                cells.append(" ".join([first, *told, *bracketed(row, column)]))
            lines.append(_row([*cells, str(row["aria_n_scored"]), str(row["aria_n_failed"])]))
        parts.append("\n".join(lines))
    if parts:
        best = "Bold: best of its column. " if any(len(rows) > 1 for _, rows in blocks) else ""
        parts.append(best + small_print(blocks, "±", "Beside the values"))
    return "\n\n".join(parts or [NOTHING]) + "\n"


def _block(rows: list[dict], options: ConsoleOptions, starred: bool, stacked: bool = False) -> Table:
    narrow = options.max_width < MIN_WIDTH - 8
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("Model", min_width=10, overflow="fold")
    for header in (*(f"M{i}" for i in range(1, len(METRICS) + 1)), "ARIA", *_HEADERS.values()):
        table.add_column(header, justify="right", no_wrap=True)
    best = best_of(rows)
    sign = "+-" if options.ascii_only else "±"
    for row in rows:
        mark = mark_of(row, rows)
        name = Text(printable(row["model"], options.encoding))
        cells = [name.append(f"\n{mark}", style="dim") if mark else name]
        for column in COVERED:
            first, *below = cell_of(row, column, sign, digits=2 if narrow else 3)
            # n= stands last.
            rest = below.pop() if below and below[-1].startswith("n=") else None
            below += [*interval_below(row, column, stacked), *filter(None, [rest])]
            wins = is_best(row, column, best, rows)
            text = Text().append(
                f"{first}*" if wins and starred else first, style="bold green" if wins else None
            )
            cells.append(text.append("".join(f"\n{line}" for line in below), style="dim"))
        cells.append(Text(f"{row['aria_n_scored']}\n{row['aria_n_failed']}"))
        table.add_row(*cells)
    return table


def _failure_lines(failures: pa.Table, encoding: str) -> Group:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in ("Model", "Stage", "Reason", "Rows", "For example"):
        table.add_column(name, justify="right" if name == "Rows" else "left", overflow="fold")
    kinds = _kinds_of_failure(failures)
    for (model, reason, rows, example), stages in kinds[:MAX_REASONS]:
        cells = (model, " ".join(stages), reason, str(rows), example)
        table.add_row(*(Text(printable(cell, encoding)) for cell in cells))
    rest = len(kinds) - MAX_REASONS
    more = [Text(f"and {rest} rarer kinds")] if rest > 0 else []
    return Group(Text("\nNot scored or not answered, by reason", style="bold"), table, *more)


def _kinds_of_failure(failures: pa.Table) -> list[tuple[tuple, list[str]]]:
    """Most frequent first; what befell several metrics alike (no response: none of the six) is one line."""
    kinds: dict[tuple, list[str]] = {}
    for row in failures.to_pylist():
        stage = row["stage"].split("_")[0] if row["stage"] in METRICS else row["stage"]
        kinds.setdefault((row["model"], row["reason"], row["n"], row["example_item_id"]), []).append(stage)
    return sorted(kinds.items(), key=lambda kind: -kind[0][2])


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"
