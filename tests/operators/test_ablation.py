"""Agreement of backbones, on hand-computed grids and on the numbers of ARIA-Rubrics, Tables 8 to 10."""

import numpy as np
import pyarrow as pa
import pytest

from operators.ablation import agreement, agreement_of, means, spearman
from operators.ablation_report import grid, to_markdown

# Table 8, MMAR: Qwen2.5-1.5B, Qwen2.5-32B, Gemma-3n-E2B; nine models.
TABLE_8 = np.array(
    [
        [0.7838, 0.9228, 0.8920], [0.7729, 0.9233, 0.8982], [0.7561, 0.7981, 0.7873],
        [0.7362, 0.7670, 0.7775], [0.6481, 0.6568, 0.6724], [0.6967, 0.6746, 0.6730],
        [0.6891, 0.6276, 0.6465], [0.6293, 0.6246, 0.6376], [0.5735, 0.5446, 0.5887],
    ]
)  # fmt: skip


def rows_of(*triples):
    names = ("model", "benchmark", "item_id")
    return pa.Table.from_pylist([dict(zip(names, triple, strict=True)) for triple in triples])


def test_the_published_m3_ranks_agree_and_the_shares_add_up():
    found = agreement_of("MMAR", TABLE_8, [np.arange(3.0)] * 3)
    # Ranks of the three columns differ in four places: 1/2 swapped, and 5, 6, 7 in two orders.
    # Rank sums (1 = lowest): 26 26 21 18 13 14 10 7 3 -> 7 models; see the sum below.
    ranks = TABLE_8.argsort(axis=0).argsort(axis=0).sum(axis=1) + 3
    by_hand = 12 * ((ranks - ranks.mean()) ** 2).sum() / (3**2 * (9**3 - 9))
    assert found.kendalls_w == pytest.approx(by_hand) and found.kendalls_w > 0.95
    assert found.from_model + found.from_backbone + found.interaction == pytest.approx(1)
    assert found.from_model > 0.8 > 0.1 > found.from_backbone


def test_a_shift_of_scale_is_due_to_the_backbone_and_leaves_the_order():
    model = np.array([0.2, 0.4, 0.6])
    found = agreement_of("b", np.stack([model, model + 0.3], axis=1), [model, model])
    # Sums of squares: models 2 * (0.04 + 0 + 0.04) = 0.16; backbones 3 * 2 * 0.15^2 = 0.135; nothing is left.
    assert found.kendalls_w == pytest.approx(1) and found.spearman == (1.0, 1.0)
    assert found.from_model == pytest.approx(0.16 / 0.295)
    assert found.from_backbone == pytest.approx(0.135 / 0.295)
    assert found.interaction == pytest.approx(0)


def test_reversed_ranks_of_two_backbones_agree_in_nothing():
    model = np.array([0.1, 0.2, 0.3, 0.4])
    found = agreement_of("b", np.stack([model, model[::-1]], axis=1), [model, model[::-1]])
    assert found.kendalls_w == pytest.approx(0) and found.spearman[1] == found.rho_rows[1] == pytest.approx(
        -1
    )
    assert found.from_model == pytest.approx(0)


def test_one_model_has_no_ranking():
    found = agreement_of("b", np.array([[0.1, 0.2]]), [np.array([0.1, 0.2, 0.4]), np.array([0.2, 0.3, 0.9])])
    assert found.kendalls_w is None and found.from_backbone is None and found.spearman == ()
    assert found.rho_rows == (1.0, 1.0)


def test_means_are_over_the_rows_that_every_backbone_scored_and_over_items_first():
    rows = rows_of(("x", "b", "1"), ("x", "b", "1"), ("x", "b", "2"), ("x", "b", "3"), ("y", "b", "1"))
    scores = {"one": np.array([0.2, 0.4, 0.9, 0.5, np.nan]), "two": np.array([0.0, 0.0, 0.6, np.nan, 0.5])}
    table = means(rows, scores).to_pylist()
    # one: item 1 is (0.2 + 0.4) / 2 = 0.3, item 2 is 0.9, item 3 was not scored by "two": (0.3 + 0.9) / 2.
    assert [(e["model"], e["backbone"], e["mean"], e["n_common"], e["n_failed"]) for e in table] == [
        ("x", "one", pytest.approx(0.6), 3, 0),
        ("x", "two", pytest.approx(0.3), 3, 1),
        ("y", "one", None, 0, 1),
        ("y", "two", None, 0, 0),
    ]
    # Of "one" two items, 0.3 and 0.9: t of one degree of freedom 12.7062, standard error 0.4243 / sqrt(2) = 0.3.
    assert (table[0]["mean_low"], table[0]["mean_high"]) == pytest.approx(
        (0.6 - 3.81186, 0.6 + 3.81186), abs=1e-4
    )
    assert [e["n_items"] for e in table] == [2, 2, 0, 0] and table[2]["mean_low"] is None
    (found,) = agreement(rows, scores, means(rows, scores))
    assert found.n_models == 1, "a model without a common row takes no part"


def test_spearman_leaves_out_what_is_missing_and_says_none_for_too_little():
    a = np.array([1.0, 2.0, np.nan, 3.0])
    assert spearman(a, np.array([5.0, 6.0, 0.0, 9.0])) == pytest.approx(1)
    assert spearman(a[:3], a[:3]) is None and spearman(np.ones(4), a) is None


def test_the_table_has_a_column_per_backbone_and_benchmark_and_names_are_only_text():
    rows = rows_of(("<b>x|y", "b", "1"), ("<b>x|y", "c", "1"), ("best", "b", "1"), ("best", "c", "1"))
    scores = {"one": np.array([0.1, 0.2, 0.8, 0.9]), "two": np.array([0.1, 0.2, 0.8, np.nan])}
    table = means(rows, scores)
    head, lines = grid(table, list(scores))
    assert head == ["Model", "one\nb", "one\nc", "two\nb", "two\nc", "rows"]
    assert lines[0] == ["best", "0.8000", "-", "0.8000", "-", "1 + 0/1"]
    text = to_markdown("m3", table, agreement(rows, scores, table), list(scores))
    assert "<b>" not in text and "x\\|y" in text and "var\\. model" not in text
