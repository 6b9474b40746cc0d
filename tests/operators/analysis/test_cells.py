"""The table of means by model and benchmark, from rows and from a user's summary."""

import math

import numpy as np
import pytest

from operators.aggregate import MEASURES, summarise
from operators.analysis.cells import cells_of_rows, cells_of_summary
from operators.tables import Row, TableError, read_rows
from tests.operators.analysis.made import scored_rows

SUMMARY = "model,benchmark,m1,m2,m3,m4,m5,m6,acc\nA,x,0.1,0.2,0.3,0.4,0.5,0.6,50%\nA,y,1,1,1,1,1,1,0.25\n"


def test_trials_are_averaged_before_items_and_nulls_left_out():
    rows = scored_rows(
        [("A", "x", "i", 0.2), ("A", "x", "i", 0.4), ("A", "x", "j", 0.9), ("A", "x", "k", None)]
    )
    # item i: (0.2 + 0.4) / 2 = 0.3; items: (0.3 + 0.9) / 2 = 0.6
    assert cells_of_rows(rows).means["aria"] == pytest.approx(np.array([[0.6]]))


def test_a_model_without_a_benchmark_has_no_cell_and_is_left_out_where_cells_must_be_complete():
    cells = cells_of_rows(scored_rows([("A", "x", "i", 0.2), ("A", "y", "j", 0.4), ("B", "x", "i", 0.5)]))
    assert math.isnan(cells.means["aria"][1, 1])
    table, kept = cells.complete("aria")
    assert table == pytest.approx(np.array([[0.2, 0.4]])) and kept.tolist() == [0]


def test_redrawn_cells_centre_on_the_means_and_draw_an_item_for_all_models_at_once():
    values = [(m, "x", f"i{n}", n / 10 + shift) for m, shift in (("A", 0.0), ("B", 0.1)) for n in range(8)]
    cells = cells_of_rows(scored_rows(values))
    drawn = cells.redrawn("aria", 4000, seed=0)
    assert drawn.shape == (4000, 2, 1) and cells.n_items("aria", [0, 1]) == 8
    # items 0..0.7 have a standard deviation of 0.2291, so a mean of 8 has 0.081; its mean over 4000 draws 0.0013
    assert drawn[:, 0, 0].mean() == pytest.approx(0.35, abs=0.006)
    assert drawn[:, 0, 0].std() == pytest.approx(0.2291 / math.sqrt(8), rel=0.05)
    assert drawn[:, 1, 0] - drawn[:, 0, 0] == pytest.approx(np.full(4000, 0.1)), (
        "both models share the items drawn"
    )


def test_a_summary_as_the_papers_table_1(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(SUMMARY, encoding="utf-8")
    cells = cells_of_summary(str(path), read_rows(str(path)))
    assert (cells.models, cells.datasets) == (("A",), ("x", "y"))
    assert cells.means["aria"] == pytest.approx(np.array([[0.35, 1.0]])) and cells.items == {}
    assert cells.means["accuracy"].tolist() == [[0.5, 0.25]]


def test_our_own_summary_is_one_too():
    rows = scored_rows([("A", "x", "i", 0.2), ("A", "x", "j", 0.4), ("B", "x", "i", 0.5)])
    table = summarise(rows)
    given = [Row(row, number, "row") for number, row in enumerate(table.to_pylist(), 1)]
    cells, direct = cells_of_summary("summary.parquet", given), cells_of_rows(rows)
    for measure in MEASURES:
        assert cells.means[measure] == pytest.approx(direct.means[measure], nan_ok=True)


@pytest.mark.parametrize(
    "cells, message",
    [
        ({"m3": "much"}, "line 2: bad_m3: a number is expected, not 'much'"),
        (
            {"m3": "44.4"},
            "line 2: 'm3' is 44.4, and a score lies in .0, 1.; write percentages with a percent sign",
        ),
        ({"model": ""}, "line 2: no model"),
    ],
)
def test_errors_name_the_file_and_the_row(cells, message):
    good = {"model": "A", "benchmark": "x", **dict.fromkeys(("m1", "m2", "m3", "m4", "m5", "m6"), "0.5")}
    with pytest.raises(TableError, match=message):
        cells_of_summary("f.csv", [Row({**good, **cells}, 2)])


def test_a_missing_or_repeated_line_is_named():
    good = {"model": "A", "benchmark": "x", **dict.fromkeys(("m1", "m2", "m3", "m4", "m5", "m6"), "0.5")}
    with pytest.raises(TableError, match="'A' on 'x' stands there twice"):
        cells_of_summary("f.csv", [Row(good, 2), Row(good, 3)])
    with pytest.raises(TableError, match="no column for 'm4'"):
        cells_of_summary("f.csv", [Row({k: v for k, v in good.items() if k != "m4"}, 2)])
