"""The table of ARIA-Rubrics, appendix B.5: models by backbones and benchmarks, and below it how far the backbones agree."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.printing import ABSENT, MIN_WIDTH, markdown_cell, printable

KEY = (
    "Means over the rows that every backbone scored. W: Kendall's, agreement of all backbones on the order of the models. "
    "rho: Spearman's with the first backbone, over models and over rows. Variance: shares due to the model, to the "
    "backbone (a shift that leaves the order alone) and to both together. 95% intervals: bootstrap over items, each drawn "
    "with all models and backbones."
)


def grid(table: pa.Table, backbones: Sequence[str]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table, as text: a column per backbone and benchmark, the best model of the first on top."""
    entries = table.to_pylist()
    benchmarks = sorted({entry["benchmark"] for entry in entries})
    cells = {(e["model"], e["backbone"], e["benchmark"]): e for e in entries}
    models = list(dict.fromkeys(entry["model"] for entry in entries))
    models.sort(key=lambda model: (-_reference(cells, model, backbones[0], benchmarks), model))
    head = ["Model", *(f"{one}\n{benchmark}" for one in backbones for benchmark in benchmarks), "rows"]
    rows = []
    for model in models:
        mine = [cells.get((model, one, benchmark)) for one in backbones for benchmark in benchmarks]
        counts = [cells.get((model, backbones[0], benchmark)) for benchmark in benchmarks]
        rows.append([model, *map(_mean, mine), " + ".join(_count(entry) for entry in counts if entry)])
    return head, rows


def _reference(cells: dict, model: str, backbone: str, benchmarks: Sequence[str]) -> float:
    found = [cells.get((model, backbone, benchmark)) for benchmark in benchmarks]
    means = [entry["mean"] for entry in found if entry and entry["mean"] is not None]
    return sum(means) / len(means) if means else -1.0


def _mean(entry: dict | None) -> str:
    return ABSENT if entry is None or entry["mean"] is None else f"{entry['mean']:.4f}"


def _count(entry: dict) -> str:
    whole = entry["n_scored"] + entry["n_failed"]
    return str(whole) if entry["n_common"] == whole else f"{entry['n_common']}/{whole}"


_NAMES = {
    "kendalls_w": "W",
    "share_model": "variance: model",
    "share_backbone": "variance: backbone",
    "share_interaction": "variance: both",
}


def agreement_lines(agreements: pa.Table) -> list[list[str]]:
    """Header and rows of the second table, as text."""
    lines = [["Benchmark", "Agreement", "Value", "95% interval", "n", "Items", "Note"]]
    for one in agreements.to_pylist():
        name = _NAMES.get(one["statistic"], f"rho over {_unit(one)}, {one['versus']}")
        ends = ABSENT if one["low"] is None else f"{_number(one['low'])} to {_number(one['high'])}"
        counts = f"{one['n']} {_unit(one)}", str(one["n_clusters"])
        lines.append([one["benchmark"], name, _number(one["estimate"]), ends, *counts, one["note"] or ""])
    return lines


def _unit(line: dict) -> str:
    return "rows" if line["unit"] == "chains" else line["unit"]


def _number(value: float | None) -> str:
    return ABSENT if value is None else f"{value:.3f}"


def show(metric: str, table: pa.Table, agreements: pa.Table, backbones: Sequence[str]) -> None:
    """Print both tables."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH)
    console.print(Text(f"{metric.upper()} under {len(backbones)} backbones", style="bold"))
    head, rows = grid(table, backbones)
    for first, *lines in ([head, *rows], agreement_lines(agreements)):
        console.print(_drawn(first, lines))
    console.print(Text(KEY, style="dim"))


def _drawn(head: list[str], rows: list[list[str]]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    for place, name in enumerate(head):
        text = "\n".join(printable(line) for line in name.split("\n"))
        drawn.add_column(Text(text), justify="right" if place else "left", overflow="fold")
    for row in rows:
        drawn.add_row(*(Text(printable(cell)) for cell in row))
    return drawn


def to_markdown(metric: str, table: pa.Table, agreements: pa.Table, backbones: Sequence[str]) -> str:
    """Both tables as Markdown."""
    head, rows = grid(table, backbones)
    parts = [f"# {metric.upper()} under {len(backbones)} backbones"]
    for first, *lines in (
        [[name.replace("\n", ", ") for name in head], *rows],
        agreement_lines(agreements),
    ):
        drawn = [_row(first), _row(["---", *["---:"] * (len(first) - 1)], plain=True), *map(_row, lines)]
        parts.append("\n".join(drawn))
    return "\n\n".join([*parts, KEY]) + "\n"


def _row(cells: Sequence[str], plain: bool = False) -> str:
    return "| " + " | ".join(cells if plain else map(markdown_cell, cells)) + " |"
