"""ARIA-Rubrics' own tables, and the one rule by which a figure of its text comes out of them.

The tables are in `operators/data/aria_paper`, copied number by number. A number comes out ("yes") where the recomputed
one, rounded to the printed digits, equals it; "but for the last digit" where they are one unit of that digit apart, which
the rounding of the tables themselves may make; else "no". A count or a name comes out where it is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from operators.analysis.cells import Cells, cells_of_summary
from operators.tables import Row, read_rows

FOLDER = Path(__file__).parents[1] / "data" / "aria_paper"
# `comes_out`: YES, LAST_DIGIT or NO; null where the paper prints nothing to compare with.
PUBLISHED = pa.schema(
    [(name, pa.string()) for name in ("where", "figure", "published", "recomputed", "comes_out", "why")]
)
YES, LAST_DIGIT, NO = "yes", "but for the last digit", "no"
Line = dict[str, Any]


def table_1() -> Cells:
    """Table 1: means of nine models on MMAR and MMAU-mini."""
    return cells_of_summary("ARIA-Rubrics, Table 1", rows_of("table_1"))


def rows_of(name: str) -> list[Row]:
    """One of the paper's tables, a row per line."""
    return read_rows(str(FOLDER / f"{name}.csv"))


def line(
    where: str, figure: str, published: str, value: float | str, why: str, same: bool | None = None
) -> Line:
    """One row of PUBLISHED. A number has its verdict by the rule above; for a text `same` says it."""
    if isinstance(value, float):
        digits = len(published.partition(".")[2])
        shown = f"{value:.{digits}f}"
        units = round(abs(float(shown) - float(published)) * 10**digits)
        verdict = (YES, LAST_DIGIT, NO)[min(units, 2)]
    else:
        shown, verdict = value, None if same is None else YES if same else NO
    return {"where": where, "figure": figure, "published": published, "recomputed": shown, "comes_out": verdict, "why": why}  # fmt: skip
