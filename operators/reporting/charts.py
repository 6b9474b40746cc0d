"""The charts of an ARIA run as Vega-Lite specs: what is compared, how it is encoded, in which order.

ARIA-Rubrics, Figures 2 to 4: profiles, distributions, correlations between metrics. Colours come with shapes, dashes
or labels, so that none of it rests on colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from operators.modes import MODES
from operators.reporting.drawing import DASHES, PALETTE, SHAPES
from operators.schema import METRICS

WIDTH = 300
_LABEL = 16  # pixels from one name to the next
_SHARES = 300  # pixels: a whole bar of shares
NO_MODE = "no mode"
SHORT = {name: f"M{place}" for place, name in enumerate(METRICS, 1)} | {"aria": "ARIA"}
_MODE_COLOURS = ("var(--c3)", "var(--c2)", "var(--c4)", "var(--c7)")

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


def cycled(values: Sequence[Any], n: int) -> list[Any]:
    """`n` of the values, from the start again where they run out."""
    return [values[place % len(values)] for place in range(n)]


def of_models(models: Sequence[str], channel: str = "color") -> Spec:
    """The encoding of models, in their order, by colour, dash or shape."""
    ranges = {"color": PALETTE, "strokeDash": DASHES, "shape": SHAPES}
    scale = {"domain": list(models), "range": cycled(ranges[channel], len(models))}
    return {"field": "model", "type": "nominal", "scale": scale}


def _share(field: str, title: str, **scale: Any) -> Spec:
    return {"field": field, "type": "quantitative", "title": title, "scale": {"zero": False, **scale}}


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places in [low, high], in the order of `wanted`, as near to it (least squares) as goes with `gap` between any two.

    Raises ValueError where so many do not fit.
    """
    if (len(wanted) - 1) * gap > (high - low) * (1 + 1e-9):
        raise ValueError(f"{len(wanted)} places {gap:g} apart do not fit between {low:g} and {high:g}")
    from scipy.optimize import isotonic_regression

    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(wanted))
    # Without its steps the sequence has only to rise.
    flat = isotonic_regression(np.asarray(wanted, dtype=float)[order] - steps).x if len(order) else steps
    places = np.empty(len(wanted))
    places[order] = np.clip(flat, low, high - gap * (len(wanted) - 1)) + steps
    return places.tolist()


def _labelled(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], tuple[float, float], int]:
    """Rows that have a point, with `place`, where on the axis of ARIA their label stands; that axis; its height."""
    seen = [row for row in rows if row["aria"] is not None and row["accuracy"] is not None]
    ends = [row[f"aria{part}"] for row in seen for part in ("", "_low", "_high")]
    ends = [end for end in ends if end is not None]
    low, high = math.floor(50 * min(ends, default=0)) / 50, math.ceil(50 * max(ends, default=1)) / 50
    high = max(high, low + 0.02)
    height = max(260, _LABEL * len(seen))
    places = spread([row["aria"] for row in seen], _LABEL * (high - low) / height, low, high)
    return [{**row, "place": place} for row, place in zip(seen, places, strict=True)], (low, high), height


def aria_against_accuracy(block: Mapping[str, Any]) -> Spec:
    """One point per model with both intervals; colour and shape say the mode. The names stand beside the chart, one
    under the other, each with a line to its point: however close the points, no name covers another."""
    rows = [
        {
            "model": entry["model"],
            "mode": entry["mode"] or NO_MODE,
            **{f"{name}{part}": entry["cells"][name][key] for name in ("accuracy", "aria")
               for part, key in (("", "value"), ("_low", "low"), ("_high", "high"))},
        }
        for entry in block["models"]
    ]  # fmt: skip
    labels, domain, height = _labelled(rows)
    names = [*MODES, NO_MODE]
    present = [name for name in names if any(row["mode"] == name for row in labels)]
    colours = [_MODE_COLOURS[names.index(name)] for name in present]
    shapes = [SHAPES[names.index(name)] for name in present]
    mode = {"field": "mode", "type": "nominal"}
    colour = {**mode, "scale": {"domain": present, "range": colours}}
    x = _share("accuracy", "accuracy", nice=True)
    y = _share("aria", "ARIA", domain=list(domain), nice=False)
    rule = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.7}
    return {
        "data": {"values": labels}, "width": WIDTH - 60, "height": height,
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 1, "color": "var(--soft)", "strokeDash": [2, 3], "opacity": 0.7},
             "encoding": {"x": x, "x2": {"value": WIDTH - 52}, "y": y, "y2": {"field": "place"}}},
            {"mark": rule, "encoding": {"x": {**x, "field": "accuracy_low"}, "x2": {"field": "accuracy_high"}, "y": y,
                                        "color": colour}},
            {"mark": rule, "encoding": {"y": {**y, "field": "aria_low"}, "y2": {"field": "aria_high"}, "x": x,
                                        "color": colour}},
            {"mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
             "encoding": {"x": x, "y": y, "color": colour,
                          "shape": {**mode, "scale": {"domain": present, "range": shapes}}}},
            {"mark": {"type": "text", "align": "left", "limit": 130},
             "encoding": {"x": {"value": WIDTH - 50}, "y": {**y, "field": "place"}, "text": {"field": "model"}}},
        ],
    }  # fmt: skip


