"""Each statistic by hand, against a second source, and on the tables that the papers print.

What the text of ARIA-Rubrics says, and what comes out of its Table 1 (9 models x 2 benchmarks) below:

| published | recomputed from Table 1 |
|---|---|
| eta^2 of the model 91.9 - 96.4 % | M2 91.9, M3 93.4, M5 96.0, M6 94.2; but M1 67.6, M4 89.9; no 96.4 |
| eta^2 of the dataset at most 1.7 % | M5 1.7, M1, M2, M3, M6 less; but M4 4.9 |
| Kendall's W in [0.933, 0.992] | M2, M4, M6 0.933, M3 0.950, M5 0.958; but M1 0.692; no 0.992 |
| r(M2, M3) = 0.916, r(M2, M6) = -0.578, r(M3, M6) = -0.633 | 0.916, -0.578, -0.632 over the 9 model means |
| r(M4, M5) = 0.951 | 0.968 over model means, 0.938 over all 18 rows |
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import friedmanchisquare, ttest_rel

from operators import intervals, statistics
from operators.statistics import eta_squared, icc_2_1, kendalls_w, paired_bootstrap, pearson_matrix

# ARIA-Rubrics Table 1, columns M1..M6 and ARIA: MMAR, then MMAU-mini; the models in the order of the paper.
_ARIA = """
    .1963 .6169 .6967 .5220 .2015 .4326 .4443   .4344 .6815 .7561 .5887 .2873 .5215 .5449
    .2861 .6442 .7362 .6315 .3215 .4356 .5092   .2107 .5700 .6891 .5358 .1812 .4237 .4351
    .2401 .6159 .6293 .6099 .2887 .4817 .4776   .3309 .4626 .5735 .5672 .2317 .6171 .4638
    .3432 .5972 .6481 .5129 .2210 .6143 .4895   .3725 .7142 .7838 .7506 .4346 .4219 .5796
    .3808 .6776 .7729 .7426 .4021 .4375 .5689
    .1941 .6123 .6959 .5346 .2209 .4462 .4507   .1929 .6654 .7587 .6364 .3481 .4771 .5131
    .3174 .6207 .7181 .6903 .3237 .4491 .5199   .2670 .5847 .6926 .5536 .2056 .4490 .4588
    .3032 .5774 .6186 .6877 .2860 .5097 .4971   .3637 .5237 .6178 .5476 .2616 .6046 .4865
    .3443 .6507 .7300 .6255 .2744 .5521 .5295   .4035 .6836 .7780 .7491 .4161 .4502 .5801
    .4199 .6564 .7680 .7763 .4169 .4541 .5819
