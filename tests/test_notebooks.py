"""Every notebook runs from top to bottom, as plain code: no kernel is needed."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.audit.outcomes import VERDICT
from operators.audit.presentation import PROBES, Design, planned_calls
from operators.schema import result_schema
from tests.audit_toys import items_of, judge, single
from tests.operators.analysis.made import scored_rows

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"


def cells(name):
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.mark.parametrize("name", sorted(path.name for path in NOTEBOOKS.glob("*.ipynb")))
def test_notebooks_are_kept_without_outputs(name):
    notebook = json.loads((NOTEBOOKS / name).read_text(encoding="utf-8"))
    assert all(not cell.get("outputs") for cell in notebook["cells"])


def executed(name):
    """What the names of a notebook mean after its last cell."""
    names = {}
    for number, cell in enumerate(cells(name)):
        exec(compile(cell, f"{name}, code cell {number}", "exec"), names)
    return names


@pytest.fixture
def figures(monkeypatch):
    """matplotlib without a screen; figures that notebooks leave open are closed."""
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "rcParams", plt.rcParams.copy())
    plt.switch_backend("Agg")
    yield plt
    plt.close("all")


@pytest.mark.weights
def test_five_rows():
    names = executed("five_rows.ipynb")
    values = np.array([names["batch"][metric] for metric in names["METRICS"]])
    assert values.shape == (6, 5) and np.isfinite(values).all()
    before, after = (table["m1_acoustic_grounding"] for table in (names["batch"], names["manipulated"]))
    assert after.mean() < before.mean(), "claiming music everywhere must not pay"


@pytest.mark.weights
def test_read_a_run(tmp_path, monkeypatch, figures, capsys):
    monkeypatch.chdir(tmp_path)
    models = ("good $1", "<b>bad</b>")
    values = [(m, "x", f"i{n}", 0.7 - 0.3 * models.index(m) + n / 100) for m in models for n in range(8)]
    rows = scored_rows([*values, ("good $1", "x", "lost", None)], trial=0)
    (tmp_path / "runs" / "made").mkdir(parents=True)
    pq.write_table(rows.select(result_schema().names), tmp_path / "runs" / "made" / "results.parquet")
    names = executed("read_a_run.ipynb")
    assert names["comparison"]["aria"].difference == pytest.approx(0.3) and names["comparison"]["aria"].n == 8
    assert len(figures.get_fignums()) == 2
    assert "not_scored" in capsys.readouterr().out


@pytest.mark.weights
def test_ablation():
    names = executed("ablation.ipynb")
    assert len(names["means"]) == 2 * 2 * 3 and all(0 <= one.mean <= 1 for one in names["means"])
    assert {line["versus"] for line in names["agreement"]} == {
        "log_ratio against difference",
        "whole against sentence_minmax",
    }
    ranked = {(one.metric, one.backbone, one.model): one.mean for one in names["means"]}
    assert ranked["m4", "difference", "careful"] > ranked["m4", "difference", "decoration"]


@pytest.mark.weights
def test_audit(tmp_path, monkeypatch, figures):
    monkeypatch.chdir(tmp_path)
    items = items_of(
        "single_turn_emotions", [single(f"s{n}", text=f"Sentence {n}.") for n in range(6)], tmp_path
    )
    design = Design(PROBES, ("none",), seed=0)
    calls = [call for item in items for call in planned_calls(item, design)]
    # Hears and knows, and judges wrongly where it hears one voice only: all mass in 110, and a gap of 1.
    verdicts = judge(calls, lambda call: call["probe"] != "pointwise")
    (tmp_path / "runs" / "made").mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist(verdicts, schema=VERDICT), tmp_path / "runs" / "made" / "verdicts.parquet"
    )
    names = executed("audit.ipynb")
    masses = {row["state"]: row["mass"] for row in names["found"]["states"].to_pylist()}
    assert masses["110"] == 1 and sum(masses.values()) == 1
    assert names["found"]["rates"].to_pylist()[0]["protocol_gap"] == 1
    assert len(names["diagnoses"]) == 1 and len(figures.get_fignums()) == 1
