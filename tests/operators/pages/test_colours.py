"""The palette of the pages as colour-blind eyes see it: any two of its eight colours differ, in light and in dark."""

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import operators.pages

CSS = Path(operators.pages.__file__).parent / "common" / "base.css"
# Machado, Oliveira and Fernandes (2009): dichromats, over linear RGB.
SEEN_BY = {
    "protanopes": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopes": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopes": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}
LEAST = {"protanopes": 15, "deuteranopes": 15, "tritanopes": 11}  # a difference of 2.3 is just noticeable
XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)


def linear(colours):
    """[n, 3] linear RGB of "#rrggbb"."""
    values = np.array([[int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)] for colour in colours])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(rgb):
    """[n, 3] CIELAB, white point D65."""
    x, y, z = (np.clip(rgb, 0, 1) @ XYZ.T / [0.95047, 1, 1.08883]).T
    x, y, z = (np.where(v > 0.008856, np.cbrt(v), 7.787 * v + 16 / 116) for v in (x, y, z))
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=1)


def test_known_colours_have_known_coordinates():
    """CIELAB of sRGB white, and of its pure red, as tables give them."""
    found = lab(linear(["#ffffff", "#ff0000"]))
    np.testing.assert_allclose(found, [[100, 0, 0], [53.24, 80.09, 67.20]], atol=0.05)


@pytest.mark.parametrize("eyes", SEEN_BY)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_any_two_colours_differ_to_colour_blind_eyes(eyes, scheme):
    pairs = re.findall(r"--c\d: light-dark\((#\w{6}), (#\w{6})\)", CSS.read_text())
    assert len(pairs) == 8
    colours = [pair[scheme == "dark"] for pair in pairs]
    seen = lab(linear(colours) @ np.array(SEEN_BY[eyes]).T)
    least = min(
        (float(np.linalg.norm(seen[a] - seen[b])), f"c{a + 1}, c{b + 1}")
        for a, b in combinations(range(8), 2)
    )
    assert least[0] >= LEAST[eyes], least
