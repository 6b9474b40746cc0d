"""The tables of an analysis as a person reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.analysis.estimates import Line
from operators.analysis.figures import NAMES
from operators.analysis.published_tables import LAST_DIGIT, NO, YES
from operators.export import number
from operators.printing import MIN_WIDTH, printable

TITLES = {
    "consistency": "Shares of variance and agreement across benchmarks",
    "metrics": "How the metrics go together",
    "judges": "ARIA beside accuracy and judges",
    "generic_words": "Generic words (Table 12)",
    "raters": "Agreement of raters",
    "human": "Metrics beside human ratings (Table 5)",
    "ablation": "Ranks of models under other backbones (Tables 8 to 10)",
    "table_13": "M1 under manipulated entities (Table 13)",
}
MOST = 45


def show(tables: Mapping[str, pa.Table], file: TextIO | None = None) -> None:
    """Print the estimates, one table per analysis, and the comparison with the paper where there is one."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH + 20)
    lines = tables["estimates"].to_pylist()
    for analysis in dict.fromkeys(line["analysis"] for line in lines):
        mine = [line for line in lines if line["analysis"] == analysis]
        console.print(Text(f"\n{TITLES[analysis]}", style="bold"))
        console.print(_block(mine[:MOST]))
        few = sorted(
            {told for line in mine for told in (line["note"] or "").split("; ") if told.startswith("few ")}
        )
        if few:
            console.print(Text("; ".join(few), style="dim"))
        if len(mine) > MOST:
            console.print(Text(f"and {len(mine) - MOST} more in estimates.csv", style="dim"))
    if not any(line["analysis"] == "consistency" for line in lines):
        told = "Shares of variance, Kendall's W and ICC need two models or more on two benchmarks or more."
        console.print(Text(told, style="dim"))
    if "published" in tables:
        _show_published(tables["published"].to_pylist(), console)


def _block(lines: Sequence[Line]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for head in ("Measure", "Against", "Statistic"):
        table.add_column(head, overflow="fold")
    for head in ("Value", "95% interval", "p", "n"):
        table.add_column(head, justify="right", no_wrap=True)
    table.add_column("Note", overflow="fold", style="dim")
    for line in lines:
        bounds = (
            "" if line["low"] is None or line["high"] is None else f"{line['low']:.3f} {line['high']:.3f}"
        )
        count = f"{line['n']} {line['unit']}" + (
            f" / {line['n_clusters']} {'models' if line['unit'] == 'models on a benchmark' else 'items'}"
            if line["n_clusters"] != line["n"]
            else ""
        )
        names = (NAMES.get(line["measure"], line["measure"]), NAMES.get(line["versus"], line["versus"] or ""))
        cells = (*names, line["statistic"].replace("_", " "), number(line["estimate"]), bounds,
                 "" if line["p"] is None else number(line["p"]), count, _note(line))  # fmt: skip
        table.add_row(*(Text(printable(cell, limit=200)) for cell in cells))
    return table


def _note(line: Line) -> str:
    """What is particular to the line; few units are said once below the table."""
    return "; ".join(told for told in (line["note"] or "").split("; ") if not told.startswith("few "))


def _show_published(rows: Sequence[dict], console: Console) -> None:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for head in ("Where", "Figure", "Published", "From the tables", "Comes out", "Why"):
        table.add_column(head, overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[name] or "") for name in ("where", "figure", "published", "recomputed", "comes_out", "why")))  # fmt: skip
    n = Counter(row["comes_out"] for row in rows)
    told = f"{n[YES]} come out, {n[LAST_DIGIT]} but for the last digit, {n[NO]} do not"
    console.print(Text(f"\nFigures of the paper from its own tables: {told}", style="bold"))
    console.print(table)
