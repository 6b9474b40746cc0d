"""Agreement of backbones, on hand-computed grids and on the numbers of ARIA-Rubrics, Tables 8 to 10."""

import numpy as np
import pyarrow as pa
import pytest

from operators.ablation import AGREEMENT, agreement, means, of_grid
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


def crossed(values):
    """Rows and scores of a table [models, items] per backbone, on the benchmark "b"."""
    n_models, n_items = np.shape(next(iter(values.values())))
    rows = rows_of(*((f"m{m}", "b", str(i)) for m in range(n_models) for i in range(n_items)))
    return rows, {backbone: np.ravel(table).astype(float) for backbone, table in values.items()}


def by_name(table):
    return {(line["statistic"], line["unit"], line["versus"]): line for line in table.to_pylist()}


def test_the_published_m3_ranks_agree_and_the_shares_add_up():
    w, model, backbone, both, *rhos = of_grid(TABLE_8)
    # Ranks of the three columns differ in four places: 1/2 swapped, and 5, 6, 7 in two orders.
    # Rank sums (1 = lowest): 26 26 21 18 13 14 10 7 3 -> 7 models; see the sum below.
    ranks = TABLE_8.argsort(axis=0).argsort(axis=0).sum(axis=1) + 3
    by_hand = 12 * ((ranks - ranks.mean()) ** 2).sum() / (3**2 * (9**3 - 9))
    assert w == pytest.approx(by_hand) and w > 0.95
    assert model + backbone + both == pytest.approx(1)
    assert model > 0.8 > 0.1 > backbone and len(rhos) == 2


def test_a_shift_of_scale_is_due_to_the_backbone_and_leaves_the_order():
    model = np.array([0.2, 0.4, 0.6])
    # Sums of squares: models 2 * (0.04 + 0 + 0.04) = 0.16; backbones 3 * 2 * 0.15^2 = 0.135; nothing is left.
    found = of_grid(np.stack([model, model + 0.3], axis=1))
    assert found == pytest.approx([1, 0.16 / 0.295, 0.135 / 0.295, 0, 1])


def test_reversed_ranks_of_two_backbones_agree_in_nothing():
    model = np.array([0.1, 0.2, 0.3, 0.4])
    w, share, _, _, rho = of_grid(np.stack([model, model[::-1]], axis=1))
    assert (w, share, rho) == pytest.approx((0, 0, -1))


def test_one_model_has_no_ranking_and_the_note_says_so():
    rows, scores = crossed({"one": [[0.1, 0.2, 0.4]], "two": [[0.2, 0.3, 0.9]]})
    found = by_name(agreement(rows, scores, "m3", n_resamples=20))
    for name in ("kendalls_w", "share_backbone"):
        line = found[name, "models", "all backbones"]
        assert (line["estimate"], line["low"], line["n"]) == (None, None, 1)
        assert "no value: 1 of 2 models it needs" in line["note"]
    assert "1 of 3 models" in found["spearman_rho", "models", "two"]["note"]
    over_rows = found["spearman_rho", "chains", "two"]
    assert over_rows["estimate"] == pytest.approx(1) and "few items (3)" in over_rows["note"]


def test_ranks_that_every_item_shares_have_no_interval_and_noise_gives_one():
    rng = np.random.default_rng(0)
    level, noise = np.array([[0.2], [0.5], [0.8]]), rng.normal(0, 0.3, (2, 3, 40))
    clear = agreement(*crossed({"one": level + 0 * noise[0], "two": level + 0.1 + 0 * noise[0]}), "m3", 50)
    for line in clear.to_pylist():
        assert line["low"] is line["high"] is None and "do not vary" in line["note"], line["statistic"]
    noisy = by_name(agreement(*crossed({"one": level + noise[0], "two": 0.5 + noise[1]}), "m3", 200))
    w = noisy["kendalls_w", "models", "all backbones"]
    assert 0 <= w["low"] < w["estimate"] <= w["high"] <= 1 and w["low"] < 0.6
    assert (
        (w["n"], w["n_clusters"]) == (3, 40)
        and "few models (3)" in w["note"]
        and "items drawn" in w["method"]
    )
    for name in ("share_model", "share_backbone", "share_interaction"):
        share = noisy[name, "models", "all backbones"]
        assert 0 <= share["low"] <= share["estimate"] <= share["high"] <= 1 and share["low"] < share["high"]
    assert agreement(*crossed({"one": level, "two": level}), "m3", 50).schema == AGREEMENT


def test_an_item_is_drawn_with_all_its_models_backbones_and_trials():
    # Items are level shifts that models and backbones share: whichever are drawn, the shares stay what they are.
    item = np.linspace(0, 1, 30)
    model = np.array([[0.0], [0.3], [0.4]])
    rows, scores = crossed({"one": model + item, "two": model + item + 0.1})
    doubled = pa.concat_tables([rows, rows]), {name: np.tile(values, 2) for name, values in scores.items()}
    for made in ((rows, scores), doubled):
        share = by_name(agreement(*made, "m3", 50))["share_model", "models", "all backbones"]
        # Models: 2 * (0.0544 + 0.0044 + 0.0278) = 0.1733; backbones: 6 * 0.05^2 = 0.015.
        assert share["estimate"] == pytest.approx(0.17333 / 0.18833, abs=1e-4)
        assert share["low"] is None and "do not vary" in share["note"] and share["n_clusters"] == 30


def test_scores_that_do_not_vary_and_a_single_item_have_no_interval_and_say_why():
    flat = by_name(agreement(*crossed({"one": np.full((3, 4), 0.5), "two": np.full((3, 4), 0.5)}), "m3", 20))
    for (name, unit, _), line in flat.items():
        assert line["estimate"] is line["low"] is None and "not vary" in line["note"], (name, unit)
    alone = by_name(
        agreement(*crossed({"one": [[0.1], [0.2], [0.6]], "two": [[0.2], [0.4], [0.9]]}), "m3", 20)
    )
    w = alone["kendalls_w", "models", "all backbones"]
    assert w["estimate"] == pytest.approx(1) and w["low"] is None
    assert "one item cannot be drawn anew" in w["note"] and "few items (1)" in w["note"]


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
    # Of "one" two items, 0.3 and 0.9: t of one degree of freedom 12.7062, standard error 0.4243 / sqrt(2) = 0.3: 0.6 -+ 3.8, cut.
    assert (table[0]["mean_low"], table[0]["mean_high"]) == (0, 1)
    assert [e["n_items"] for e in table] == [2, 2, 0, 0] and table[2]["mean_low"] is None
    assert [e["interval_reason"] for e in table] == [None, None, "too_few: no item", "too_few: no item"]
    line, *_ = agreement(rows, scores, "m3").to_pylist()
    assert (line["n"], line["n_clusters"]) == (1, 2), "a model without a common row takes no part"


def test_the_table_has_a_column_per_backbone_and_benchmark_and_names_are_only_text():
    rows = rows_of(("<b>x|y", "b", "1"), ("<b>x|y", "c", "1"), ("best", "b", "1"), ("best", "c", "1"))
    scores = {"one": np.array([0.1, 0.2, 0.8, 0.9]), "two": np.array([0.1, 0.2, 0.8, np.nan])}
    table = means(rows, scores)
    head, lines = grid(table, list(scores))
    assert head == ["Model", "one\nb", "one\nc", "two\nb", "two\nc", "rows"]
    assert lines[0] == ["best", "0.8000", "-", "0.8000", "-", "1 + 0/1"]
    text = to_markdown("m3", table, agreement(rows, scores, "m3"), list(scores))
    assert "<b>" not in text and "x\\|y" in text and "var\\. model" not in text
