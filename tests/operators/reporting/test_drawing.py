import numpy as np
import pytest

from operators.reporting import charts
from operators.reporting.drawing import draw
from tests.report_toys import HOSTILE


def walk(tree):
    yield tree
    for child in tree[2]:
        if isinstance(child, list):
            yield from walk(child)


def texts(tree):
    return [child for part in walk(tree) for child in part[2] if isinstance(child, str)]


def test_a_drawing_holds_only_vetted_elements_and_hostile_names_as_text():
    tree = draw(charts.distribution({HOSTILE: [0.1, 0.2, 0.9], "b": [0.5]}))
    tags = {part[0] for part in walk(tree)}
    assert tags <= {"svg", "g", "path", "rect", "line", "circle", "text", "title"}
    names = {name for part in walk(tree) for name in part[1]}
    assert not names & {"style", "href", "class", "id"}
    assert not any(name.startswith("on") for name in names)
    assert any("<" in text for text in texts(tree))
    assert {"n = 3", "n = 1"} <= set(texts(tree))


def test_colours_are_the_pages_variables_so_that_one_drawing_serves_light_and_dark():
    tree = draw(charts.distribution({"a": [0.1, 0.9]}))
    strokes = {part[1].get("stroke") for part in walk(tree)} | {part[1].get("fill") for part in walk(tree)}
    assert "var(--c1)" in strokes
    assert not any(str(colour).startswith("#0") for colour in strokes)


def test_no_two_of_many_models_share_both_colour_and_dash():
    models = [f"model {n}" for n in range(40)]
    colours, dashes = (
        charts.of_models(models, channel)["scale"]["range"] for channel in ("color", "strokeDash")
    )
    assert len({(colour, *dash) for colour, dash in zip(colours, dashes, strict=True)}) == 40


def test_percentiles_by_hand():
    """Of 0, 1, 2, 3, 4: the quartiles are 1, 2, 3; 5% lies at 0.2, 95% at 3.8."""
    assert charts.five_numbers([4, 0, 2, 1, 3]) == {"p5": 0.2, "p25": 1.0, "p50": 2.0, "p75": 3.0, "p95": 3.8}


def test_an_undefined_correlation_is_a_dash():
    spec = charts.correlations(["a", "b"], np.array([[1.0, np.nan], [np.nan, -0.001]]))
    labels = [row["label"] for row in spec["data"]["values"]]
    assert labels == ["1.00", "–", "–", "0.00"]
    assert "–" in texts(draw(spec))


def test_a_share_with_room_for_it_says_its_part_so_that_grey_print_can_be_read():
    """The bar is 300 pixels wide: 0.6 and 0.3 of it hold "model" and "item" (36 and 30), 0.1 does not hold "residual" (54)."""
    parts = {"model": 0.6, "item": 0.3, "residual": 0.1}
    tree = draw(charts.shares([{"name": "M1", "part": p, "share": share} for p, share in parts.items()], list(parts)))  # fmt: skip
    said = texts(tree)
    assert {part: said.count(part) for part in parts} == {"model": 2, "item": 2, "residual": 1}, (
        "and the legend"
    )


def test_names_that_would_cover_one_another_are_spread_by_hand():
    """1, 1 and 5 with a gap of 2: the two that clash move half of it each, to 0 and 2; 5 stays."""
    assert charts.spread([1, 5, 1], 2, -10, 10) == pytest.approx([0, 5, 2])
    assert charts.spread([1, 5, 1], 2, 0.5, 10) == pytest.approx([0.5, 5, 2.5]), "not below the axis"
    assert charts.spread([9, 9, 9], 2, 0, 10) == pytest.approx([6, 8, 10]), "nor above it"
    assert charts.spread([], 2, 0, 1) == []
    with pytest.raises(ValueError, match="3 places 2 apart do not fit"):
        charts.spread([1, 2, 3], 2, 0, 3)


def test_no_two_names_of_close_points_overlap_and_a_model_without_aria_has_none():
    def cell(value):
        return {"value": value, "low": None, "high": None}

    entries = [
        {"model": f"m{n}", "mode": None, "cells": {"accuracy": cell(0.5), "aria": cell(0.6 + n / 1e4)}}
        for n in range(30)
    ]
    entries.append({"model": "unscored", "mode": None, "cells": {"accuracy": cell(0.5), "aria": cell(None)}})
    spec = charts.aria_against_accuracy({"models": entries})
    low, high = spec["layer"][0]["encoding"]["y"]["scale"]["domain"]
    places = sorted(row["place"] for row in spec["data"]["values"])
    pixels = np.diff(places) * spec["height"] / (high - low)
    assert len(places) == 30 and pixels.min() >= 15.9
    assert "unscored" not in texts(draw(spec))
