"""What a leaderboard says: which models stand in which order, which value is the best of its column, and what is in a cell.

A mean over few rows is no rank: a model whose ARIA covers less than LEAST_COVERAGE of what the best covered model's does stands
below the others, marked with how many of its rows were scored, and no value that covers as little is the best of its column.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregate import MEASURES
from operators.analysis.estimates import FEW
from operators.printing import ABSENT

LEAST_COVERAGE = 0.5
_LOWER_IS_BETTER = {"no_answer_rate"}
COVERED = {
    **{measure: (f"{measure}_n_scored",) for measure in MEASURES},
    "accuracy": ("n_valid",),
    "accuracy_answered": ("n_answered",),
    "no_answer_rate": ("n_answered", "n_no_answer"),
}
_KEY = (
    "{below}: {sd}sd or right/all, right/answered; 95% interval over items (Student's; of shares Wilson's). "
    "Scored, failed: rows with and without ARIA."
)
_KEY_NONE = " No interval: one item, or values alike."
_KEY_FEW = " Few items: the intervals are rough."
_KEY_PARTLY = " n=: rows scored where not all of the model's are."
_KEY_UNRANKED = " (1/9): rows with ARIA; too few to rank."
_KEY_TRIALS = " An item's rows are averaged first: {sd}sd is that of items."


def blocks_of(summary: pa.Table) -> list[tuple[str, list[dict]]]:
    """Per benchmark, its overall rows: highest ARIA first, equal ones by name; those with too little of it
    below, without any last."""
    rows = summary.filter(pc.equal(summary["group_kind"], "overall")).to_pylist()
    blocks: dict[str, list[dict]] = {}
    for row in rows:
        blocks.setdefault(row["benchmark"], []).append(row)

    def rank(row: dict) -> tuple[bool, bool, float, str]:
        aria, enough = row["aria_mean"], _covers_enough(row, "aria", blocks[row["benchmark"]])
        return aria is None, not enough, -(aria or 0.0), row["model"] or ""

    return [(name, sorted(blocks[name], key=rank)) for name in sorted(blocks, key=str)]


def number_of_items(rows: list[dict]) -> str:
    """As in "20 items", "2 to 3 items"; with several trials of an item also how many rows they make."""
    items, lines = ({row[name] for row in rows} for name in ("n_items", "n_rows"))
    told = f"{_span(items)} item" + ("" if items == {1} else "s")
    return told if all(row["n_items"] == row["n_rows"] for row in rows) else f"{told}, {_span(lines)} rows"


def _span(counts: set[int]) -> str:
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def _value(column: str) -> str:
    return f"{column}_mean" if column in MEASURES else column


def _coverage(row: dict, column: str) -> float:
    """How many items' worth of rows the value of a column speaks for."""
    return sum(row[name] for name in COVERED[column]) * row["n_items"] / max(row["n_rows"], 1)


def _covers_enough(row: dict, column: str, rows: list[dict]) -> bool:
    return _coverage(row, column) >= LEAST_COVERAGE * max(_coverage(other, column) for other in rows)


def mark_of(row: dict, rows: list[dict]) -> str:
    """What stands beside the name of a model that is not ranked."""
    if row["aria_mean"] is None or _covers_enough(row, "aria", rows):
        return ""
    return f"({row['aria_n_scored']}/{row['n_rows']})"


def best_of(rows: list[dict]) -> dict[str, float]:
    """The best value of each column in which models differ: one alone is not the best of anything."""
    best = {}
    for column in COVERED:
        found = [row for row in rows if row[_value(column)] is not None and _covers_enough(row, column, rows)]
        values = [row[_value(column)] for row in found]
        if len(values) > 1 and min(values) < max(values):
            best[column] = min(values) if column in _LOWER_IS_BETTER else max(values)
    return best


def is_best(row: dict, column: str, best: dict[str, float], rows: list[dict]) -> bool:
    return column in best and row[_value(column)] == best[column] and _covers_enough(row, column, rows)


def cell_of(row: dict, column: str, sign: str, digits: int = 3) -> list[str]:
    """What a cell says first, and what stands below it; without its interval."""
    value = row[_value(column)]
    if column in MEASURES:
        if value is None:
            return [ABSENT]
        spread, n = row[f"{column}_sd"], row[f"{column}_n_scored"]
        below = [] if spread is None else [f"{sign}{spread:.{digits}f}"]
        return [f"{value:.{digits}f}", *below, *([f"n={n}"] if n < row["n_rows"] else [])]
    whole = {"accuracy": "n_valid", "accuracy_answered": "n_answered"}.get(column)
    share = [f"{row['n_correct']}/{row[whole]}"] if whole else []
    return [ABSENT if value is None else f"{100 * value:.1f}", *share]


def _ends(row: dict, column: str) -> tuple[float, float] | None:
    """The interval of a column's value, shares in percent."""
    low, high = (row[f"{column}_{end}"] for end in ("low", "high"))
    scale = 1 if column in MEASURES else 100
    return None if low is None else (scale * low, scale * high)


def bracketed(row: dict, column: str) -> list[str]:
    """As in ["[0.902, 0.978]"]; nothing where the value of a SUMMARY row has no interval."""
    digits = 3 if column in MEASURES else 1
    return [f"[{low:.{digits}f}, {high:.{digits}f}]" for low, high in filter(None, [_ends(row, column)])]


def interval_below(row: dict, column: str, stacked: bool) -> list[str]:
    """The interval in the little room of a terminal: ".90-.98", or 29-62 of percents; that of a score on two lines where the
    room is too little even for that; with a digit more, also on two, where both ends would read alike."""
    digits = 2 if column in MEASURES else 0
    if (ends := _ends(row, column)) is None:
        return []
    low, high = (_short(end, digits) for end in ends)
    alike = low == high
    if alike:
        low, high = (_short(end, digits + 1) for end in ends)
    return [f"{low}-", high] if alike or (stacked and column in MEASURES) else [f"{low}-{high}"]


def _short(value: float, digits: int) -> str:
    """Without the 0 before the point, and 1 without a second one behind it."""
    text = f"{value:.{digits}f}"
    return "1.0" if text == f"{1:.{digits}f}" and digits > 1 else text.removeprefix("0") or "0"


def small_print(blocks: list[tuple[str, list[dict]]], sign: str, below: str) -> str:
    """What the small print means, as far as there is any."""
    rows = [(row, block) for _, block in blocks for row in block]
    cells = [text for row, _ in rows for column in MEASURES for text in cell_of(row, column, sign)]
    partly = any(text.startswith("n=") for text in cells)
    unranked = any(mark_of(row, block) for row, block in rows)
    trials = any(row["n_rows"] != row["n_items"] for row, _ in rows)
    none = any(row[_value(c)] is not None and _ends(row, c) is None for row, _ in rows for c in COVERED)
    few = any(0 < row[f"{name}_n_items"] < FEW for row, _ in rows for name in MEASURES)
    more = _KEY_PARTLY * partly + _KEY_UNRANKED * unranked + _KEY_TRIALS * trials
    return (_KEY + more + _KEY_NONE * none + _KEY_FEW * few).format(sd=sign, below=below)
