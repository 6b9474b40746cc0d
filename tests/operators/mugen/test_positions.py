"""Position bias by hand, and against second sources."""

import math

import numpy as np
import pytest
from scipy.stats import chisquare, permutation_test
from statsmodels.stats.contingency_tables import cochrans_q

from operators.mugen.positions import clustered_chi_square, of_trials, position_bias


def test_histogram_and_chi_square_by_hand():
    # 8 items with one trial of 2 clips: 6 choose the first. Chance: 4 and 4. (6 - 4)^2 / 4 + (2 - 4)^2 / 4 = 2.
    bias = position_bias([0, 0, 0, 0, 0, 0, 1, 1], [0, 1, 0, 1, 0, 1, 0, 1], [2] * 8, range(8))
    assert bias.chosen == [6, 2] and bias.expected == [4, 4] and bias.gold == [4, 4]
    assert bias.chi_square == pytest.approx(2.0) and (bias.degrees, bias.n_items) == (1, 8)
    assert bias.p == pytest.approx(math.erfc(math.sqrt(2.0 / 2)))  # the tail of chi-square with one degree
    assert bias.correct == [3, 1] and bias.accuracy_by_gold == [0.75, 0.25]


def test_one_trial_per_item_is_pearsons_test():
    counts = np.eye(5, dtype=int)[[0, 0, 0, 1, 2, 3, 4, 0, 2]]
    value, degrees, p = clustered_chi_square(counts, np.full(9, 5))
    expected = chisquare(counts.sum(axis=0))
    assert degrees == 4 and (value, p) == pytest.approx((expected.statistic, expected.pvalue))


def test_ten_equal_trials_of_an_item_say_no_more_than_one():
    one = np.eye(4, dtype=int)[[0, 0, 1, 3, 0, 0]]
    sizes = np.full(6, 4)
    assert clustered_chi_square(10 * one, sizes) == pytest.approx(clustered_chi_square(one, sizes))


def test_a_preference_of_two_trials_by_hand():
    """Counts (2, 0), (2, 0), (1, 1) of 2 clips: r = (2, -2); c = (1 + 1) / 1 for two items and 0; V = 4 (I - 1/2), whose
    inverse on r halves it twice: 2 * 2 / 4 + 2 * 2 / 4 = 2."""
    value, degrees, _ = clustered_chi_square(np.array([[2, 0], [2, 0], [1, 1]]), np.full(3, 2))
    assert (value, degrees) == (pytest.approx(2.0), 1)


def test_counts_of_zero_and_one_are_cochrans_q():
    counts = np.random.default_rng(0).integers(2, size=(30, 4))
    value, _, p = clustered_chi_square(counts, np.full(30, 4))
    expected = cochrans_q(counts)
    assert (value, p) == pytest.approx((expected.statistic, expected.pvalue))


def test_p_is_that_of_positions_permuted_within_items():
    """30 items with ten trials each that favour a position of their own, and the first one a little."""
    rng = np.random.default_rng(4)
    shares = rng.dirichlet([1.5, 0.8, 0.8], size=30)
    counts = np.array([rng.multinomial(10, share) for share in shares])
    _, _, p = clustered_chi_square(counts, np.full(30, 3))

    def apart(*samples, axis):
        totals = np.stack([sample.sum(axis=axis) for sample in samples])
        return ((totals - totals.mean(axis=0)) ** 2).sum(axis=0)

    drawn = permutation_test(
        counts.T,
        apart,
        permutation_type="samples",
        n_resamples=4000,
        alternative="greater",
        vectorized=True,
        rng=0,
    )
    assert p == pytest.approx(drawn.pvalue, abs=0.02) and 0.001 < p < 0.5
    assert chisquare(counts.sum(axis=0)).pvalue < p / 5, (
        "trials counted as independent say far more than they know"
    )


def test_items_that_are_even_or_alone_prove_nothing():
    assert clustered_chi_square(np.full((4, 2), 5), np.full(4, 2)) == (0.0, 1, 1.0)
    value, degrees, p = clustered_chi_square(np.array([[100, 0, 0]]), np.array([3]))
    assert (value, degrees) == (pytest.approx(2.0), 2) and p > 0.3  # one item, however often it was asked
    assert math.isnan(clustered_chi_square(np.array([[3], [2]]), np.array([1, 1]))[2])


def test_items_of_different_sizes_share_chance_fairly():
    # One trial of 2 and one of 3: position 0 is expected 1/2 + 1/3, position 2 only 1/3.
    bias = position_bias([0, 2], [0, 2], [2, 3], ["a", "b"])
    assert bias.expected == pytest.approx([5 / 6, 5 / 6, 1 / 3])
    # r = (1/2, -1/2, 0) + (-1/3, -1/3, 2/3); V = (I - 1/2) / 2 + (I - 1/3) / 3. Along (1, -1, 0) / sqrt 2: (1 / 2) / (1 / 2 +
    # 1 / 3) = 0.6; along (1, 1, -2) / sqrt 6: (4 / 6) / (1 / 3) = 2.
    assert bias.degrees == 2 and bias.chi_square == pytest.approx(2.6)


def test_no_trials_have_no_test_and_unpresented_positions_are_refused():
    assert math.isnan(position_bias([], [], [], []).p)
    with pytest.raises(ValueError, match="not presented"):
        position_bias([2], [0], [2], ["a"])
    with pytest.raises(ValueError, match="one entry"):
        position_bias([0], [0, 1], [2], ["a"])


def test_unreadable_trials_do_not_count():
    rows = [{"option_position": p, "gold_position": 0, "audio_order": [1, 0]} for p in (0, None, 1)]
    bias = of_trials({"a": rows, "b": [dict(rows[1])]})
    assert bias.chosen == [1, 1] and bias.n_items == 1