"""
ARIA_TABLE_1 = np.array(_ARIA.split(), dtype=float).reshape(2, 9, 7)


tables = arrays(float, (5, 3), elements=st.integers(-20, 20).map(float))


@pytest.mark.parametrize("a, b, difference", [
    ([1, 2, 3], [0, 1, 2], 1.0),
    ([1, 0, 1], [1, 0, 1], 0.0),
    (np.arange(9) / 10 + 0.1, np.arange(9) / 10, 0.1),
    (np.zeros(40), np.ones(40), -1.0),
])  # fmt: skip
def test_bootstrap_of_a_constant_difference_has_no_interval(a, b, difference) -> None:
    result = paired_bootstrap(a, b)
    assert result.difference == pytest.approx(difference)
    assert np.isnan(result[1:4]).all()


def test_bootstrap_around_no_difference_has_p_one() -> None:
    # Differences 1 and -1: resamples 1, 0, 0, -1 have three quarters on either side.
    assert paired_bootstrap([1, 0], [0, 1]).p == 1.0


def test_bootstrap_of_two_pairs_by_hand() -> None:
    # Differences 0 and 1: the mean of a resample is 0, 1/2, 1 with shares 1/4, 1/2, 1/4.
    result = paired_bootstrap([0, 1], [0, 0], n_resamples=20_000)
    assert (result.difference, result.low, result.high) == (0.5, 0.0, 1.0)
    assert result.p == pytest.approx(2 * 1 / 4, abs=0.02)


def test_bootstrap_agrees_with_the_t_test_on_many_normal_pairs() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.1, 1, 500), rng.normal(0, 1, 500)
    result, reference = paired_bootstrap(a, b), ttest_rel(a, b)
    interval = reference.confidence_interval()
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=0.01)
    assert result.p == pytest.approx(reference.pvalue, abs=0.03)


def test_bootstrap_is_fixed_by_its_seed() -> None:
    a, b = np.random.default_rng(0).random((2, 30))
    assert paired_bootstrap(a, b, seed=5) == paired_bootstrap(a, b, seed=5)
    assert paired_bootstrap(a, b, seed=5) != paired_bootstrap(a, b, seed=6)


def test_bootstrap_draws_clusters_whole() -> None:
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 60))
    single = paired_bootstrap(a, b)
    # Each pair four times over, as one cluster: no new evidence, hence the same interval ...
    fourfold = paired_bootstrap(np.repeat(a, 4), np.repeat(b, 4), cluster=np.repeat(np.arange(60), 4))
    assert fourfold[:4] == pytest.approx(single[:4])
    assert (fourfold.n, fourfold.n_clusters) == (240, 60)
    # ... which forgetting the clusters would halve.
    forgotten = paired_bootstrap(np.repeat(a, 4), np.repeat(b, 4))
    assert (forgotten.high - forgotten.low) / (single.high - single.low) == pytest.approx(0.5, abs=0.05)


def test_bootstrap_weights_clusters_by_size_and_takes_any_label() -> None:
    # Clusters x = (1, 1, 1) and y = (0): a resample is xx, xy, yx or yy with means 1, 3/4, 3/4, 0.
    result = paired_bootstrap([1, 1, 1, 0], [0, 0, 0, 0], cluster=["x", "x", "x", "y"])
    assert (result.difference, result.low, result.high, result.n_clusters) == (0.75, 0.0, 1.0, 2)


def test_bootstrap_refuses_what_it_cannot_pair() -> None:
    for a, b, cluster, message in [
        ([1, 2], [1], None, "as many in b as in a"),
        ([1, math.nan], [1, 2], None, "1 values that are not finite"),
        ([1, 2], [1, 2], [0, 0], "at least 2 clusters"),
        ([1, 2], [1, 2], [0], "1 cluster labels for 2 pairs"),
    ]:
        with pytest.raises(ValueError, match=message):
            paired_bootstrap(a, b, cluster)


def test_kendalls_w_by_hand() -> None:
    # Ranks 1 2 3, 1 3 2: sums 2 5 5, mean 4, S = 4 + 1 + 1 = 6; W = 12 * 6 / (2^2 * (27 - 3)) = 72 / 96
    assert kendalls_w([[10, 20, 30], [0.1, 0.3, 0.2]]) == pytest.approx(0.75)
    # Ties: ranks 1 2.5 2.5 twice: sums 2 5 5, S = 6; T = 2 * (8 - 2) = 12; W = 72 / (96 - 2 * 12)
    assert kendalls_w([[1, 2, 2], [0, 5, 5]]) == pytest.approx(1.0)


def test_kendalls_w_of_agreement_and_of_its_opposite() -> None:
    assert kendalls_w([[1, 2, 3, 4]] * 3) == pytest.approx(1.0)
    assert kendalls_w([[1, 2, 3], [3, 2, 1]]) == pytest.approx(0.0)
    assert math.isnan(kendalls_w([[1, 1, 1], [2, 2, 2]]))


@settings(max_examples=50, deadline=None)
@given(tables)
def test_kendalls_w_agrees_with_friedmans_test(scores: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        chi_square = friedmanchisquare(*scores.T).statistic
    # W = chi^2 / (raters * (items - 1))
    assert kendalls_w(scores) == pytest.approx(chi_square / (5 * 2), nan_ok=True)


def test_icc_of_the_six_by_four_ratings_of_shrout_and_fleiss_1979() -> None:
    ratings = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]
    # MSR 11.2417, MSC 32.4861, MSE 1.0194: 10.2222 / (11.2417 + 3 * 1.0194 + 4 * 31.4667 / 6) = 0.2898
    assert icc_2_1(ratings) == pytest.approx(0.2898, abs=5e-5)


@pytest.mark.weights
def test_icc_agrees_with_pingouin() -> None:
    pingouin, pandas = pytest.importorskip("pingouin"), pytest.importorskip("pandas")
    scores = np.random.default_rng(0).normal(size=(8, 3)) + np.arange(8)[:, None] / 3
    item, rater = np.indices(scores.shape)
    frame = pandas.DataFrame({"i": item.ravel(), "r": rater.ravel(), "s": scores.ravel()})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pingouin's own, about a coming change in pandas
        result = pingouin.intraclass_corr(frame, targets="i", raters="r", ratings="s")
    # Absolute agreement, single rater: "ICC2" in older releases.
    expected = result[result["Type"].isin(["ICC(A,1)", "ICC2"])]["ICC"].item()
    assert icc_2_1(scores) == pytest.approx(expected, abs=1e-6)


def test_icc_of_perfect_agreement_and_of_none() -> None:
    assert icc_2_1([[1, 1], [2, 2], [5, 5]]) == pytest.approx(1.0)
    assert icc_2_1([[1, 2], [2, 3], [3, 4]]) < 1, "a constant shift between raters is disagreement"
    assert math.isnan(icc_2_1([[0.1, 0.1], [0.1, 0.1]]))


def test_eta_squared_by_hand() -> None:
    # Mean 3; row means 2, 4: 2 * (1 + 1) = 4; column means 2.5, 3.5: 2 * (0.25 + 0.25) = 1;
    # deviations -2, 0, 1, 1: total 4 + 0 + 1 + 1 = 6, of which 6 - 4 - 1 = 1 remains
    assert eta_squared([[1, 3], [4, 4]]) == pytest.approx((4 / 6, 1 / 6, 1 / 6))
    assert all(math.isnan(share) for share in eta_squared([[2, 2], [2, 2]]))


@settings(max_examples=50, deadline=None)
@given(tables)
def test_shares_add_up_and_ignore_shift_and_scale(table: np.ndarray) -> None:
    shares = eta_squared(table)
    if np.ptp(table) == 0:
        assert all(math.isnan(share) for share in shares)
    else:
        assert sum(shares) == pytest.approx(1)
        assert min(shares) >= 0
        assert eta_squared(3 - 2 * table) == pytest.approx(shares, abs=1e-9)


def test_pearson_agrees_with_numpy_and_leaves_constants_undefined() -> None:
    data = np.random.default_rng(0).normal(size=(20, 4))
    assert pearson_matrix(data) == pytest.approx(np.corrcoef(data, rowvar=False))
    data[:, 1] = 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matrix = pearson_matrix(data)
    assert np.isnan(matrix[1]).all() and np.isnan(matrix[:, 1]).all()
    assert np.isfinite(np.delete(np.delete(matrix, 1, 0), 1, 1)).all()


@pytest.mark.parametrize("function", [kendalls_w, icc_2_1, eta_squared, pearson_matrix])
def test_matrices_are_checked(function) -> None:
    for bad, message in [
        ([1, 2], "two dimensions"),
        ([[1, 2]], "at least 2"),
        ([[1, 2], [3, math.nan]], "1 values"),
    ]:
        with pytest.raises(ValueError, match=message):
            function(bad)


def test_table_1_was_copied_rightly() -> None:
    assert ARIA_TABLE_1[..., :6].mean(axis=-1) == pytest.approx(ARIA_TABLE_1[..., 6], abs=5.1e-5)


def test_variance_shares_of_aria_table_1() -> None:
    shares = np.array([eta_squared(ARIA_TABLE_1[:, :, metric].T) for metric in range(7)])
    model = [0.676, 0.919, 0.934, 0.899, 0.960, 0.942, 0.946]
    dataset = [0.000, 0.000, 0.007, 0.049, 0.017, 0.000, 0.015]
    assert shares[:, 0] == pytest.approx(model, abs=5e-4)
    assert shares[:, 1] == pytest.approx(dataset, abs=5e-4)


def test_rank_agreement_of_aria_table_1() -> None:
    w = [kendalls_w(ARIA_TABLE_1[:, :, metric]) for metric in range(7)]
    assert w == pytest.approx([0.692, 0.933, 0.950, 0.933, 0.958, 0.933, 0.950], abs=5e-4)


def test_icc_of_aria_table_1() -> None:
    icc = [icc_2_1(ARIA_TABLE_1[:, :, metric].T) for metric in range(7)]
    assert icc == pytest.approx([0.380, 0.854, 0.881, 0.826, 0.929, 0.895, 0.904], abs=5e-4)


def test_correlations_of_aria_table_1() -> None:
    by_model = pearson_matrix(ARIA_TABLE_1[..., :6].mean(axis=0))
    every_row = pearson_matrix(ARIA_TABLE_1[..., :6].reshape(18, 6))
    assert by_model[1, 2] == pytest.approx(0.916, abs=5e-4)
    assert by_model[1, 5] == pytest.approx(-0.578, abs=5e-4)
    assert by_model[2, 5] == pytest.approx(-0.632, abs=5e-4)
    assert by_model[3, 4] == pytest.approx(0.968, abs=5e-4)
    assert every_row[3, 4] == pytest.approx(0.938, abs=5e-4)


def test_the_papers_intervals_are_found_here_too() -> None:
    assert (statistics.wald_interval, statistics.wilson_interval) == (
        intervals.wald_interval,
        intervals.wilson_interval,
    )
