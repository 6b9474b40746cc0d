"""Charts: Vega-Lite descriptions, drawn once into SVG when a report is written.

The drawing enters the page as a tree of vetted elements and is built node by node, so nothing in it is ever parsed
as markup, and the page carries no charting program. Colours are the page's own variables: one drawing serves light,
dark and print.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

_TAGS = frozenset({"svg", "g", "path", "rect", "line", "circle", "text", "title", "polyline", "polygon"})
_ATTRIBUTES = frozenset(
    [
        "width",
        "height",
        "viewBox",
        "fill",
        "fill-opacity",
        "stroke",
        "stroke-width",
        "stroke-dasharray",
        "stroke-opacity",
        "stroke-miterlimit",
        "stroke-linecap",
        "stroke-linejoin",
        "transform",
        "d",
        "x",
        "y",
        "x1",
        "y1",
        "x2",
        "y2",
        "cx",
        "cy",
        "r",
        "points",
        "opacity",
        "text-anchor",
        "font-size",
        "font-weight",
        "font-family",
        "display",
    ]
)
_LONGEST = 120
PALETTE = tuple(f"var(--c{number})" for number in range(1, 9))
# Five, as colours are eight: forty lines before two look alike.
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 3])
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
_CONFIG = {
    "background": None,
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {
        "labelColor": "currentColor", "titleColor": "currentColor", "gridColor": "var(--line)", "tickColor": "var(--line)",
        "domainColor": "var(--line)", "labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": "normal",
        "labelLimit": 130,
    },
    "legend": {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12, "titleFontSize": 12,
               "orient": "bottom", "labelLimit": 130, "columns": 3, "title": None},
    "header": {"labelColor": "currentColor", "titleColor": "currentColor", "labelFontSize": 12},
    "text": {"color": "currentColor", "fontSize": 12},
}  # fmt: skip

Tree = list[Any]


def draw(spec: Mapping[str, Any]) -> Tree:
    """A Vega-Lite spec as [tag, {attribute: value}, [children]], the children being trees or texts."""
    import vl_convert

    whole = {**spec, "config": _CONFIG | spec.get("config", {})}
    svg = vl_convert.vegalite_to_svg(json.dumps(_drawable(whole), allow_nan=False))
    # Ours, made by the line above: no entity declarations, nothing from outside but the names in it, escaped.
    return _tree(ElementTree.fromstring(svg))  # noqa: S314


def _drawable(value: Any) -> Any:
    """`value` with every text fit to be drawn: control and format characters, which end the drawing program, become
    U+FFFD, and the middle of a very long text is left out."""
    if isinstance(value, Mapping):
        return {key: _drawable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_drawable(item) for item in value]
    if not isinstance(value, str):
        return value
    text = "".join(char if char.isprintable() else "\ufffd" for char in value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 21]}…{text[-20:]}"


def _tree(element: ElementTree.Element) -> Tree:
    kept = {name: value for name, value in element.attrib.items() if name in _ATTRIBUTES}
    children: list[Any] = [element.text] if element.text else []
    label = element.get("aria-label")
    if label and element.get("role") == "graphics-symbol" and element.get("aria-roledescription") != "axis":
        children.insert(0, ["title", {}, [label]])
    children += [_tree(child) for child in element if _tag(child) in _TAGS]
    return [_tag(element), kept, children]


def _tag(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
