"""The paper's figures from its own tables: what comes out, what does not, and that the tables were copied rightly."""

import numpy as np
import pytest

from operators.analysis.cells import ALL_MEASURES
from operators.analysis.published import compare_with_the_paper, table_1
from operators.leaderboard import ABSENT
from tests.operators.test_statistics import ARIA_TABLE_1


def figures():
    return {(row["where"], row["figure"]): row for row in compare_with_the_paper().to_pylist()}


def test_table_1_is_the_one_that_was_copied_by_hand_elsewhere():
    cells = table_1()
    table = np.stack([cells.means[measure] for measure in ALL_MEASURES[:7]], axis=-1)
    assert np.array_equal(table, ARIA_TABLE_1.transpose(1, 0, 2))
    assert cells.models[0] == "Qwen2-Audio" and cells.datasets == ("MMAR", "MMAU-mini")


def test_the_default_backbones_of_tables_8_to_10_differ_from_table_1_in_two_cells():
    row = figures()["Tables 8 to 10", "default backbones as in Table 1"]
    assert (row["recomputed"], row["comes_out"]) == ("52 of 54", False)
    assert "M4 of Phi-4 on MMAU-mini 0.5536 against 0.6255" in row["why"] and "M4 of R1-AQA" in row["why"]


@pytest.mark.parametrize(
    "where, figure, comes_out, recomputed",
    [
        ("Table 1", "ARIA is the mean of M1 to M6", True, "18 of 18"),
        ("Figure 2", "least share of variance by model", False, "0.676"),
        ("Figure 3", "largest Kendall's W", False, "0.958"),
        ("Figure 4", "r of M2 and M3", True, "0.916"),
        ("Figure 4", "r of M4 and M5", False, "0.968"),
        ("Figure 4", "r of M6 and M2", True, "-0.578"),
        ("Table 5", "p of m1 (rho 0.563)", True, "0.015"),
        ("Table 5", "p of aria (rho 0.671)", False, "0.002"),
        ("Table 2", "ranks by ARIA", False, "4 of 9"),
        ("Table 10", "M5: the ranking is preserved", False, "0 of 4"),
    ],
)
def test_what_comes_out_and_what_does_not(where, figure, comes_out, recomputed):
    row = figures()[where, figure]
    assert (row["comes_out"], row["recomputed"]) == (comes_out, recomputed)


def test_every_figure_has_a_reason_and_the_counts_are_those_of_the_readme():
    rows = figures().values()
    assert all(row["why"] and row["recomputed"] != ABSENT for row in rows)
    verdicts = [row["comes_out"] for row in rows]
    assert (verdicts.count(True), verdicts.count(False), verdicts.count(None)) == (11, 17, 1)
