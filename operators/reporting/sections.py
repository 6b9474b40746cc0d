"""Sections of a report on MUGEN and audit runs, as titles, drawings and tables; values are those of the run's Parquet.

MUGEN Tables 2 and 3 and Figure 3, with the trials curve and position bias; counterfactual audits: state masses, the
protocol gap, accuracies of the probes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.analysis.estimates import FEW
from operators.audit.tables import GROUP
from operators.reporting.drawing import draw
from operators.reporting.overview import provenance
from operators.reporting.series_charts import accuracy_lines, position_bars, protocol_gaps, state_bars

MUGEN_TABLES = ("summary", "scaling", "curve", "positions", "agreement")
AUDIT_TABLES = ("accuracy", "states", "rates", "instances")
_WILSON = "Lines up and down are Wilson's 95% intervals over {}."
_OVER_ITEMS = "Intervals: Wilson's over items, the answers about one item being one case."
# Estimates, and what their intervals are called: accuracy has wilson_low and wilson_high.
_ENDS = {
    "accuracy": "wilson", "gain": "gain", "agreement": "agreement", "unanimous": "unanimous", "mass": "wilson",
    "turn_accuracy": "turn", "contrast_accuracy": "contrast", "said_first": "said_first", "youden_j": "youden",
    "voice_changes": "voice", "order_consistency": "order", "conditional_potemkin": "conditional", "protocol_gap": "gap",
    "cue_dependence": "cue", "cue_dependence_pairwise": "cue_pairwise",
}  # fmt: skip

Section = dict[str, Any]
Tables = Mapping[str, pa.Table]


def mugen_sections(tables: Tables, record: Mapping[str, Any], name: str) -> list[Section]:
    """Accuracy and gains, accuracy by task, the trials curve, scaling with candidates, position bias, agreement, provenance."""
    rows = {key: table.to_pylist() for key, table in tables.items()}
    summary, tasks = (
        [row for row in rows["summary"] if (row["group_kind"] == "task") == of_a_task]
        for of_a_task in (False, True)
    )
    places = [{**row, "position": row["position"] + 1} for row in rows["positions"]]
    who = ("prompt", "permuted", "voting", "n_candidates")
    drawings = [
        _figure("Accuracy by number of trials", _WILSON.format(_spoken(rows["curve"], "n_items")),
                accuracy_lines(rows["curve"], who, "n_trials", "trials that vote")),
        _figure("Accuracy by number of candidates", _WILSON.format(_spoken(rows["scaling"], "n_items")),
                accuracy_lines(rows["scaling"], ("strategy", "reference"), "n_candidates", "candidate clips")),
        _figure("Position bias", "Bars: how often a position was chosen; marks: how often if position played no part. "
                f"Counts, of {_spoken(rows['positions'], 'n_items')}; the test stands in the table below.",
                position_bars(rows["positions"], who)),
    ]  # fmt: skip
    return [
        _section(f"mugen-{name}", f"Many clips per question: {name}", drawings, [
            _table("Accuracy by strategy and dimension; gains over direct answers", summary,
                   "Intervals: accuracy Wilson's, gain a percentile bootstrap of pairs over items, none where all gain alike; half width: half of Wald's "
                   "interval, as MUGEN's Table 2 has it." + _few(summary, "n_valid")),
            _table("Accuracy by strategy and task", tasks, "Intervals: Wilson's; half width: half of Wald's interval."
                   + _few(tasks, "n_valid")),
            _table("Position bias: chi-square of chosen against expected positions, each item with its trials as one case",
                   places, _OVER_ITEMS + _few(places, "n_items")),
            _table("Agreement between the trials of an item", rows["agreement"],
                   "Intervals: Wilson's, of a mean over items." + _few(rows["agreement"], "n_items")),
        ]),
        _provenance(record, name),
    ]  # fmt: skip


def audit_sections(tables: Tables, record: Mapping[str, Any], name: str) -> list[Section]:
    """State stack bars, the protocol gap, accuracies of the probes, provenance."""
    rows = {key: table.to_pylist() for key, table in tables.items()}
    gaps = [row for row in rows["rates"] if row["protocol_gap"] is not None]
    drawings = [
        _figure("Diagnostic states", "P, O, J in this order: 110 hears the cue, knows the answer to it, and judges wrong. Shares "
                f"of {_spoken(rows['states'], 'n_instances', 'instances')} a bar; their intervals stand in the table below.",
                state_bars(rows["states"])),
        _figure("Protocol gap", f"Lines are 95% bootstrap intervals over {_spoken(gaps, 'n_gap_items')}.", protocol_gaps(gaps)),
    ]  # fmt: skip
    few = _few(_items_of(rows["instances"]), "n_items")
    return [
        _section(f"audit-{name}", f"Judge audit: {name}", drawings, [
            _table("What the states come to", rows["rates"], "Intervals: conditional potemkin Wilson's over items; the gap and "
                   f"the cue dependences percentile bootstraps over items.{few}"),
            _table("Masses of the states", rows["states"], _OVER_ITEMS + few),
            _table("Accuracy of every probe", rows["accuracy"], _OVER_ITEMS + " Of accuracies, a call asked in both orders is one; "
                   f"Youden's J adds the ends of its two shares.{few}"),
        ]),
        _provenance(record, name),
    ]  # fmt: skip


def _section(key: str, title: str, figures: Sequence[Any] = (), tables: Sequence[Any] = ()) -> Section:
    kept = {"figures": [one for one in figures if one], "tables": [one for one in tables if one["rows"]]}
    return {"id": key, "title": title, **kept}


def _provenance(record: Mapping[str, Any], name: str) -> Section:
    return {
        **_section(f"provenance-{name}", "Provenance"),
        "runs": [{"name": name, **provenance(record)}],
    }


def _items_of(instances: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
    """How many items stand behind every judge, control and cue: `n_items`."""
    found: dict[tuple, set] = {}
    for row in instances:
        found.setdefault(tuple(row[name] for name in GROUP), set()).add(row["item_id"])
    return [{"n_items": len(items)} for items in found.values()]


def _spoken(rows: Sequence[Mapping[str, Any]], column: str, noun: str = "items") -> str:
    """The counts of a column: "12 items", "2 to 12 items"; an older run may not have counted."""
    counts = [row[column] for row in rows if row[column] is not None]
    if rows and not counts:
        return f"{noun} that the run did not count"
    least, most = min(counts, default=0), max(counts, default=0)
    return f"{least if least == most else f'{least} to {most}'} {noun}"


def _few(rows: Sequence[Mapping[str, Any]], column: str) -> str:
    """What to say of the smallest number of items that any row rests on; nothing where none is small."""
    least = min((row[column] for row in rows if row[column] is not None), default=FEW)
    return (
        f" Few items in some rows ({least} at the least): their intervals are rough." if least < FEW else ""
    )


def _table(caption: str, rows: Sequence[Mapping[str, Any]], method: str = "") -> dict[str, Any]:
    """All columns in which any row has a value. `method`: how intervals were made, and few items. `ends`: the places of an
    estimate's interval, which is shown with it; `reals`: the places of what is no count; `constant`: the places of what every
    row says, which is said once."""
    columns = [name for name in (rows[0] if rows else {}) if any(row[name] is not None for row in rows)]
    ends = {}
    for name, stem in _ENDS.items():
        pair = [f"{stem}_{end}" for end in ("low", "high")]
        if {name, *pair} <= set(columns):
            ends[columns.index(name)] = [columns.index(end) for end in pair]
    beside = {place for pair in ends.values() for place in pair}
    cells = [[row[name] for name in columns] for row in rows]
    shown = [place for place in range(len(columns)) if place not in ends and place not in beside]
    return {
        "caption": caption,
        "method": method,
        "columns": columns,
        "rows": cells,
        "ends": ends,
        "reals": [p for p in range(len(columns)) if any(isinstance(row[p], float) for row in cells)],
        "constant": [p for p in shown if len(cells) > 1 and len({row[p] for row in cells}) == 1],
    }


def _figure(title: str, caption: str, spec: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return spec and {"title": title, "caption": caption, "tree": draw(spec)}
