"""The table of a stress test as a person reads it: what each manipulation changed, and whether it pays."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.printing import ABSENT, MIN_WIDTH, printable
from operators.stress import ABOUT, ALL, OUTCOMES, few, rises, sentences

_AT_ONCE, _LONGEST = 4, 24  # models in a table by model, and characters of a name at its head
_HEADS = [*(outcome[:2].upper() for outcome in OUTCOMES[:6]), "ARIA", "Acc"]
_KEY = (
    "Change of the mean over all chains, below it the ends of its 95% interval (bootstrap over items).\n+ and - where all of "
    "that lies above or below zero. Intervals are of one comparison each, not widened for their number."
)


def show(changes: pa.Table, file: TextIO | None = None) -> None:
    """Print the changes over all chains, those of ARIA by model, and one sentence per manipulation."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH + 20)
    rows = changes.to_pylist()
    console.print(_by_outcome(rows))
    console.print(Text("\n".join(filter(None, (_KEY, few(rows)))), style="dim"))
    models = list(dict.fromkeys(row["model"] for row in rows if row["model"] != ALL))
    for start in range(0, len(models), _AT_ONCE):
        console.print(_by_model(rows, models[start : start + _AT_ONCE]))
    for line in sentences(changes):
        console.print(Text(f"- {printable(line, limit=1000)}", style="bold" if " PAYS: " in line else ""))


def _by_outcome(rows: list[dict[str, Any]]) -> Table:
    table = _table("Manipulation", [*_HEADS, "chains\nlost"])
    for name, members in _grouped(rows, "manipulation").items():
        overall = {row["outcome"]: row for row in members if row["model"] == ALL}
        cells = [_cell(overall[outcome]) for outcome in OUTCOMES]
        aria = overall["aria"]
        told = Text(f"{name}\n").append(ABOUT[name], style="dim")
        table.add_row(told, *cells, Text(f"{aria['n_changed']}\n{aria['n_lost']}"))
    return table


def _by_model(rows: list[dict[str, Any]], models: list[str]) -> Table:
    table = _table("ARIA by model", [printable(model, limit=_LONGEST) for model in models])
    for name, members in _grouped(rows, "manipulation").items():
        found = {row["model"]: row for row in members if row["outcome"] == "aria"}
        table.add_row(Text(name), *(_cell(found[model]) for model in models))
    return table


def _cell(row: dict[str, Any]) -> Text:
    """A change, and below it the ends of its interval: one under the other, for eight columns to fit."""
    if row["difference"] is None:
        return Text(ABSENT)
    falls = row["high"] is not None and row["high"] < 0
    mark = "+" if rises(row) else "-" if falls else " "
    text = Text(f"{row['difference']:+.3f}{mark}", style="bold red" if rises(row) else "")
    if row["low"] is not None:
        text.append(f"\n{row['low']:+.3f} \n{row['high']:+.3f} ", style="dim")
    return text


def _grouped(rows: Iterable[dict[str, Any]], key: str) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[key], []).append(row)
    return groups


def _table(first: str, heads: Iterable[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column(first, overflow="fold", min_width=max(map(len, ABOUT)))
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    return table
