"""The summary of a run as a table to read: ARIA-Rubrics Table 1 with the interval and the counts that a mean needs beside it.

One block per benchmark, the best model by ARIA first. In a terminal the best value of a column is bold; wherever there is no
colour (a file, a pipe) it carries a star instead, and plain ASCII is used if the output cannot encode more. A mean over few
rows is no rank: a model whose ARIA covers less than LEAST_COVERAGE of what the best covered model's does stands below the
others, marked with how many of its rows were scored, and no value that covers as little is the best of its column. Model names
and reasons are untrusted text: they are never read as markup, and what cannot be printed is spelled out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from operators.aggregate import MEASURES
from operators.analysis.estimates import FEW
from operators.schema import METRICS

MIN_WIDTH = 100
MAX_NAME = 80
MAX_REASONS = 20
LEAST_COVERAGE = 0.5
ABSENT = "-"
NOTHING = "No rows to show."
_LOWER_IS_BETTER = {"no_answer_rate"}
_HEADERS = {
    "accuracy": "Acc %\nof all",
    "accuracy_answered": "Acc %\nansw'd",
    "no_answer_rate": "No\nans %",
    "counts": "scored\nfailed",
}
_COVERED = {
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


class Leaderboard:
    """A rich renderable that suits itself to the console it is printed on; made by `render`."""

    def __init__(self, summary: pa.Table, failures: pa.Table | None = None) -> None:
        self.blocks = _blocks(summary)
        self.failures = failures

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        starred = console.color_system is None
        for benchmark, rows in self.blocks:
            yield Text(f"{printable(benchmark, options.encoding)}: {_items(rows)}", style="bold")
            wide = _block(rows, options, starred)
            # What it needs, and not what there is of it.
            needed = Measurement.get(console, options.update(max_width=10_000), wide).minimum
            yield wide if needed <= options.max_width else _block(rows, options, starred, stacked=True)
        if not self.blocks:
            yield Text(NOTHING)
            return
        best = "* best of its column. " if starred and any(len(rows) > 1 for _, rows in self.blocks) else ""
        yield Text(best + _key(self.blocks, "+-" if options.ascii_only else "±", "Below"), style="dim")
        if self.failures is not None and len(self.failures):
            yield _failure_lines(self.failures, options.encoding)


def render(summary: pa.Table, failures: pa.Table | None = None) -> Leaderboard:
    """What to give to `rich.console.Console.print`: readable from 100 columns, in colour or piped to a file.

    `summary` is that of `aggregate.summarise` (its overall rows are shown), `failures` that of
    `aggregate.failure_reasons`: with it, a list of what went wrong and how often stands below the table.
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
    parts, blocks = [], _blocks(summary)
    for benchmark, rows in blocks:
        best = _best(rows)
        heads = [
            "Model",
            *(f"M{i}" for i in range(1, 7)),
            "ARIA",
            "Acc % of all",
            "Acc % of answered",
            "No answer %",
        ]
        lines = [
            f"**{markdown_cell(benchmark)}**: {_items(rows)}",
            "",
            _row([*heads, "n_scored", "n_failed"]),
        ]
        lines.append(_row(["---", *["---:"] * (len(heads) + 1)]))
        for row in rows:
            cells = [f"{markdown_cell(row['model'])} {_mark(row, rows)}".strip()]
            for column in _COVERED:
                first, *below = _cell(row, column, "±")
                first = f"**{first}**" if _wins(row, column, best, rows) else first
                told = (f"({text})" if "/" in text else text for text in below)
                cells.append(" ".join([first, *told, *bracketed(row, column)]))
            lines.append(_row([*cells, str(row["aria_n_scored"]), str(row["aria_n_failed"])]))
        parts.append("\n".join(lines))
    if parts:
        best = "Bold: best of its column. " if any(len(rows) > 1 for _, rows in blocks) else ""
        parts.append(best + _key(blocks, "±", "Beside the values"))
    return "\n\n".join(parts or [NOTHING]) + "\n"


def printable(text: str | None, encoding: str = "utf-8", limit: int = MAX_NAME) -> str:
    r"""`text` on one line and within `encoding`; a control character is spelled out, as in `\x1b`."""
    if text is None:
        return ABSENT
    safe = "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )
    safe = safe if len(safe) <= limit else safe[: limit - 3] + "..."
    return safe.encode(encoding, errors="backslashreplace").decode(encoding)


def _blocks(summary: pa.Table) -> list[tuple[str, list[dict]]]:
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


def _value(column: str) -> str:
    return f"{column}_mean" if column in MEASURES else column


