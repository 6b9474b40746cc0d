"""One table in the four forms that people take further: Parquet (exact), CSV, Markdown and LaTeX.

Parquet and CSV hold every number in full; Markdown and LaTeX round for the eye. Names come from users' files and from
models: no cell is read as markup, as a LaTeX command, or as a formula by a spreadsheet.
"""

from __future__ import annotations

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from operators.printing import ABSENT, markdown_cell, printable

DIGITS = 3
MAX_CELL = 400
_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "-": "{-}", "`": r"\textasciigrave{}",
}  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def write_all(folder: Path, name: str, table: pa.Table, digits: int = DIGITS) -> None:
    """`name`.parquet, .csv, .md and .tex in `folder`, which is made; each appears whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    stream = io.BytesIO()
    pq.write_table(table, stream)
    _put(folder / f"{name}.parquet", stream.getvalue())
    _put(folder / f"{name}.csv", to_csv(table))
    _put(folder / f"{name}.md", to_markdown(table, digits).encode())
    _put(folder / f"{name}.tex", to_latex(table, digits).encode())


def to_csv(table: pa.Table) -> bytes:
    """UTF-8 with a header, its texts `inert`."""
    stream = io.BytesIO()
    pyarrow.csv.write_csv(inert(table), stream)
    return stream.getvalue()


def inert(table: pa.Table) -> pa.Table:
    """The table with an apostrophe before every text that a spreadsheet would run as a formula."""
    plain = [
        pa.array([_inert(cell) for cell in column.to_pylist()], pa.string())
        if pa.types.is_string(column.type)
        else column
        for column in table.columns
    ]
    return pa.table(plain, names=table.column_names)


def to_markdown(table: pa.Table, digits: int = DIGITS) -> str:
    """A GitHub-flavoured table, numbers to the right."""
    heads = [markdown_cell(name) for name in table.column_names]
    rule = ["---:" if _is_number(field.type) else "---" for field in table.schema]
    rows = [[markdown_cell(cell, MAX_CELL) for cell in row] for row in _cells(table, digits)]
    return "".join(f"| {' | '.join(row)} |\n" for row in (heads, rule, *rows))


def to_latex(table: pa.Table, digits: int = DIGITS) -> str:
    r"""A `tabular` with the rules of booktabs (`\usepackage{booktabs}`), numbers to the right."""
    numeric = [_is_number(field.type) for field in table.schema]
    form = "".join("r" if one else "l" for one in numeric)
    heads = [latex_cell(name) for name in table.column_names]
    rows = [
        [
            cell.replace("-", "$-$") if one else latex_cell(cell)
            for cell, one in zip(row, numeric, strict=True)
        ]
        for row in _cells(table, digits)
    ]
    lines = [
        rf"\begin{{tabular}}{{{form}}}",
        r"\toprule",
        _latex_row(heads),
        r"\midrule",
        *map(_latex_row, rows),
    ]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def latex_cell(text: str | None) -> str:
    """Untrusted text for a LaTeX table, on one line."""
    return "".join(_LATEX.get(char, char) for char in printable(text, limit=MAX_CELL))


def number(value: float | int | None, digits: int = DIGITS) -> str:
    """A number as people read it; a dash for none. Very small ones keep two figures (0.00012 is not 0)."""
    if value is None or value != value:
        return ABSENT
    if isinstance(value, int):
        return str(value)
    return f"{value:.1e}" if 0 < abs(value) < 0.5 * 10**-digits else f"{value:.{digits}f}"


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _cells(table: pa.Table, digits: int) -> list[list[str]]:
    return [[_shown(cell, digits) for cell in row.values()] for row in table.to_pylist()]


def _shown(cell: Any, digits: int) -> str:
    if cell is None:
        return ABSENT
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return number(cell, digits) if isinstance(cell, (int, float)) else str(cell)


def _inert(cell: str | None) -> str | None:
    return f"'{cell}" if cell and cell.startswith(_FORMULA) else cell


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _put(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)
