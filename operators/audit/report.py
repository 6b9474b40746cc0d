"""What an audit prints: accuracies, states, rates, and the diagnosis of each judge in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

import pyarrow as pa
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from operators.audit.findings import findings, leaks
from operators.audit.presentation import PROBES
from operators.audit.tables import grouped
from operators.audit_states import STATE_NAMES
from operators.printing import ABSENT, MIN_WIDTH, printable

HEADS = {
    "pointwise": "Pointwise J", "pairwise": "Pairwise J", "perception": "P", "oracle": "O", "staging": "Staging",
}  # fmt: skip
Row = Mapping[str, Any]


def show(tables: Mapping[str, pa.Table], file: TextIO | None = None) -> None:
    """Print the tables of `operators.audit.tables.tables`."""
    console = Console(file=file, highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, MIN_WIDTH + 20)
    accuracy, states, rates = (tables[name].to_pylist() for name in ("accuracy", "states", "rates"))
    for block in (accuracy_table(accuracy), state_table(states), state_names(), rate_table(rates, accuracy)):
        console.print(block)
    for line in diagnosis_lines(accuracy, states, rates):
        console.print(line)


def judge_name(row: Row) -> str:
    """A judge and, where it was not itself, the control: "my-model, text only"; a bluff goes by its own name."""
    if row["control"] in ("none", row["model"]):
        return printable(row["model"])
    return f"{printable(row['model'])}, {row['control'].replace('_', ' ')}"


def percent(share: float | None, digits: int = 1) -> str:
    """0.9101 as "91.0"; a dash for none."""
    return ABSENT if share is None else f"{100 * share:.{digits}f}"


def points(value: float | None, low: float | None, high: float | None) -> str:
    """A difference of accuracies, in points, and its interval on a second line."""
    if value is None:
        return ABSENT
    return f"{100 * value:+.1f}" + ("" if low is None else f"\n{100 * low:.1f} to {100 * high:.1f}")


def _share(value: float | None, low: float | None, high: float | None) -> str:
    return ABSENT if value is None else f"{percent(value)}\n{percent(low)} to {percent(high)}"


def _ratio(value: float | None, low: float | None, high: float | None) -> str:
    return ABSENT if value is None else f"{value:+.2f}\n{low:.2f} to {high:.2f}"


def accuracy_table(accuracy: Sequence[Row]) -> Table:
    """As the paper's tables 7, 8, 13 to 20: a row per judge and cue, a column per probe."""
    whole = [row for row in accuracy if row["split"] == "all"]
    table = _table(
        f"{_benchmark(whole)}: accuracy in %, 95% Wilson and counts below; P: every turn right, per turn below"
    )
    for name in ("Judge", "Cue", *(HEADS[probe] for probe in PROBES)):
        table.add_column(name, justify="left" if name in ("Judge", "Cue") else "right")
    for (_, _, cue), rows in grouped(whole, ("model", "control", "cue")).items():
        by_probe = {row["probe"]: row for row in rows}
        table.add_row(
            Text(judge_name(rows[0])), Text(cue), *(_accuracy_cell(by_probe.get(probe)) for probe in PROBES)
        )
    return table


def _accuracy_cell(row: Row | None) -> Text:
    if row is None:
        return Text(ABSENT)
    counts = f"{row['n_correct']}/{row['n_scored']}"
    below = (
        f"{percent(row['wilson_low'])}-{percent(row['wilson_high'])} {counts}" if row["n_scored"] else counts
    )
    if row["turn_accuracy"] is not None:
        below += f"\nper turn {percent(row['turn_accuracy'])}"
    lost = row["n_unparsed"] + row["n_failed"]
    return Text(percent(row["accuracy"])).append(
        f"\n{below}" + (f"\n{lost} null" if lost else ""), style="dim"
    )


def state_table(states: Sequence[Row]) -> Table:
    """The states of section 3.3 by their codes: masses in %; `state_names` says what they mean."""
    table = _table("states (P, O, J): mass in % of the n cases with all three outcomes")
    for name in ("Judge", "Cue", "n", *STATE_NAMES):
        table.add_column(name, justify="left" if name in ("Judge", "Cue") else "right")
    for (_, _, cue), rows in grouped(states, ("model", "control", "cue")).items():
        excluded = f"\n{rows[0]['n_excluded']} null" if rows[0]["n_excluded"] else ""
        masses = {row["state"]: percent(row["mass"]) for row in rows}
        n = f"{rows[0]['n_instances']}{excluded}"
        table.add_row(Text(judge_name(rows[0])), Text(cue), n, *map(masses.get, STATE_NAMES))
    return table


def state_names() -> Text:
    """What the codes mean, one line each."""
    return Text("\n".join(f"{state} {name}" for state, name in STATE_NAMES.items()), style="dim")


def rate_table(rates: Sequence[Row], accuracy: Sequence[Row]) -> Table:
    """Masses and rates of each judge and cue."""
    table = _table(
        "rates: masses in %, differences in points with 95% bootstrap intervals over items; others' are Wilson's"
    )
    heads = (
        "Judge", "Cue", "Reliable", "Potemkin", "Cond.\nPotemkin", "Protocol\ngap", "Cue de-\npendence", "Youden's\nJ",
        "Voice\nchanges", "Order\nkept",
    )  # fmt: skip
    for name in heads:
        table.add_column(name, justify="left" if name in ("Judge", "Cue") else "right")
    native = {
        tuple(row[name] for name in ("model", "control", "cue")): row
        for row in accuracy
        if row["probe"] == "pointwise" and row["split"] == "all"
    }
    for row in rates:
        habits = native.get((row["model"], row["control"], row["cue"]), {})
        table.add_row(
            Text(judge_name(row)),
            row["cue"],
            percent(row["reliable_mass"]),
            percent(row["potemkin_mass"]),
            f"{percent(row['conditional_potemkin'])}\nof {row['n_both_probes'] or 0}",
            points(row["protocol_gap"], row["gap_low"], row["gap_high"]),
            points(row["cue_dependence"], row["cue_low"], row["cue_high"]),
            _ratio(habits.get("youden_j"), habits.get("youden_low"), habits.get("youden_high")),
            _share(habits.get("voice_changes"), habits.get("voice_low"), habits.get("voice_high")),
            _share(habits.get("order_consistency"), habits.get("order_low"), habits.get("order_high")),
        )
    return table


def diagnosis_lines(accuracy: Sequence[Row], states: Sequence[Row], rates: Sequence[Row]) -> Iterable[Text]:
    """One paragraph per judge and diagnosis; the numbers behind it are on the page. Controls are no judges to diagnose."""
    yield Text("what the judge fails at", style="bold")
    said: dict[tuple[str, str], list[str]] = {}
    for found in findings(accuracy, states, rates):
        if found.control == "none":
            said.setdefault((printable(found.model), found.headline), []).append(found.cue)
    for (name, headline), cues in said.items():
        yield Text(f"{name}, {'cues' if len(cues) > 1 else 'cue'} {', '.join(cues)}: ").append(headline)
    yield from (Text(line) for line in leaks(accuracy))


def _benchmark(rows: Sequence[Row]) -> str:
    return ", ".join(dict.fromkeys(printable(row["benchmark"]) for row in rows))


def _table(title: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, title=Text(title, style="bold"))
    table.title_justify = "left"
    return table
