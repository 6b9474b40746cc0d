"""Intervals by hand, against a second source, and on the table that MUGEN prints."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.intervals import (
    interval_of_mean,
    newcombe_interval,
    t_interval,
    wald_interval,
    wilson_interval,
    wilson_interval_of_clusters,
    wilson_interval_of_mean,
)

# MUGEN Table 2: accuracy (%) and half interval; items per dimension, and in all (last column).
MUGEN_ITEMS = (150, 200, 400, 250, 250, 250, 250, 1750)
MUGEN_MODELS = (
    "DeSTA2.5-Audio",
    "Qwen2.5-Omni",
    "Audio Flamingo 3",
    "Voxtral-Mini-3B",
    "Voxtral-Small",
    "Phi-4",
    "Gemini-3-pro low",
    "Gemini-3-pro high",
    "ASR+LLM low",
    "ASR+LLM high",
)
_MUGEN = """
    46.67 7.98 22.00 5.74 21.75 4.04 17.20 4.68 30.40 5.70 18.00 4.76 28.40 5.59 24.91 2.03
    70.00 7.33 12.00 4.50 32.50 4.59 15.20 4.45 10.80 3.85 53.20 6.19 18.00 4.76 28.69 2.12
    25.33 6.96 22.50 5.79 15.00 3.50 21.20 5.07 23.20 5.23 1.20 1.35 19.20 4.88 17.43 1.78
    59.33 7.86 25.50 6.04 30.00 4.49 20.00 4.96 22.40 5.17 24.80 5.35 23.60 5.26 27.83 2.10
    64.67 7.65 27.50 6.19 32.50 4.59 22.80 5.20 22.40 5.17 25.60 5.41 16.80 4.63 28.63 2.12
    52.00 8.00 21.00 5.65 21.00 3.99 28.00 5.57 24.80 5.35 24.80 5.35 24.80 5.35 26.29 2.06
    89.33 4.94 68.00 6.47 77.00 4.12 48.00 6.19 55.60 6.16 69.60 5.70 69.20 5.72 67.66 2.19
    90.67 4.65 71.50 6.26 77.50 4.09 53.60 6.18 56.80 6.14 68.40 5.76 72.80 5.52 69.60 2.16
    75.33 6.90 20.00 5.54 27.00 4.35 28.80 5.61 26.40 5.46 26.00 5.44 18.00 4.76 29.09 2.13
    82.67 6.06 16.50 5.14 27.75 4.39 28.80 5.61 26.00 5.44 26.00 5.44 22.40 5.17 30.06 2.15
