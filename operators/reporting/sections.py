"""Sections of a report on MUGEN and audit runs, as titles, drawings and tables; values are those of the run's Parquet.

MUGEN Tables 2 and 3 and Figure 3, with the trials curve and position bias; counterfactual audits, Figure 2 (state
masses) and the protocol gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.audit_states import STATE_NAMES
from operators.reporting.charts import cycled
from operators.reporting.drawing import DASHES, PALETTE, SHAPES, draw
from operators.reporting.overview import provenance

Rows = Sequence[Mapping[str, Any]]
Section = dict[str, Any]

MUGEN_TABLES = ("summary", "scaling", "curve", "positions", "agreement")
AUDIT_TABLES = ("accuracy", "states", "rates")


def mugen_sections(tables: Mapping[str, pa.Table], record: Mapping[str, Any], name: str) -> list[Section]:
    """Accuracy and gains, the trials curve, scaling with candidates, position bias, agreement, provenance."""
    rows = {key: table.to_pylist() for key, table in tables.items()}
    summary = [row for row in rows["summary"] if row["group_kind"] != "task"]
    found = [
        _section(
            "mugen",
            f"Many clips per question: {name}",
            tables=[
                _table(
                    "Accuracy by strategy and dimension; gains over direct answers, paired bootstrap over items",
                    summary,
                )
            ],
        ),
    ]
    drawings = [
        _line("Accuracy by number of trials", rows["curve"], "n_trials", "trials that vote"),
        _line(
            "Accuracy by number of candidates",
            rows["scaling"],
            "n_candidates",
            "candidate clips",
            reference="reference",
        ),
        _positions(rows["positions"]),
    ]
    found.append(_section("curves", "Trials, candidates, positions", figures=[one for one in drawings if one],
                          tables=[_table("Position bias: chi-square of the chosen against the expected positions", rows["positions"]),
                                  _table("Agreement of the trials of an item", rows["agreement"])]))  # fmt: skip
    found.append(
        {**_section("provenance-mugen", "Provenance"), "runs": [{"name": name, **provenance(record)}]}
    )
    return found


def audit_sections(tables: Mapping[str, pa.Table], record: Mapping[str, Any], name: str) -> list[Section]:
    """State stack bars, the protocol gap, accuracies of the probes, provenance."""
    rows = {key: table.to_pylist() for key, table in tables.items()}
    figures = [one for one in (_states(rows["states"]), _gaps(rows["rates"])) if one]
    shown = [_table("Masses of the states", rows["states"]), _table("Accuracy of every probe", rows["accuracy"]),
             _table("What the states come to", rows["rates"])]  # fmt: skip
    return [
        _section("audit", f"Judge audit: {name}", figures=figures, tables=shown),
        {**_section("provenance-audit", "Provenance"), "runs": [{"name": name, **provenance(record)}]},
    ]


def _section(key: str, title: str, figures: Sequence[Any] = (), tables: Sequence[Any] = ()) -> Section:
    return {
        "id": key,
        "title": title,
        "figures": list(figures),
        "tables": [one for one in tables if one["rows"]],
    }


def _table(caption: str, rows: Rows) -> dict[str, Any]:
    """All columns of `rows` in which any row has a value."""
    columns = [name for name in (rows[0] if rows else {}) if any(row[name] is not None for row in rows)]
    return {"caption": caption, "columns": columns, "rows": [[row[name] for name in columns] for row in rows]}


def _figure(title: str, caption: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    return {"title": title, "caption": caption, "tree": draw(spec)}


def _label(row: Mapping[str, Any], names: Sequence[str]) -> str:
    """What tells a row from its neighbours: "model, cot, permuted, 5 candidates"."""
    said = {
        "permuted": {True: "permuted", False: "fixed order"},
        "voting": {True: "sampled for votes", False: "single"},
    }
    parts = [said.get(name, {}).get(row.get(name), row.get(name)) for name in names]
    candidates = row.get("n_candidates") if "n_candidates" in names else None
    return ", ".join([*(str(part) for part in parts if part is not None and part != candidates),
                      *([f"{candidates} candidates"] if candidates else [])])  # fmt: skip


_WHO = ("model", "prompt", "permuted", "voting", "n_candidates")


def _line(
    title: str, rows: Rows, x: str, x_title: str, reference: str | None = None
) -> dict[str, Any] | None:
    names = ("model", "strategy", reference) if reference else _WHO
    values = [{"series": _label(row, names), "x": row[x], "accuracy": row["accuracy"],
               "low": row["wilson_low"], "high": row["wilson_high"]}
              for row in rows if row["accuracy"] is not None and row[x] is not None]  # fmt: skip
    if len({row["x"] for row in values}) < 2:
        return None
    series = list(dict.fromkeys(row["series"] for row in values))
    colour = {
        "field": "series",
        "type": "nominal",
        "scale": {"domain": series, "range": cycled(PALETTE, len(series))},
    }
    place = {"field": "x", "type": "ordinal", "title": x_title, "axis": {"labelAngle": 0}}
    y = {"field": "accuracy", "type": "quantitative", "title": "accuracy", "scale": {"zero": False}}
    dash = {**colour, "scale": {"domain": series, "range": cycled(DASHES, len(series))}}
    shape = {**colour, "scale": {"domain": series, "range": cycled(SHAPES, len(series))}}
    legend = {"config": {"legend": _wide_legend()}}
    return _figure(title, "Bars are Wilson's 95% intervals.", {
        "data": {"values": values}, "width": 300, "height": 220, **legend,
        "layer": [
            {"mark": {"type": "rule", "opacity": 0.6}, "encoding": {"x": place, "y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour}},
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {"x": place, "y": y, "color": colour, "strokeDash": dash}},
            {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1}, "encoding": {"x": place, "y": y, "color": colour, "shape": shape}},
        ],
    })  # fmt: skip


def _wide_legend() -> dict[str, Any]:
    return {
        "orient": "bottom",
        "columns": 1,
        "labelLimit": 320,
        "title": None,
        "labelColor": "currentColor",
        "labelFontSize": 12,
    }


def _positions(rows: Rows) -> dict[str, Any] | None:
    values = [{"series": _label(row, _WHO), "position": row["position"] + 1, "chosen": row["n_chosen"], "expected": row["n_expected"]}
              for row in rows]  # fmt: skip
    if not values:
        return None
    x = {"field": "position", "type": "ordinal", "title": "position of the option", "axis": {"labelAngle": 0}}
    y = {"type": "quantitative", "title": "times chosen"}
    facet = {
        "field": "series",
        "type": "nominal",
        "title": None,
        "sort": list(dict.fromkeys(row["series"] for row in values)),
    }
    return _figure("Position bias", "Bars: how often a position was chosen; marks: how often if position played no part.", {
        "data": {"values": values}, "facet": facet, "columns": 1,
        "spec": {"width": 280, "height": 90, "layer": [
            {"mark": {"type": "bar", "color": PALETTE[0], "opacity": 0.8}, "encoding": {"x": x, "y": {**y, "field": "chosen"}}},
            {"mark": {"type": "tick", "color": PALETTE[1], "thickness": 3, "width": 26}, "encoding": {"x": x, "y": {**y, "field": "expected"}}},
        ]},
    })  # fmt: skip


_ABOUT = ("model", "benchmark", "kind", "control", "cue", "branch", "order")


def _states(rows: Rows) -> dict[str, Any] | None:
    values = [{"name": _label(row, [name for name in _ABOUT if name in row]), "state": f"{row['state']} {STATE_NAMES[row['state']]}",
               "order": list(STATE_NAMES).index(row["state"]), "mass": row["mass"]}
              for row in rows if row["mass"] is not None]  # fmt: skip
    if not values:
        return None
    states = [f"{code} {name}" for code, name in STATE_NAMES.items()]
    y = {
        "field": "name",
        "type": "nominal",
        "title": None,
        "axis": {"labelLimit": 170},
        "sort": list(dict.fromkeys(row["name"] for row in values)),
    }
    return _figure("Diagnostic states", "P, O, J in this order: 110 hears the cue and knows the answer to it, and judges wrong.", {
        "data": {"values": values}, "width": 220, "height": {"step": 26}, "config": {"legend": _wide_legend()},
        "mark": {"type": "bar", "stroke": "var(--card)", "strokeWidth": 1},
        "encoding": {"y": y, "x": {"field": "mass", "type": "quantitative", "title": "share of items", "stack": "zero", "scale": {"domain": [0, 1]}},
                     "color": {"field": "state", "type": "nominal", "scale": {"domain": states, "range": list(PALETTE)}},
                     "order": {"field": "order", "type": "quantitative"}},
    })  # fmt: skip


def _gaps(rows: Rows) -> dict[str, Any] | None:
    values = [{"name": _label(row, [name for name in _ABOUT if name in row]), "gap": row["protocol_gap"], "low": row["gap_low"], "high": row["gap_high"]}
              for row in rows if row.get("protocol_gap") is not None]  # fmt: skip
    if not values:
        return None
    y = {"field": "name", "type": "nominal", "title": None, "axis": {"labelLimit": 170}}
    x = {"type": "quantitative", "title": "protocol gap in accuracy"}
    return _figure("Protocol gap", "Bars are 95% bootstrap intervals over items.", {
        "data": {"values": values}, "width": 220, "height": {"step": 26},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 2}, "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 70, "color": PALETTE[0], "opacity": 1}, "encoding": {"y": y, "x": {**x, "field": "gap"}}},
            {"mark": {"type": "rule", "strokeDash": [4, 3], "color": "currentColor"}, "encoding": {"x": {"datum": 0}}},
        ],
    })  # fmt: skip
