"""The paper's figures from its own tables: what comes out, what does not, and that the tables were copied rightly."""

import numpy as np
import pytest

from operators.analysis.cells import ALL_MEASURES
from operators.analysis.published import compare_with_the_paper
from operators.analysis.published_tables import LAST_DIGIT, NO, YES, line, rows_of, table_1
from operators.printing import ABSENT
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
    assert (row["recomputed"], row["comes_out"]) == ("52 of 54", NO)
    assert "M4 of Phi-4 on MMAU-mini 0.5536 against 0.6255" in row["why"] and "M4 of R1-AQA" in row["why"]


@pytest.mark.parametrize(
    "where, figure, comes_out, recomputed",
    [
        ("Table 1", "ARIA is the mean of M1 to M6", YES, "18 of 18"),
        ("Section 4", "highest ARIA on MMAR", YES, "0.5796"),
        ("Section 4", "highest ARIA on MMAU-mini", NO, "0.5819"),
        ("Section 4", "benchmarks whose two highest ARIA are closed-source", YES, "2 of 2"),
        ("Section 4", "open-source model with the best ARIA overall", YES, "Qwen2.5-Omni"),
        ("Section 4", "M2: closed-source models vary less than all others", YES, "2 of 2"),
        ("Section 4", "M3: closed-source models vary less than all others", YES, "2 of 2"),
        ("Section 4", "M6: closed-source models vary less than all others", NO, "1 of 2"),
        ("Table 6", "accuracies with CoT as in Table 1", YES, "18 of 18"),
        ("Table 12", "M1 as in Table 1", YES, "9 of 9"),
        ("Table 13", "M1 of GPT-4o-audio's own chains on MMAR", NO, "0.3725"),
        ("Figure 2", "least share of variance by model", NO, "0.676"),
        ("Figure 3", "largest Kendall's W", NO, "0.958"),
        ("Figure 4", "r of M2 and M3", YES, "0.916"),
        ("Figure 4", "r of M4 and M5", NO, "0.968"),
        ("Figure 4", "r of M6 and M2", YES, "-0.578"),
        ("Figure 4", "r of M6 and M3", LAST_DIGIT, "-0.632"),
        ("Table 5", "p of m1 (rho 0.563)", YES, "0.015"),
        ("Table 5", "p of m2 (rho 0.295)", LAST_DIGIT, "0.235"),
        ("Table 5", "p of aria (rho 0.671)", NO, "0.002"),
        ("Table 2", "ranks by ARIA", NO, "4 of 9"),
        ("Table 10", "M5: the ranking is preserved", NO, "0 of 4"),
    ],
)
def test_what_comes_out_and_what_does_not(where, figure, comes_out, recomputed):
    row = figures()[where, figure]
    assert (row["comes_out"], row["recomputed"]) == (comes_out, recomputed)


def test_every_figure_has_a_reason_and_the_counts_are_those_of_the_readme():
    rows = figures().values()
    assert all(row["why"] and row["recomputed"] != ABSENT for row in rows)
    verdicts = [row["comes_out"] for row in rows]
    assert [verdicts.count(one) for one in (YES, LAST_DIGIT, NO, None)] == [14, 5, 19, 1]


def test_one_rule_for_every_number():
    """Equal to the printed digits; one unit of the last one apart; more."""
    found = [line("", "", "0.95", value, "")["comes_out"] for value in (0.9549, 0.9551, 0.9449, 0.966)]
    assert found == [YES, LAST_DIGIT, LAST_DIGIT, NO]
    assert line("", "", "-0.633", -0.6323, "")["comes_out"] == LAST_DIGIT


def test_table_6_and_table_13_were_copied_rightly():
    """Sums of the printed columns, MMAR first: 17.7 + 44.3 + 27.3 + 21.6 + 20.1 + 31.1 + 27.1 + 67.6 + 62.6 = 319.4."""
    rows = rows_of("table_6")
    sums = [
        [
            round(sum(float(r[name]) for r in rows if r["benchmark"] == benchmark), 1)
            for name in list(rows[0])[2:]
        ]
        for benchmark in ("MMAR", "MMAU-mini")
    ]
    assert sums == [[319.4, 141.6, 335.3, 150.9], [373.6, 132.5, 359.5, 150.3]]
    assert [row["m1"] for row in rows_of("table_13")] == ["0.3949", "0.1746", "0.0940", "0.3503"]
