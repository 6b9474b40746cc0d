import numpy as np

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


def test_colours_are_the_pages_variables_so_that_one_drawing_serves_light_and_dark():
    tree = draw(charts.distribution({"a": [0.1, 0.9]}))
    strokes = {part[1].get("stroke") for part in walk(tree)} | {part[1].get("fill") for part in walk(tree)}
    assert "var(--c1)" in strokes
    assert not any(str(colour).startswith("#0") for colour in strokes)


def test_percentiles_by_hand():
    """Of 0, 1, 2, 3, 4: the quartiles are 1, 2, 3; 5% lies at 0.2, 95% at 3.8."""
    assert charts.five_numbers([4, 0, 2, 1, 3]) == {"p5": 0.2, "p25": 1.0, "p50": 2.0, "p75": 3.0, "p95": 3.8}


def test_an_undefined_correlation_is_a_dash():
    spec = charts.correlations(["a", "b"], np.array([[1.0, np.nan], [np.nan, -0.001]]))
    labels = [row["label"] for row in spec["data"]["values"]]
    assert labels == ["1.00", "–", "–", "0.00"]
    assert "–" in texts(draw(spec))
