"""Intervals of W and rho of noisy values: what they hold where ranks agree, where they do not, and without noise."""

import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from operators.analysis.estimates import percentile_interval
from operators.analysis.rank_intervals import highest_possible, rank_correlations, rank_interval
from operators.statistics import concordances, kendalls_w


def w(tables):
    return concordances(np.swapaxes(tables, -1, -2))


def sampled(rng, means, n_items=30, n_resamples=200):
    """What `n_items` items of noise 0.2 make of true means [models, benchmarks]: a table, and items of each drawn anew."""
    values = means[:, :, None] + rng.normal(0, 0.2, (*means.shape, n_items))
    weights = rng.multinomial(n_items, np.full(n_items, 1 / n_items), (n_resamples, means.shape[1])) / n_items
    return values.mean(axis=2), np.einsum("mbi,rbi->rmb", values, weights)


def test_an_interval_holds_the_agreement_that_noise_hides():
    """Four models a fifth of the noise apart, alike on three benchmarks: W of their true means is 1."""
    rng, held, held_by_percentiles = np.random.default_rng(0), 0, 0
    for _ in range(30):
        table, redrawn = sampled(rng, np.repeat(rng.normal(0, 0.04, (4, 1)), 3, axis=1))
        low, high = rank_interval(w, table, redrawn)
        assert 0 <= low <= w(table) <= high <= 1 + 1e-12
        held += high == pytest.approx(1)
        held_by_percentiles += percentile_interval(w(redrawn))[1] > 1 - 1e-9
    assert held >= 27 and held_by_percentiles <= 15


def test_without_noise_and_for_opposite_orders_nothing_higher_is_possible():
    table = np.array([[0.1, 0.9], [0.5, 0.5], [0.9, 0.1]])
    assert highest_possible(w, table, np.stack([table] * 5)) == 0
    rng = np.random.default_rng(0)
    redrawn = table + rng.normal(0, 0.01, (200, 3, 2))
    assert highest_possible(w, table, redrawn) < 0.5
    assert rank_interval(w, table, np.stack([table] * 5)) == pytest.approx((math.nan,) * 2, nan_ok=True)


def test_many_tables_at_once_have_the_values_of_each_alone():
    rng = np.random.default_rng(1)
    tables = rng.integers(0, 4, (20, 6, 2)).astype(float)
    assert rank_correlations(tables) == pytest.approx([spearmanr(*one.T).statistic for one in tables])
    assert w(tables) == pytest.approx([kendalls_w(one.T) for one in tables])
    tables[0, 0, 0], tables[1] = np.nan, 1.0
    for statistic in (rank_correlations, w):
        assert np.isnan(statistic(tables)).tolist() == [True, True, *[False] * 18]