def profiles(block: Mapping[str, Any]) -> Spec:
    """Parallel coordinates: a line per model over M1..M6."""
    models = [entry["model"] for entry in block["models"]]
    rows = [
        {"model": entry["model"], "metric": SHORT[name], "value": entry["cells"][name]["value"]}
        for entry in block["models"]
        for name in METRICS
    ]
    x = {"field": "metric", "type": "nominal", "title": None, "axis": {"labelAngle": 0}}
    shared = {"x": x, "y": _share("value", "mean", domain=[0, 1]), "color": of_models(models)}
    return {
        "data": {"values": rows}, "width": WIDTH, "height": 260,
        "layer": [
            {"mark": {"type": "line", "strokeWidth": 2}, "encoding": {**shared, "strokeDash": of_models(models, "strokeDash")}},
            {"mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
             "encoding": {**shared, "shape": of_models(models, "shape")}},
        ],
    }  # fmt: skip


def five_numbers(values: Sequence[float]) -> dict[str, float]:
    """The 5th, 25th, 50th, 75th and 95th percentile (linear interpolation)."""
    found = np.percentile(np.asarray(values, dtype=float), [5, 25, 50, 75, 95]).tolist()
    return dict(zip(("p5", "p25", "p50", "p75", "p95"), found, strict=True))


def distribution(scores: Mapping[str, Sequence[float]]) -> Spec:
    """Quartiles and 5% to 95% of one metric, and how many values they are of; a bar per model in the order of `scores`."""
    rows = [
        {"model": model, "n": f"n = {len(values)}", **five_numbers(values)}
        for model, values in scores.items()
        if len(values)
    ]
    y = {"field": "model", "type": "nominal", "title": None, "sort": list(scores)}
    colour = {**of_models(list(scores)), "legend": None}
    x = {"type": "quantitative", "title": None, "scale": {"domain": [0, 1]}}
    return {
        "data": {"values": rows}, "width": 200, "height": {"step": 22},
        "layer": [
            {"mark": {"type": "rule", "strokeWidth": 1.5},
             "encoding": {"y": y, "x": {**x, "field": "p5"}, "x2": {"field": "p95"}, "color": colour}},
            {"mark": {"type": "bar", "height": 12, "opacity": 0.75},
             "encoding": {"y": y, "x": {**x, "field": "p25"}, "x2": {"field": "p75"}, "color": colour}},
            {"mark": {"type": "tick", "thickness": 2.5, "height": 16, "color": "currentColor"},
             "encoding": {"y": y, "x": {**x, "field": "p50"}}},
            {"mark": {"type": "text", "align": "left", "fontSize": 11},
             "encoding": {"y": y, "x": {"value": 206}, "text": {"field": "n"}}},
        ],
    }  # fmt: skip


def correlations(names: Sequence[str], matrix: np.ndarray) -> Spec:
    """A heat map of Pearson correlations: blue below zero, orange above, the number in every field."""
    rows = [
        {"a": names[i], "b": names[j], "r": None if np.isnan(matrix[i, j]) else float(matrix[i, j])}
        for i in range(len(names))
        for j in range(len(names))
    ]
    for row in rows:
        row["label"] = "–" if row["r"] is None else f"{row['r']:z.2f}"
    place = {"type": "nominal", "title": None, "sort": list(names)}
    shared = {"x": {**place, "field": "a", "axis": {"labelAngle": 0}}, "y": {**place, "field": "b"}}
    strength = {"field": "r", "type": "quantitative", "legend": None,
                "scale": {"domain": [-1, 0, 1], "range": ["#7fb3d9", "#f2f2f2", "#eda268"]}}  # fmt: skip
    return {
        "data": {"values": rows}, "width": {"step": 42}, "height": {"step": 34},
        "layer": [
            {"mark": "rect", "encoding": {**shared, "color": strength}},
            {"mark": {"type": "text", "color": "#1b1f24"}, "encoding": {**shared, "text": {"field": "label"}}},
        ],
    }  # fmt: skip


def shares(rows: Rows, parts: Sequence[str]) -> Spec:
    """Stacked bars to 1: `rows` of name, part, share. A segment that has room for it says its part: grey print tells no
    colours apart."""
    scale = {"domain": list(parts), "range": cycled(PALETTE, len(parts))}
    order = {name: place for place, name in enumerate(parts)}
    values = [
        {**row, "order": order[row["part"]], "said": row["part"] if row["share"] * _SHARES >= _room(row["part"]) else ""}
        for row in rows
    ]  # fmt: skip
    x = {"field": "share", "type": "quantitative", "title": "share of the sum of squares", "stack": "zero",
         "scale": {"domain": [0, 1]}}  # fmt: skip
    return {
        "data": {"values": values}, "width": _SHARES, "height": {"step": 24},
        "encoding": {
            "y": {"field": "name", "type": "nominal", "title": None, "sort": list(dict.fromkeys(r["name"] for r in rows))},
            "order": {"field": "order", "type": "quantitative"},
        },
        "layer": [
            {"mark": {"type": "bar", "stroke": "var(--card)", "strokeWidth": 1},
             "encoding": {"x": x, "color": {"field": "part", "type": "nominal", "scale": scale}}},
            {"mark": {"type": "text", "color": "var(--card)", "fontSize": 11},
             "encoding": {"x": {**x, "bandPosition": 0.5}, "detail": {"field": "part"}, "text": {"field": "said"}}},
        ],
    }  # fmt: skip


def _room(text: str) -> int:
    """Pixels that a word takes inside a bar, with a little room on either side."""
    return 6 * len(text) + 6
