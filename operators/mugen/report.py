"""What a MUGEN run prints: tables in the shape of the paper's Tables 2 and 3 and Figure 3, and what lies behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.mugen.presentation import DIMENSIONS
from operators.mugen.tables import grouped
from operators.printing import ABSENT, MIN_WIDTH, printable

METHODS = {
    "direct": "Orig.",
    "cot": "CoT",
    "sc": "SC",
    "apsc": "APSC",
    "sc_cot": "SC+CoT",
    "apsc_cot": "APSC+CoT",
}
Row = dict[str, Any]


def percent(share: float | None, digits: int = 2) -> str:
    """A share as the paper prints it, 0.28691 as "28.69"; a dash for none."""
    return ABSENT if share is None else f"{100 * share:.{digits}f}"


def with_interval(row: Row, sign: str = "±") -> str:
    """ "46.67±7.98": accuracy and half the width of its normal-approximation interval, in percent, as in Table 2."""
    return (
        ABSENT if row["accuracy"] is None else f"{percent(row['accuracy'])}{sign}{percent(row['half_width'])}"
    )


def method(strategy: str) -> str:
    """A strategy under the name of Table 3; another one under its own."""
    return METHODS.get(strategy, strategy)


def show(
    summary: pa.Table,
    scaling: pa.Table,
    curve: pa.Table,
    positions: pa.Table,
    agreement: pa.Table,
    file: TextIO | None = None,
) -> None:
    """Print all tables of a run, or those that the given (perhaps empty) tables allow."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH + 20)
    for block in (
        *accuracy_tables(summary), *gain_tables(summary), *scaling_tables(scaling), *set_lines(curve, positions, agreement)
    ):  # fmt: skip
        console.print(block)


def accuracy_tables(summary: pa.Table) -> Iterable[Text | Table]:
    """As Table 2: a row per model and strategy, a column per dimension; below, Wilson's interval and counts."""
    rows = _not_tasks(summary)
    for (benchmark, n), members in grouped(rows, ("benchmark", "n_candidates")).items():
        present = {row["group"] for row in members if row["group_kind"] == "dimension"}
        dimensions = [d for d in DIMENSIONS if d in present] + sorted(present - set(DIMENSIONS))
        yield _title(f"{printable(benchmark)}: accuracy in % ±95%, Wilson 95% below{_of(n)}")
        table = _table(1)
        for name in ("Model", "Method", *(DIMENSIONS.get(d, d) for d in dimensions), "Overall"):
            table.add_column(
                _plain(name), justify="left" if name in ("Model", "Method") else "right", overflow="fold"
            )
        for (model, strategy), cells in grouped(members, ("model", "strategy")).items():
            by_group = {(row["group_kind"], row["group"]): row for row in cells}
            overall = by_group["overall", "all"]
            shown = [by_group.get(("dimension", d)) for d in dimensions] + [overall]
            counts = f"{overall['n_correct']}/{overall['n_valid']}"
            table.add_row(
                _plain(model),
                Text(f"{method(strategy)}\n").append(counts, style="dim"),
                *(_accuracy_cell(row) for row in shown),
            )
        yield table
        yield from (Text(line, style="dim") for line in _asides(members, benchmark))


def _accuracy_cell(row: Row | None) -> Text:
    if row is None or row["accuracy"] is None:
        return Text(ABSENT)
    wilson = f"{percent(row['wilson_low'], 1)}-{percent(row['wilson_high'], 1)}"
    return Text(f"{with_interval(row)}\n").append(wilson, style="dim")


def _asides(members: Sequence[Row], benchmark: str) -> Iterable[str]:
    """What went wrong, one line per model and strategy for which anything did."""
    for row in members:
        if row["group_kind"] != "overall":
            continue
        told = [
            (
                row["n_items"] - row["n_valid"],
                f"items that cannot be judged (were all wrong: {percent(row['n_correct'] / row['n_items'])} % right)",
            ),
            (row["n_failed"], "items without any response (not right)"),
            (row["n_unanswered"], "items whose trials name no single option (not right)"),
            (row["n_unparsed"], "unreadable trials"),
            (row["n_missing"], "missing trials"),
            (row["n_ties"], "ties"),
        ]
        if parts := [f"{count} {what}" for count, what in told if count]:
            yield f"  {printable(row['model'])}, {method(row['strategy'])}: {', '.join(parts)}"


def gain_tables(summary: pa.Table) -> Iterable[Text | Table]:
    """As Table 3: methods by models, gain over the single direct answer with its paired bootstrap interval, and cost."""
    overall = [row for row in _not_tasks(summary) if row["group_kind"] == "overall"]
    for (benchmark, n), members in grouped(overall, ("benchmark", "n_candidates")).items():
        strategies = {row["strategy"] for row in members}
        if len(strategies) < 2:
            continue
        models = list(dict.fromkeys(row["model"] for row in members))
        what = "accuracy in %, gain in points [95%], p, further generations per item and point"
        yield _title(f"{printable(benchmark)}: {what}{_of(n)}")
        table = _table(2)
        table.add_column("Method")
        for model in models:
            table.add_column(_plain(model), justify="right", overflow="fold")
        cells = {(row["strategy"], row["model"]): row for row in members}
        order = [s for s in METHODS if s in strategies] + sorted(strategies - set(METHODS))
        for strategy in order:
            table.add_row(
                _plain(method(strategy)), *(_gain_cell(cells.get((strategy, model))) for model in models)
            )
        yield table


