"""Variance shares, W and ICC with intervals and p; second sources: statsmodels and pingouin."""

import warnings
from io import StringIO

import numpy as np
import pytest

from operators.analysis.cells import ALL_MEASURES, Cells, cells_of_rows
from operators.analysis.consistency import (
    OVER_MODELS,
    SHARES_OVER_ITEMS,
    SHARES_OVER_MODELS,
    W_OVER_ITEMS,
    anova,
    consistency,
)
from operators.analysis.estimates import as_table, percentile_interval, share_interval
from operators.analysis.published import table_1
from operators.analysis.report import show
from operators.schema import METRICS
from operators.statistics import eta_squared, icc_2_1, icc_interval
from tests.operators.analysis.made import scored_rows


def by_statistic(lines, measure="aria"):
    return {line["statistic"]: line for line in lines if line["measure"] == measure}


def test_an_effect_of_models_alone_is_found_with_certainty():
    rows = [(m, b, f"{b}{n}", level + n / 100) for m, level in zip("ABC", (0.1, 0.4, 0.7), strict=True)
            for b in "xy" for n in range(5)]  # fmt: skip
    found = by_statistic(consistency(cells_of_rows(scored_rows(rows)), 200, 0))
    model = found["eta_squared_model"]
    assert model["estimate"] == pytest.approx(1) and model["method"] == SHARES_OVER_ITEMS
    assert model["n"] == 3 and found["kendalls_w"]["method"] == W_OVER_ITEMS
    assert 0.99 < model["low"] <= model["high"] <= 1
    assert found["kendalls_w"]["estimate"] == pytest.approx(1) and found["icc_2_1"][
        "estimate"
    ] == pytest.approx(1)
    # Items are drawn for the shares and W, five on each of two benchmarks; ICC's interval rests on the three models.
    assert (
        model["n_clusters"] == found["kendalls_w"]["n_clusters"] == 10 and "few items (10)" in model["note"]
    )
    assert found["icc_2_1"]["n_clusters"] == 3 and "few models (3)" in found["icc_2_1"]["note"]
    out = StringIO()
    show({"estimates": as_table([model, found["icc_2_1"]])}, out)
    assert "3 models / 10 items" in out.getvalue() and out.getvalue().count("items (10)") == 1


def test_one_item_of_a_benchmark_is_not_drawn_again_and_again():
    rows = [(m, b, f"{b}0", level) for m, level in zip("ABC", (0.1, 0.4, 0.7), strict=True) for b in "xy"]
    found = by_statistic(consistency(cells_of_rows(scored_rows(rows)), 200, 0))
    for name, method in (("eta_squared_model", SHARES_OVER_MODELS), ("kendalls_w", OVER_MODELS)):
        assert found[name]["method"] == method and found[name]["n_clusters"] == 3
        assert found[name]["low"] is None and "no interval" in found[name]["note"]


def test_an_interval_of_a_share_is_moved_by_twice_its_bias_and_holds_the_share_by_hand():
    """Resamples 0.2 to 0.6 around 0.4 for a share of 0.3: the bias is 0.1, so that all moves down by 0.2."""
    drawn = np.linspace(0.2, 0.6, 401)
    assert percentile_interval(drawn) == pytest.approx((0.21, 0.59))
    assert share_interval(drawn, 0.3) == pytest.approx((0.01, 0.39))
    assert share_interval(drawn, 0.28) == (0.0, pytest.approx(0.35))
    assert np.isnan(share_interval(np.full(9, 0.5), 0.4)).all(), "resamples that do not vary give no interval"
    assert np.isnan(share_interval([], 0.4)).all()