"""
MUGEN_TABLE_2 = dict(zip(MUGEN_MODELS, np.array(_MUGEN.split(), dtype=float).reshape(10, 8, 2), strict=True))

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@pytest.mark.parametrize("model", MUGEN_MODELS)
def test_wald_reproduces_mugen_table_2_to_two_decimals(model: str) -> None:
    printed = MUGEN_TABLE_2[model]
    right = [round(accuracy * n / 100) for (accuracy, _), n in zip(printed, MUGEN_ITEMS, strict=True)]
    assert sum(right[:-1]) == right[-1], "the dimensions add up to the whole"
    for k, n, (accuracy, half) in zip(right, MUGEN_ITEMS, printed, strict=True):
        low, high = wald_interval(k, n)
        if (k, n) == (136, 150):
            # 1.96 * sqrt(p (1 - p) / 150) is 4.6554 % for p = 136/150; 4.6546 %, as printed, for p = 0.9067.
            assert 100 * (high - low) / 2 == pytest.approx(4.6554, abs=5e-5)
            continue
        assert (f"{100 * k / n:.2f}", f"{50 * (high - low):.2f}") == (f"{accuracy:.2f}", f"{half:.2f}")


def test_wald_by_hand_and_beyond_zero() -> None:
    # 3 of 250: 0.012 -+ 1.96 * sqrt(0.012 * 0.988 / 250) = 0.012 -+ 1.96 * 0.0068865 = 0.012 -+ 0.0134976
    assert wald_interval(3, 250) == pytest.approx((-0.0014976, 0.0254976), abs=1e-6)
    assert wald_interval(0, 10) == (0.0, 0.0)


def test_wilson_by_hand() -> None:
    # 0 of 10: 0 to z^2 / (n + z^2) = 3.841459 / 13.841459
    assert wilson_interval(0, 10) == pytest.approx((0.0, 0.277533), abs=1e-6)


@settings(max_examples=50, deadline=None)
@given(counts)
def test_wilson_is_the_root_of_the_score_equation(count: tuple[int, int]) -> None:
    k, n = count
    z2 = 3.841458820694124
    low, high = wilson_interval(k, n)
    assert 0 <= low <= k / n <= high <= 1
    for bound in (low, high):
        # Both bounds solve (p - bound)^2 = z^2 bound (1 - bound) / n.
        assert (k / n - bound) ** 2 == pytest.approx(z2 * bound * (1 - bound) / n, abs=1e-9)
    assert wilson_interval(n - k, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_the_interval_of_a_mean_of_two_is_that_of_their_difference_with_a_sign() -> None:
    """(0.4 + 0.8) / 2 = 0.6, below sqrt(0.3^2 + 0.4^2) / 2 = 0.25, above sqrt(0.05^2 + 0.12^2) / 2 = 0.065."""
    assert interval_of_mean([(0.4, 0.1, 0.45), (0.8, 0.4, 0.92)]) == pytest.approx((0.35, 0.665))
    one, other = (0.4, 0.1, 0.45), (0.8, 0.4, 0.92)
    turned = (-0.4, -0.45, -0.1)
    assert interval_of_mean([turned, other]) == pytest.approx(
        [end / 2 for end in newcombe_interval(one, other)]
    )
    assert interval_of_mean([one]) == pytest.approx(one[1:])
    assert all(math.isnan(end) for part in ([], [(0.4, math.nan, 0.5)]) for end in interval_of_mean(part)[:1])


def test_wilson_agrees_with_statsmodels() -> None:
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for k, n in [(0, 3), (2, 8), (443, 1000), (7, 7)]:
        assert wilson_interval(k, n, 0.9) == pytest.approx(
            proportion.proportion_confint(k, n, alpha=0.1, method="wilson"), abs=1e-12
        )


def test_wilson_agrees_with_scipy() -> None:
    from scipy.stats import binomtest

    for k, n in [(0, 1), (1, 1), (0, 3), (2, 8), (443, 1000), (7, 7), (1, 100_000)]:
        expected = binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert wilson_interval(k, n) == pytest.approx((expected.low, expected.high), abs=1e-14)


def test_wilson_of_clusters_counts_clusters_by_hand() -> None:
    """Sizes 2 and 2: n = 4^2 / (4 + 4) = 2. Sizes 1 and 3: n = 4^2 / (1 + 9) = 1.6."""
    right = [True, True, False, False]
    assert wilson_interval_of_clusters(right, "abcd") == wilson_interval(2, 4)
    assert wilson_interval_of_clusters(right, "aabb") == wilson_interval(1, 2)
    assert wilson_interval_of_clusters(right, "abbb") == wilson_interval_of_mean(0.5, 1.6)
    assert wilson_interval_of_clusters([0.2, 0.8, 0.5], "aab") == wilson_interval_of_mean(0.5, 1.8)
    assert all(math.isnan(end) for end in wilson_interval_of_clusters([], []))
    with pytest.raises(ValueError, match="4 values for 1 labels"):
        wilson_interval_of_clusters(right, "a")


def test_wilson_of_a_mean_covers_shares_that_vary_little() -> None:
    assert wilson_interval_of_mean(0.25, 8) == wilson_interval(2, 8)
    rng = np.random.default_rng(0)
    # Shares of right trials among 10, per item drawn from Beta(2, 2): mean 0.5.
    shares = rng.binomial(10, rng.beta(2, 2, size=(2000, 20))) / 10
    bounds = np.array([wilson_interval_of_mean(mean, 20) for mean in shares.mean(axis=1)])
    assert ((bounds[:, 0] <= 0.5) & (bounds[:, 1] >= 0.5)).mean() >= 0.95
    assert all(math.isnan(bound) for bound in wilson_interval_of_mean(math.nan, 0))
    for wrong in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"lies in \[0, 1\]"):
            wilson_interval_of_mean(wrong, 5)


@pytest.mark.parametrize("interval", [wald_interval, wilson_interval])
def test_intervals_of_nothing_and_of_nonsense(interval) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(math.isnan(bound) for bound in interval(0, 0))
    for k, n in [(3, 2), (-1, 2), (0, -1), (0.5, 2)]:
        with pytest.raises(ValueError, match="0 <= k <= n"):
            interval(k, n)


@pytest.mark.parametrize(("k", "n", "m", "r"), [(9, 10, 8, 10), (0, 5, 5, 5), (3, 40, 20, 30)])
def test_the_interval_of_a_difference_of_shares_is_that_of_a_library(k, n, m, r) -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    sides = [(k / n, *wilson_interval(k, n)), (m / r, *wilson_interval(m, r))]
    low, high = newcombe_interval(*sides)
    assert (low, high) == pytest.approx(confint_proportions_2indep(m, r, k, n, method="newcomb"), abs=1e-9)
    assert -1 <= low <= m / r - k / n <= high <= 1 and math.isnan(
        newcombe_interval((math.nan,) * 3, sides[0])[0]
    )


def test_a_mean_of_values_that_are_alike_has_no_interval() -> None:
    for values in ([0.7, 0.7, 0.7], [0.1 + 0.2, 0.3, 0.3], [0.0, 0.0]):
        assert np.isnan(t_interval(values)).all()
    # 0.3 and 0.5: 0.4 -+ 12.7062 * 0.1
    assert t_interval([0.3, 0.5])[1] == pytest.approx(0.4 + 1.27062, abs=1e-5)
