"""Judges beside ARIA: both forms of their table, ranks with ties, what a judge lacks."""

import pytest

from operators.analysis.cells import cells_of_rows
from operators.analysis.judges import accuracy_as_judge, compared, judge_agreement, read_judges
from operators.tables import Row, TableError
from tests.operators.analysis.made import scored_rows


def cells():
    return cells_of_rows(
        scored_rows([(m, b, b, v) for m, v in zip("ABCD", (0.2, 0.4, 0.6, 0.8), strict=True) for b in "xy"])
    )


def rows(*cells):
    return [
        Row(dict(zip(("model", "judge", "score"), one, strict=True)), n) for n, one in enumerate(cells, 2)
    ]


def test_scores_of_a_model_are_averaged_and_both_forms_read_alike():
    long = read_judges("f", rows(("A", "j", 1), ("A", "j", "3"), ("B", "j", 5), ("B", "j", None)))
    wide = read_judges("f", [Row({"model": "A", "j": "2"}, 2), Row({"model": "B", "j": 5.0}, 3)])
    assert long == wide == {"j": {("A", None): 2.0, ("B", None): 5.0}}


def test_ranks_run_from_one_and_ties_share():
    table = compared(
        cells(),
        read_judges("f", rows(("A", "j", 1), ("B", "j", 3), ("C", "j", 3), ("D", "j", 9), ("E", "j", 9))),
    )
    ranks = {row["model"]: (row["aria_rank"], row["judge_rank"]) for row in table.to_pylist()}
    assert ranks == {"A": (4, 4), "B": (3, 2.5), "C": (2, 2.5), "D": (1, 1)}, "E has no ARIA"


def test_agreement_counts_what_is_missing():
    judged = read_judges("f", rows(("A", "j", 1), ("B", "j", 2), ("C", "j", 3), ("D", "j", 4), ("E", "j", 0)))
    rho, tau = judge_agreement(cells(), judged)
    assert (rho["estimate"], tau["estimate"], rho["n"]) == (pytest.approx(1), pytest.approx(1), 4)
    assert "1 models of the judge have no ARIA here" in rho["note"] and "mean over benchmarks" in rho["note"]


def test_accuracy_is_a_judge_on_every_benchmark():
    lines = list(judge_agreement(cells(), accuracy_as_judge(cells())))
    assert {line["note"].split(";")[0] for line in lines} == {"benchmark x", "benchmark y"}
    assert all(line["estimate"] is None and line["n"] == 4 for line in lines), (
        "all models answer alike: no ranks"
    )


def test_errors_name_the_row_and_what_is_expected():
    with pytest.raises(TableError, match="line 3: bad_score: a number is expected, not 'good'"):
        read_judges("f", rows(("A", "j", 1), ("B", "j", "good")))
    with pytest.raises(TableError, match="no column for 'judge', 'score'"):
        read_judges("f", [Row({"model": "A"}, 2)])
