"""Every notebook runs from top to bottom, as plain code: no kernel is needed."""

import json
from pathlib import Path

import numpy as np
import pytest

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def cells(name):
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_notebooks_are_kept_without_outputs(name):
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])


@pytest.mark.weights
def test_five_rows():
    names = {}
    for number, cell in enumerate(cells("five_rows.ipynb")):
        exec(compile(cell, f"five_rows.ipynb, code cell {number}", "exec"), names)
    values = np.array([names["batch"][metric] for metric in names["METRICS"]])
    assert values.shape == (6, 5) and np.isfinite(values).all()
    before, after = (table["m1_acoustic_grounding"] for table in (names["batch"], names["manipulated"]))
    assert after.mean() < before.mean(), "claiming music everywhere must not pay"