def _coverage(row: dict, column: str) -> float:
    """How many items' worth of rows the value of a column speaks for."""
    return sum(row[name] for name in _COVERED[column]) * row["n_items"] / max(row["n_rows"], 1)


def _covers_enough(row: dict, column: str, rows: list[dict]) -> bool:
    return _coverage(row, column) >= LEAST_COVERAGE * max(_coverage(other, column) for other in rows)


def _mark(row: dict, rows: list[dict]) -> str:
    """What stands beside the name of a model that is not ranked."""
    if row["aria_mean"] is None or _covers_enough(row, "aria", rows):
        return ""
    return f"({row['aria_n_scored']}/{row['n_rows']})"


def _best(rows: list[dict]) -> dict[str, float]:
    """The best value of each column in which models differ: one alone is not the best of anything."""
    best = {}
    for column in _COVERED:
        found = [row for row in rows if row[_value(column)] is not None and _covers_enough(row, column, rows)]
        values = [row[_value(column)] for row in found]
        if len(values) > 1 and min(values) < max(values):
            best[column] = min(values) if column in _LOWER_IS_BETTER else max(values)
    return best


def _wins(row: dict, column: str, best: dict[str, float], rows: list[dict]) -> bool:
    return column in best and row[_value(column)] == best[column] and _covers_enough(row, column, rows)


def _cell(row: dict, column: str, sign: str, digits: int = 3) -> list[str]:
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


def _below(row: dict, column: str, stacked: bool) -> list[str]:
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


def _key(blocks: list[tuple[str, list[dict]]], sign: str, below: str) -> str:
    """What the small print means, as far as there is any."""
    rows = [(row, block) for _, block in blocks for row in block]
    cells = [text for row, _ in rows for column in MEASURES for text in _cell(row, column, sign)]
    partly = any(text.startswith("n=") for text in cells)
    unranked = any(_mark(row, block) for row, block in rows)
    trials = any(row["n_rows"] != row["n_items"] for row, _ in rows)
    none = any(row[_value(c)] is not None and _ends(row, c) is None for row, _ in rows for c in _COVERED)
    few = any(0 < row[f"{name}_n_items"] < FEW for row, _ in rows for name in MEASURES)
    more = _KEY_PARTLY * partly + _KEY_UNRANKED * unranked + _KEY_TRIALS * trials
    return (_KEY + more + _KEY_NONE * none + _KEY_FEW * few).format(sd=sign, below=below)


def _block(rows: list[dict], options: ConsoleOptions, starred: bool, stacked: bool = False) -> Table:
    narrow = options.max_width < MIN_WIDTH - 8
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("Model", min_width=10, overflow="fold")
    for header in (*(f"M{i}" for i in range(1, len(METRICS) + 1)), "ARIA", *_HEADERS.values()):
        table.add_column(header, justify="right", no_wrap=True)
    best = _best(rows)
    sign = "+-" if options.ascii_only else "±"
    for row in rows:
        mark = _mark(row, rows)
        name = Text(printable(row["model"], options.encoding))
        cells = [name.append(f"\n{mark}", style="dim") if mark else name]
        for column in _COVERED:
            first, *below = _cell(row, column, sign, digits=2 if narrow else 3)
            # n= stands last.
            rest = below.pop() if below and below[-1].startswith("n=") else None
            below += [*_below(row, column, stacked), *filter(None, [rest])]
            wins = _wins(row, column, best, rows)
            text = Text().append(
                f"{first}*" if wins and starred else first, style="bold green" if wins else None
            )
            cells.append(text.append("".join(f"\n{line}" for line in below), style="dim"))
        cells.append(Text(f"{row['aria_n_scored']}\n{row['aria_n_failed']}"))
        table.add_row(*cells)
    return table


def _items(rows: list[dict]) -> str:
    """As in "20 items", "2 to 3 items"; with several trials of an item also how many rows they make."""
    items, lines = ({row[name] for row in rows} for name in ("n_items", "n_rows"))
    told = f"{_span(items)} item" + ("" if items == {1} else "s")
    return told if all(row["n_items"] == row["n_rows"] for row in rows) else f"{told}, {_span(lines)} rows"


def _span(counts: set[int]) -> str:
    return str(min(counts)) if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


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


def markdown_cell(text: str | None, limit: int = MAX_NAME) -> str:
    """Untrusted text for a table cell, with all that Markdown or HTML would take for markup escaped."""
    safe = printable(text, limit=limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return "".join(f"\\{char}" if char in "\\`*_{}[]()#|!~$" else char for char in safe)
