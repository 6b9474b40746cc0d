"""Modes of models from summaries of several benchmarks, with the intervals of their means."""

import pyarrow as pa
import pytest

from operators.aggregate import MEASURES, SUMMARY
from operators.mode_table import modes_side_by_side, unlike


def summary(model, benchmark, aria, **ends):
    row = dict.fromkeys(SUMMARY.names) | {f"{name}_mean": aria for name in MEASURES}
    named = {"model": model, "benchmark": benchmark, "group_kind": "overall", "n_items": 10, "accuracy": 0.5}
    return pa.Table.from_pylist(
        [row | named | {"accuracy_low": 0.2, "accuracy_high": 0.8} | ends], schema=SUMMARY
    )


def test_means_over_benchmarks_have_an_interval_over_both():
    """0.4 (0.1 to 0.5) and 0.6 (0.2 to 0.7): 0.5, below sqrt(0.3^2 + 0.4^2) / 2 = 0.25, above sqrt(2 * 0.1^2) / 2 = 0.0707."""
    parts = [
        summary("a", "x", 0.4, aria_low=0.1, aria_high=0.5),
        summary("a", "y", 0.6, aria_low=0.2, aria_high=0.7),
        summary("b", "x", 0.4),
    ]
    table = modes_side_by_side({}, parts)
    a, b = table.to_pylist()
    assert (a["aria"], a["aria_low"], a["aria_high"]) == pytest.approx((0.5, 0.25, 0.5707), abs=1e-4)
    assert (a["n_benchmarks"], a["n_items"]) == (2, 20) and a["profile_accuracy_low"] == pytest.approx(
        0.5 - 0.3 / 2**0.5
    )
    assert b["aria_low"] is None and b["profile_accuracy_low"] == pytest.approx(0.2)


def test_models_on_other_benchmarks_are_not_compared():
    a, b = summary("a", "x", 0.4), summary("b", "x", 0.4)
    assert unlike([]) is None and unlike([a, b]) is None
    assert unlike([a, b, summary("b", "y", 0.5)]) == "a is measured on x and b on x, y"
    assert unlike([a, b, a]) == "a is measured twice on x"
    # Without all of the means it has no profile, and is compared with nobody.
    assert unlike([a, summary("b", "y", None)]) is None


def test_a_mean_that_is_no_number_is_no_profile():
    """As one that is missing: the model has neither a mode nor an ARIA."""
    rows = [summary(model, "x", aria) for model, aria in (("a", 0.4), ("b", 0.5), ("c", float("nan")))]
    c = modes_side_by_side({}, rows).to_pylist()
    assert [row["model"] for row in c] == ["b", "a"]
