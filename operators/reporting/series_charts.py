"""The charts of MUGEN and audit runs as Vega-Lite specs; None where there is nothing to draw.

A series is named by its model and by what differs between the series drawn: what all share is not repeated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operators.audit_states import STATE_NAMES
from operators.reporting.charts import cycled
from operators.reporting.drawing import DASHES, PALETTE, SHAPES

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
SPOKEN = {
    ("permuted", True): "permuted", ("permuted", False): "fixed order",
    ("voting", True): "sampled for votes", ("voting", False): "single",
}  # fmt: skip
_LEGEND = {"orient": "bottom", "columns": 1, "labelLimit": 320, "title": None, "labelColor": "currentColor",
           "labelFontSize": 12}  # fmt: skip


def series_names(rows: Rows, names: Sequence[str]) -> list[str]:
    """For every row its model and those of `names` in which rows differ: "gpt, permuted, 5 candidates"."""
    differ = [name for name in names if len({row.get(name) for row in rows}) > 1]
    return [", ".join(dict.fromkeys(_parts(row, differ))) for row in rows]


def _parts(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    said = [row["model"]]
    for name in names:
        value = row.get(name)
        if value is not None:
            plain = f"{value} candidates" if name == "n_candidates" else str(value)
            said.append(SPOKEN.get((name, value), f"{name} {plain}" if name == "cue" else plain))
    return said


def _axis(field: str, title: str | None = None, **more: Any) -> Spec:
    return {"field": field, "type": "ordinal", "title": title, "axis": {"labelAngle": 0}, **more}


def accuracy_lines(rows: Rows, names: Sequence[str], x: str, title: str) -> Spec | None:
    """Accuracy against `x`, a line per series, with Wilson intervals."""
    known = [row for row in rows if row["accuracy"] is not None and row[x] is not None]
    if len({row[x] for row in known}) < 2:
        return None
    labels = series_names(known, [name for name in names if name != x])
    values = [{"series": label, "x": row[x], "accuracy": row["accuracy"], "low": row["wilson_low"], "high": row["wilson_high"]}
              for label, row in zip(labels, known, strict=True)]  # fmt: skip
    series = list(dict.fromkeys(labels))
    colour, dash, shape = (
        {
            "field": "series",
            "type": "nominal",
            "scale": {"domain": series, "range": cycled(look, len(series))},
        }
        for look in (PALETTE, DASHES, SHAPES)
    )
    y = {"field": "accuracy", "type": "quantitative", "title": "accuracy", "scale": {"zero": False}}
    shared = {"x": _axis("x", title), "y": y, "color": colour}
    return {
        "data": {"values": values}, "width": 300, "height": 220, "config": {"legend": _LEGEND},
        "layer": [
            {"mark": {"type": "rule", "opacity": 0.6},
             "encoding": {**shared, "y": {**y, "field": "low"}, "y2": {"field": "high"}}},
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {**shared, "strokeDash": dash}},
            {"mark": {"type": "point", "filled": True, "size": 45, "opacity": 1}, "encoding": {**shared, "shape": shape}},
        ],
    }  # fmt: skip


def position_bars(rows: Rows, names: Sequence[str]) -> Spec | None:
    """How often every position was chosen, and how often it would be if position played no part."""
    if not rows:
        return None
    labels = series_names(rows, names)
    values = [{"series": label, "position": row["position"] + 1, "chosen": row["n_chosen"], "expected": row["n_expected"]}
              for label, row in zip(labels, rows, strict=True)]  # fmt: skip
    x, y = _axis("position", "position of the option"), {"type": "quantitative", "title": "times chosen"}
    facet = {"field": "series", "type": "nominal", "title": None, "sort": list(dict.fromkeys(labels))}
    return {
        "data": {"values": values}, "facet": facet, "columns": 1,
        "spec": {"width": 280, "height": 90, "layer": [
            {"mark": {"type": "bar", "color": PALETTE[0], "opacity": 0.8}, "encoding": {"x": x, "y": {**y, "field": "chosen"}}},
            {"mark": {"type": "tick", "color": PALETTE[1], "thickness": 3, "width": 26},
             "encoding": {"x": x, "y": {**y, "field": "expected"}}},
        ]},
    }  # fmt: skip


_CELL = ("benchmark", "kind", "control", "cue")


def _cell_axis(labels: Sequence[str]) -> Spec:
    return {"field": "name", "type": "nominal", "title": None, "axis": {"labelLimit": 190},
            "sort": list(dict.fromkeys(labels))}  # fmt: skip


_STATES_WIDTH, _CODE_WIDTH = 240, 24  # pixels: a whole bar; three digits with a little room


def state_bars(rows: Rows) -> Spec | None:
    """Masses of the eight states (counterfactual audits, section 3.3) as one bar per judge, control and cue.

    Every segment wide enough carries its state's code, so that it can be read without colours.
    """
    known = [row for row in rows if row["mass"] is not None]
    if not known:
        return None
    labels, codes = series_names(known, _CELL), list(STATE_NAMES)
    states = [f"{code} {name}" for code, name in STATE_NAMES.items()]
    values = [{"name": label, "state": states[codes.index(row["state"])], "order": codes.index(row["state"]), "mass": row["mass"],
               "code": row["state"] if row["mass"] * _STATES_WIDTH >= _CODE_WIDTH else ""}
              for label, row in zip(labels, known, strict=True)]  # fmt: skip
    x = {
        "field": "mass",
        "type": "quantitative",
        "title": "share of items",
        "stack": "zero",
        "scale": {"domain": [0, 1]},
    }
    order = {"field": "order", "type": "quantitative"}
    return {
        "data": {"values": values}, "width": _STATES_WIDTH, "height": {"step": 26}, "config": {"legend": _LEGEND},
        "encoding": {"y": _cell_axis(labels), "order": order},
        "layer": [
            {"mark": {"type": "bar", "stroke": "var(--card)", "strokeWidth": 1},
             "encoding": {"x": x, "color": {"field": "state", "type": "nominal", "scale": {"domain": states, "range": list(PALETTE)}}}},
            {"mark": {"type": "text", "color": "var(--card)", "fontSize": 11},
             "encoding": {"x": {**x, "bandPosition": 0.5}, "detail": {"field": "state"}, "text": {"field": "code"}}},
        ],
    }  # fmt: skip


def protocol_gaps(rows: Rows) -> Spec | None:
    """The gap in accuracy between protocols, per judge, control and cue, with its interval; a line at 0."""
    known = [row for row in rows if row["protocol_gap"] is not None]
    if not known:
        return None
    labels = series_names(known, _CELL)
    values = [{"name": label, "gap": row["protocol_gap"], "low": row["gap_low"], "high": row["gap_high"]}
              for label, row in zip(labels, known, strict=True)]  # fmt: skip
    y, x = _cell_axis(labels), {"type": "quantitative", "title": "protocol gap in accuracy"}
    return {
        "data": {"values": values}, "width": 200, "height": {"step": 26},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 2, "color": PALETTE[0]},
             "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}}},
            {"mark": {"type": "point", "filled": True, "size": 70, "color": PALETTE[0], "opacity": 1},
             "encoding": {"y": y, "x": {**x, "field": "gap"}}},
            {"mark": {"type": "rule", "strokeDash": [4, 3], "color": "var(--soft)"}, "encoding": {"x": {"datum": 0}}},
        ],
    }  # fmt: skip