def _gain_cell(row: Row | None) -> Text:
    if row is None:
        return Text(ABSENT)
    text = Text(percent(row["accuracy"]))
    if row["gain"] is not None:
        ends = [row[name] for name in ("gain_low", "gain_high", "gain_p")]
        told = (
            ""
            if None in ends
            else " [{:+.2f}, {:+.2f}], p {:.3f}".format(*(100 * e for e in ends[:2]), ends[2])
        )
        cost = f", {row['generations_per_point']:.2f}/point" if row["generations_per_point"] else ""
        text.append(f" {100 * row['gain']:+.2f}{told}{cost}", style="dim")
    return text


def scaling_tables(scaling: pa.Table) -> Iterable[Text | Table]:
    """As Figure 3: accuracy by number of candidates and Acc(n)/Acc(2), without and with reference audio."""
    rows = scaling.to_pylist()
    for (benchmark,), members in grouped(rows, ("benchmark",)).items():
        counts = sorted({row["n_candidates"] for row in members})
        yield _title(f"{printable(benchmark)}: accuracy in % ±95% with n candidates, Acc(n)/Acc(2) below")
        table = _table(2)
        for name in ("Model", "Method", "Reference", "Items", *(f"n = {n}" for n in counts)):
            table.add_column(name, justify="right" if "=" in name or name == "Items" else "left")
        for key, cells in grouped(members, ("model", "strategy", "reference")).items():
            by_n = {row["n_candidates"]: row for row in cells}
            items = str(cells[0]["n_items"])
            table.add_row(
                _plain(key[0]),
                _plain(method(key[1])),
                key[2],
                items,
                *(_scaling_cell(by_n.get(n)) for n in counts),
            )
        yield table


def _scaling_cell(row: Row | None) -> Text:
    if row is None:
        return Text(ABSENT)
    relative = row["relative_to_two"]
    return Text(f"{with_interval(row)}\n").append(
        ABSENT if relative is None else f"{100 * relative:.1f}%", style="dim"
    )


def set_lines(curve: pa.Table, positions: pa.Table, agreement: pa.Table) -> Iterable[Text]:
    """Per set of generations: which positions were chosen, accuracy where the right clip stood there, the agreement
    of trials, and the accuracy of the first 1, 2, ... trials."""
    names = ("model", "benchmark", "n_candidates", "prompt", "permuted", "voting")
    curves, agreements = (grouped(table.to_pylist(), names) for table in (curve, agreement))
    for key, rows in grouped(positions.to_pylist(), names).items():
        order = "permuted" if key[4] else "original order"
        text = Text(f"\n{printable(key[0])}, {printable(key[3])}, {order}{_of(key[2])}\n", style="bold")
        text.append(_cells("chosen position  ", [f"{row['n_chosen']}" for row in rows]))
        if rows[0]["p"] is not None:
            text.append(
                f"   chi-square by item {rows[0]['chi_square']:.2f}, df {rows[0]['degrees']}, p {rows[0]['p']:.2g}"
            )
        text.append("\n" + _cells("% right, gold at ", [percent(row["accuracy"], 1) for row in rows]))
        if together := agreements.get(key):
            pairs, all_alike = (_agreeing(together[0], name) for name in ("agreement", "unanimous"))
            text.append(
                f"\npairs of trials agree {pairs}, all trials of {all_alike} of {together[0]['n_items']} items"
            )
        if len(curves.get(key, [])) > 1:
            text.append(
                "\n" + _cells("% right by trials", [percent(row["accuracy"], 1) for row in curves[key]])
            )
        yield text


def _agreeing(row: Row, name: str) -> str:
    low, high = (percent(row[f"{name}_{end}"], 1) for end in ("low", "high"))
    return f"{percent(row[name], 1)} % ({low} to {high})"


def _cells(label: str, cells: Sequence[str]) -> str:
    return f"{label} " + " ".join(f"{cell:>6}" for cell in cells)


def _title(text: str) -> Text:
    """A line of its own: a table's own title wraps where the table is narrow."""
    return Text(f"\n{text}", style="bold")


def _table(padding: int) -> Table:
    return Table(box=box.SIMPLE_HEAD, padding=(0, padding, 0, 0), pad_edge=False)


def _plain(text: str | None) -> Text:
    """Names come from users' files: as they are, without markup or control characters."""
    return Text(printable(text))


def _of(n: int | None) -> str:
    return "" if n is None else f", {n} candidates"


def _not_tasks(summary: pa.Table) -> list[Row]:
    return summary.filter(pc.not_equal(summary["group_kind"], "task")).to_pylist()