def test_models_that_do_not_differ_may_have_no_share_at_all():
    """Ten tables of four models and 31 items without an effect of model: the truth is 0 in every one."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        table = rng.normal(size=31) + rng.normal(size=(4, 31))
        drawn = [eta_squared(table[:, rng.integers(31, size=31)]).model for _ in range(60)]
        assert percentile_interval(drawn)[0] > 0, "unmoved it never holds the truth"
        assert share_interval(drawn, eta_squared(table).model)[0] == 0


def test_means_alone_are_drawn_by_models():
    found = by_statistic(consistency(table_1(), 200, 0), "m1_acoustic_grounding")
    assert found["eta_squared_model"]["estimate"] == pytest.approx(0.676, abs=5e-4)
    assert found["kendalls_w"]["n_clusters"] == len(table_1().models)
    assert found["kendalls_w"]["method"] == OVER_MODELS and "means alone" in found["kendalls_w"]["note"]
    assert found["kendalls_w"]["low"] < 0.692 < found["kendalls_w"]["high"]


def test_a_measure_rests_on_the_items_that_are_scored_for_it():
    """30 items on each of two benchmarks, M4 of three of them each: 6 items for M4, 60 for M1."""
    rows = [(m, b, f"{b}{n}", dict.fromkeys(METRICS, level + n / 100) | ({} if n < 3 else {METRICS[3]: None}))
            for m, level in zip("ABC", (0.1, 0.4, 0.5), strict=True) for b in "xy" for n in range(30)]  # fmt: skip
    lines = list(consistency(cells_of_rows(scored_rows(rows)), 50, 0))
    m1, m4 = (by_statistic(lines, m)["eta_squared_model"] for m in (METRICS[0], METRICS[3]))
    assert m1["n_clusters"] == 60 and "few items" not in (m1["note"] or "")
    assert m4["n_clusters"] == 6 and "few items (6)" in m4["note"] and m4["low"] is not None


def test_shares_of_means_alone_are_moved_by_their_bias_too():
    """A table whose models do not differ: rows x 0.2 0.6, 0.6 0.2, 0.4 0.4 have mean 0.4 each. Share of model 0 of 0.08."""
    table = np.array([[0.2, 0.6], [0.6, 0.2], [0.4, 0.4]])
    cells = Cells(("A", "B", "C"), ("x", "y"), {m: table for m in ALL_MEASURES})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = by_statistic(consistency(cells, 300, 0))
    model, icc = found["eta_squared_model"], found["icc_2_1"]
    assert model["method"] == SHARES_OVER_MODELS and model["estimate"] == pytest.approx(0)
    assert model["low"] is None or model["low"] == pytest.approx(0)
    # Mean squares 0, 0 and 0.08 / 2 = 0.04: (0 - 0.04) / (0 + 0.04 + 2 (0 - 0.04) / 3) = -3, and F has no degrees of freedom.
    assert icc["estimate"] == pytest.approx(-3) and icc["low"] is None and "no interval" in icc["note"]


def test_one_model_or_one_benchmark_says_nothing():
    for rows in ([("A", "x", "i", 0.5), ("A", "y", "j", 0.6)], [("A", "x", "i", 0.5), ("B", "x", "i", 0.6)]):
        assert list(consistency(cells_of_rows(scored_rows(rows)), 100, 0)) == []


@pytest.mark.weights
def test_shares_and_p_are_those_of_statsmodels():
    import pandas as pd
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    table = np.random.default_rng(0).random((5, 3))
    model, dataset = np.indices(table.shape)
    frame = pd.DataFrame({"s": table.ravel(), "m": model.ravel(), "d": dataset.ravel()})
    expected = anova_lm(ols("s ~ C(m) + C(d)", frame).fit())
    shares = expected["sum_sq"] / expected["sum_sq"].sum()
    assert tuple(eta_squared(table)) == pytest.approx(tuple(shares))
    assert anova(table)["eta_squared_model"] == pytest.approx(expected["PR(>F)"].iloc[0])
    assert anova(np.ones((3, 2))) == {}


@pytest.mark.weights
def test_the_interval_of_the_icc_is_that_of_pingouin():
    import pandas as pd
    import pingouin

    for seed in range(4):
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=(8, 3)) + np.arange(8)[:, None] * rng.random()
        item, rater = np.indices(scores.shape)
        frame = pd.DataFrame({"i": item.ravel(), "r": rater.ravel(), "s": scores.ravel()})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # pingouin's own, about a coming change in pandas
            found = pingouin.intraclass_corr(frame, targets="i", raters="r", ratings="s")
        expected = found[found["Type"].isin(["ICC(A,1)", "ICC2"])][["CI95"]].iloc[0, 0]
        assert np.round(icc_interval(scores), 2) == pytest.approx(np.asarray(expected, dtype=float))
        low, high = icc_interval(scores)
        assert low < icc_2_1(scores) < high


@pytest.mark.parametrize(
    "scores",
    [
        [[1, 1], [2, 2], [3, 3]],
        [[0.5, 0], [0, 0.5], [0.25, 0.25]],
        [[0.3, 0.1], [0.1, 0.3], [0.2, 0.2]],
        [[0.5, 0], [0, 0.5]],
        [[1, 2], [1, 2]],
    ],
)
def test_perfect_agreement_and_items_that_do_not_differ_have_no_interval(scores):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(icc_interval(scores)).all()
