"""Correlations by hand, against scipy, and with items drawn whole."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from operators.analysis.ablation import backbone_agreement, read_means
from operators.analysis.cells import cells_of_rows
from operators.analysis.correlations import (
    clustered_rank_correlation,
    metric_correlations,
    pearson,
    rank_agreement,
    spearman,
    tau_interval,
)
from operators.analysis.estimates import as_table, percentile_interval, two_sided
from operators.schema import METRICS
from operators.tables import Row, TableError
from tests.operators.analysis.made import scored_rows


def test_spearman_by_hand_and_against_scipy():
    # Ranks 1 2 3 4 and 2 1 4 3: rho = 1 - 6 (1 + 1 + 1 + 1) / (4 * 15) = 0.6
    rho, (low, high), p = spearman([1, 2, 3, 4], [20, 10, 40, 30])
    # Sums of squares up to 4 have 1 (of 0) + 3 (of 2) + 1 (of 4) of the 24 orders: two-sided p = 2 * 5 / 24
    assert rho == pytest.approx(0.6) and p == pytest.approx(10 / 24)
    # Fisher z: atanh 0.6 = 0.693147, standard error 1 / sqrt(4 - 3) = 1
    assert (low, high) == pytest.approx(
        (math.tanh(0.693147 - 1.959964), math.tanh(0.693147 + 1.959964)), abs=1e-5
    )
    rng = np.random.default_rng(0)
    x = rng.integers(0, 4, 30)
    y = x + rng.integers(0, 4, 30)
    found = spearmanr(x, y)
    assert spearman(x, y)[::2] == pytest.approx((found.statistic, found.pvalue)), "with ties"


@pytest.mark.parametrize("y", [[1, 2, 3, 4], [4, 3, 2, 1]])
def test_four_models_in_one_order_are_one_of_24_orders_not_certain(y):
    rho, interval, p = spearman([1, 2, 3, 4], y)
    assert abs(rho) == pytest.approx(1) and p == pytest.approx(2 / 24)
    assert all(math.isnan(bound) for bound in interval)
    rho, tau = rank_agreement("judges", "aria", "j", [1, 2, 3, 4], y, "models")
    assert tau["p"] == pytest.approx(rho["p"]) and rho["method"].endswith("over all orders")
    assert (rho["low"], rho["high"]) == (None, None) and "perfect agreement" in rho["note"]


def test_perfect_ranks_with_ties_and_many_models_by_hand():
    # Ranks 1 2 3.5 3.5 twice: 2 of 24 orders give them. With 12 models and one tie of 3: 3! of 12! orders.
    assert spearman([1, 2, 3, 3], [5, 6, 7, 7])[2] == pytest.approx(4 / 24)
    many = [*range(10), 9, 9]
    assert spearman(many, many)[2] == pytest.approx(2 * 6 / math.factorial(12))
    r, interval, p = pearson(np.arange(12.0), 2 * np.arange(12.0))
    assert r == pytest.approx(1) and all(math.isnan(value) for value in (*interval, p))


def test_what_has_no_correlation_is_nan_without_a_warning(recwarn):
    for x, y in (([1, 1, 1, 1], [1, 2, 3, 4]), ([1, 2], [2, 1]), ([], [])):
        rho, (low, high), p = pearson(np.array(x, float), np.array(y, float))
        assert all(math.isnan(value) for value in (rho, low, high, p))
    assert not recwarn.list


def test_chains_of_one_item_are_no_new_evidence():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, 40))
    single = clustered_rank_correlation("a", "m", "v", x, x + y, range(40), 500, 0)
    fourfold = clustered_rank_correlation(
        "a", "m", "v", np.tile(x, 4), np.tile(x + y, 4), [*range(40)] * 4, 500, 0
    )
    assert (single["n"], single["n_clusters"]) == (40, 40) and (fourfold["n"], fourfold["n_clusters"]) == (
        160,
        40,
    )
    assert fourfold["estimate"] == pytest.approx(single["estimate"])
    width = [line["high"] - line["low"] for line in (single, fourfold)]
    assert width[1] == pytest.approx(width[0], rel=0.15), "forgetting the items would halve it"


def test_the_interval_of_tau_by_hand():
    # atanh 0.5 = 0.549306; 1.959964 * sqrt(0.437 / (14 - 4)) = 0.409727
    assert tau_interval(0.5, 14) == pytest.approx((math.tanh(0.139579), math.tanh(0.959033)), abs=1e-5)
    assert all(
        math.isnan(bound)
        for tau, n in ((1.0, 9), (1 - 2e-16, 8), (0.5, 4), (math.nan, 9))
        for bound in tau_interval(tau, n)
    )


def test_pairs_that_lack_a_score_are_left_out_and_few_are_said():
    lines = list(rank_agreement("judges", "aria", "j", [1, 2, 3, np.nan, 5], [2, 1, np.nan, 4, 6], "models"))
    assert [line["n"] for line in lines] == [3, 3] and lines[1]["low"] is None
    assert all("few models (3)" in line["note"] for line in lines)


def test_metrics_correlate_over_models_benchmarks_and_chains():
    rng = np.random.default_rng(2)
    rows = []
    for model in "ABCDE":
        for benchmark in "xy":
            for item in range(6):
                base = rng.random()
                scores = dict.fromkeys(METRICS, base) | {METRICS[5]: 1 - base}
                rows.append((model, benchmark, f"{benchmark}{item}", scores))
    table = scored_rows(rows)
    lines = list(metric_correlations(cells_of_rows(table), table, 200, 0))
    assert {line["unit"] for line in lines} == {"models", "models on a benchmark", "chains"}
    assert len(lines) == 3 * 15
    chains = [line for line in lines if line["unit"] == "chains"]
    assert {(line["n"], line["n_clusters"]) for line in chains} == {(60, 12)}
    # Five models on two benchmarks are ten cells, but five models.
    cells = [line for line in lines if line["unit"] == "models on a benchmark"]
    assert {(line["n"], line["n_clusters"]) for line in cells} == {(10, 5)}
    assert all("few models (5)" in line["note"] and "once per benchmark" in line["note"] for line in cells)
    models = [line for line in lines if line["unit"] == "models"]
    assert all(line["n_clusters"] == 5 and "once per benchmark" not in line["note"] for line in models)
    for line in chains:
        sign = -1 if METRICS[5] in (line["measure"], line["versus"]) else 1
        assert line["estimate"] == pytest.approx(sign)
        assert (
            line["low"] is line["high"] is line["p"] is None and "resamples that do not vary" in line["note"]
        )
    assert as_table(lines).num_rows == 45


def test_the_interval_of_resamples_and_its_p():
    drawn = np.arange(1000) / 1000
    assert percentile_interval(drawn) == pytest.approx((0.025, 0.975), abs=2e-3)
    assert math.isnan(two_sided(np.ones(9))) and math.isnan(percentile_interval(np.ones(1000))[0])
    assert two_sided(drawn - 0.1) == pytest.approx(2 * 102 / 1001)
    assert all(math.isnan(bound) for bound in percentile_interval([math.nan, 1.0]))


def test_backbones_are_compared_with_the_first_of_their_metric():
    def means(backbone, *values):
        return [
            Row({"metric": "m3", "backbone": backbone, "model": model, "benchmark": "x", "mean": value}, 2)
            for model, value in zip("ABCD", values, strict=False)
        ]

    rows = [
        *means("default", 0.1, 0.2, 0.3, 0.4),
        *means("big", 0.2, 0.1, 0.4, 0.3),
        *means("other", 0.5, 0.6, 0.7),
    ]
    lines = list(backbone_agreement(read_means("f", rows)))
    rhos = {
        line["versus"]: (line["estimate"], line["n"]) for line in lines if line["statistic"] == "spearman_rho"
    }
    assert rhos["big against default"] == (pytest.approx(0.6), 4)
    assert rhos["other against default"] == (pytest.approx(1.0), 3)
    with pytest.raises(TableError, match="stands there twice"):
        read_means("f", [*means("default", 0.1), *means("default", 0.1)])
    (bare,) = (Row({"backbone": "b", "model": "A", "benchmark": "x", "mean": None}, 2),)
    assert read_means("f", [bare], "m2")[0][:4] == ("m2", "b", "A", "x")
    with pytest.raises(TableError, match="no column for 'metric'"):
        read_means("f", [bare])
