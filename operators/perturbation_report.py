"""Tables 6 and 7 and the modes as tables to read, on a terminal and in Markdown. Names are untrusted text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.printing import ABSENT, MIN_WIDTH, markdown_cell, printable

_EFFECT_HEADS = ("Condition", "Acc %", "95% interval", "No ans %", "Acc - CoT", "Changed answers")
_MODE_HEADS = ("Model", "From its profile", "ARIA", "From its behaviour", "Fabricated chain", "Random words")
_KEY = (
    "Acc: right answers of all items, Wilson interval. No ans: responses without an answer. Acc - CoT: paired difference in "
    "points, 95% bootstrap interval over items. Changed: items answered under both, other answer than under Original CoT."
)


_MODE_KEY = (
    "Fabricated chain: own answers given up for the chain's / kept / not answered any more / asked. Random words: kept / not "
    "answered any more / asked. Where there is no mode from behaviour, why stands in modes.parquet."
)


def show(table: pa.Table, modes: pa.Table) -> None:
    """Print both tables, 100 columns wide where there is no terminal."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH)
    console.print(Text(_title(table), style="bold"))
    console.print(_rich(_EFFECT_HEADS, effect_cells(table)))
    console.print(Text(_KEY, style="dim"))
    if modes.num_rows:
        console.print(Text("Reasoning modes", style="bold"))
        console.print(_rich(_MODE_HEADS, mode_cells(modes)))
        console.print(Text(_MODE_KEY, style="dim"))


def to_markdown(table: pa.Table, modes: pa.Table) -> str:
    """The same as GitHub-flavoured Markdown."""
    parts = [f"**{markdown_cell(_title(table))}**", _markdown_table(_EFFECT_HEADS, effect_cells(table)), _KEY]
    if modes.num_rows:
        parts += ["**Reasoning modes**", _markdown_table(_MODE_HEADS, mode_cells(modes)), _MODE_KEY]
    return "\n\n".join(parts) + "\n"


def effect_cells(table: pa.Table) -> list[list[str]]:
    """One line per condition."""
    return [
        [
            row["title"],
            _percent(row["accuracy"]) + _of(row["n_correct"], row["n_items"]),
            _interval(row["accuracy_low"], row["accuracy_high"]),
            _percent(row["no_answer_rate"]) + (f", {row['n_failed']} failed" if row["n_failed"] else ""),
            _percent(row["difference"], signed=True) + _around(row["difference_low"], row["difference_high"]),
            _percent(row["change_rate"]) + _of(row["n_changed"], row["n_compared"]),
        ]
        for row in table.to_pylist()
    ]


def mode_cells(modes: pa.Table) -> list[list[str]]:
    """One line per model: the mode from its profile and from its behaviour."""
    return [
        [
            row["model"],
            row["mode_from_profile"] or ABSENT,
            ABSENT if row["aria"] is None else f"{row['aria']:.3f}{_ends(row)}",
            row["mode_from_behaviour"] or (row["mode_from_behaviour_reason"] or ABSENT).partition(":")[0],
            *_continuations(row),
        ]
        for row in modes.to_pylist()
    ]


def _continuations(row: Mapping[str, Any]) -> tuple[str, str]:
    """What became of the answers after either injected chain."""
    if row["n_compared"] is None:
        return ABSENT, ABSENT
    followed, kept, silent = (row[f"n_{name}"] for name in ("followed", "kept", "unanswered"))
    given = f"{followed}/{kept}/{silent}/{row['n_compared']}"
    kept, silent = (row[f"n_decoration_{name}"] for name in ("kept", "unanswered"))
    return given, f"{kept}/{silent}/{row['n_decoration_compared']}"


def _ends(row: Mapping[str, Any]) -> str:
    return "" if row["aria_low"] is None else f" ({row['aria_low']:.3f} to {row['aria_high']:.3f})"


def _title(table: pa.Table) -> str:
    first = table.slice(0, 1).to_pylist()[0]
    return f"{first['model']} on {first['benchmark']}"


def _percent(value: float | None, signed: bool = False) -> str:
    return ABSENT if value is None else f"{100 * value:{'+' if signed else ''}.1f}"


def _of(part: int | None, whole: int | None) -> str:
    return "" if whole is None else f" ({part}/{whole})"


def _interval(low: float | None, high: float | None) -> str:
    return ABSENT if low is None else f"{100 * low:.1f} to {100 * high:.1f}"


def _around(low: float | None, high: float | None) -> str:
    return "" if low is None else f" ({100 * low:+.1f} to {100 * high:+.1f})"


def _rich(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 0 else "right")
    for line in lines:
        table.add_row(*(Text(printable(cell)) for cell in line))
    return table


def _markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [heads, ["---", *["---:"] * (len(heads) - 1)]]
    rows += [[markdown_cell(cell) for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
