"""Sections of a report on MUGEN and audit runs, as titles, drawings and tables; values are those of the run's Parquet.

MUGEN Tables 2 and 3 and Figure 3, with the trials curve and position bias; counterfactual audits: state masses, the
protocol gap, accuracies of the probes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.reporting.drawing import draw
from operators.reporting.overview import provenance
from operators.reporting.series_charts import accuracy_lines, position_bars, protocol_gaps, state_bars

MUGEN_TABLES = ("summary", "scaling", "curve", "positions", "agreement")
AUDIT_TABLES = ("accuracy", "states", "rates")
_WILSON = "Lines up and down are Wilson's 95% intervals."
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
    """Accuracy and gains, the trials curve, scaling with candidates, position bias, agreement, provenance."""
    rows = {key: table.to_pylist() for key, table in tables.items()}
    summary = [row for row in rows["summary"] if row["group_kind"] != "task"]
    places = [{**row, "position": row["position"] + 1} for row in rows["positions"]]
    who = ("prompt", "permuted", "voting", "n_candidates")
    drawings = [
        _figure("Accuracy by number of trials", _WILSON,
                accuracy_lines(rows["curve"], who, "n_trials", "trials that vote")),
        _figure("Accuracy by number of candidates", _WILSON,
                accuracy_lines(rows["scaling"], ("strategy", "reference"), "n_candidates", "candidate clips")),
        _figure("Position bias", "Bars: how often a position was chosen; marks: how often if position played no part.",
                position_bars(rows["positions"], who)),
    ]  # fmt: skip
    return [
        _section(f"mugen-{name}", f"Many clips per question: {name}", drawings, [
            _table("Accuracy by strategy and dimension; gains over direct answers by a paired bootstrap over items", summary),
            _table("Position bias: chi-square of chosen against expected positions, each item with its trials as one case", places),
            _table("Agreement between the trials of an item", rows["agreement"]),
        ]),
        _provenance(record, name),
    ]  # fmt: skip


def audit_sections(tables: Tables, record: Mapping[str, Any], name: str) -> list[Section]:
    """State stack bars, the protocol gap, accuracies of the probes, provenance."""
    rows = {key: table.to_pylist() for key, table in tables.items()}
    drawings = [
        _figure("Diagnostic states", "P, O, J in this order: 110 hears the cue, knows the answer to it, and judges wrong.",
                state_bars(rows["states"])),
        _figure("Protocol gap", "Lines are 95% bootstrap intervals over items.", protocol_gaps(rows["rates"])),
    ]  # fmt: skip
    return [
        _section(f"audit-{name}", f"Judge audit: {name}", drawings, [
            _table("What the states come to", rows["rates"]),
            _table("Masses of the states", rows["states"]),
            _table("Accuracy of every probe", rows["accuracy"]),
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


def _table(caption: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """All columns in which any row has a value. `ends`: the places of an estimate's interval, which is shown with it;
    `reals`: the places of what is no count; `constant`: the places of what every row says, which is said once."""
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
        "columns": columns,
        "rows": cells,
        "ends": ends,
        "reals": [p for p in range(len(columns)) if any(isinstance(row[p], float) for row in cells)],
        "constant": [p for p in shown if len(cells) > 1 and len({row[p] for row in cells}) == 1],
    }


def _figure(title: str, caption: str, spec: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return spec and {"title": title, "caption": caption, "tree": draw(spec)}
