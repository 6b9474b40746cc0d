"""Human ratings: Krippendorff's alpha with gaps, and rank correlation of the metrics with people."""

import math

import numpy as np
import pyarrow as pa
import pytest

from operators.analysis.ratings import (
    Chain,
    Rating,
    alpha,
    human_correlation,
    mean_ratings,
    rated_rows,
    rater_agreement,
    read_ratings,
    reliability,
)
from operators.schema import METRICS
from operators.tables import Row, TableError
from tests.operators.analysis.made import scored_rows


def test_alpha_by_hand_with_a_missing_rating():
    pytest.importorskip("krippendorff")
    # Two raters; chains (1,1), (2,2), (1,2), and one that a single rater saw, which plays no part. Interval level:
    # pairable values 1 1 2 2 1 2, n = 6. Observed: (0 + 0 + 1) of 3 chains = 2 * 1 / 6 = 1/3. Expected: the 9 pairs of a
    # 1 and a 2, of 15 pairs in all: 9/15. alpha = 1 - (1/3) / (3/5) = 4/9
    matrix = np.array([[1, 2, 1, 5], [1, 2, 2, math.nan]])
    assert alpha(matrix, "interval") == pytest.approx(4 / 9)
    assert alpha(np.array([[1, 2, 3], [1, 2, 3]])) == pytest.approx(1.0)
    assert math.isnan(alpha(np.array([[1.0, 1.0], [1.0, 1.0]]))), "no variance, no agreement to speak of"
    assert math.isnan(alpha(np.array([[1.0, np.nan], [np.nan, 2.0]]))), "nobody rated the same chain"


def ratings_of(values, group="1"):
    """Ratings of model A from {rater: [rating of item 0, 1, ...]}."""
    return [
        Rating(f"i{n}", "A", rater, group, math.nan if one is None else float(one))
        for rater, row in values.items() for n, one in enumerate(row)
    ]  # fmt: skip


def test_agreement_of_all_and_of_each_group():
    pytest.importorskip("krippendorff")
    same, apart = (
        ratings_of({"a": [1, 3, 5, 2], "b": [1, 3, 5, None]}),
        ratings_of({"c": [1, 5, 1, 5], "d": [5, 1, 5, 1]}, "2"),
    )
    lines = {(line["versus"], line["statistic"]): line for line in rater_agreement([*same, *apart], 100, 0)}
    one = lines["group 1", "krippendorff_alpha_ordinal"]
    assert one["estimate"] == pytest.approx(1.0) and "2 raters, 7 ratings" in one["note"]
    assert lines["group 2", "krippendorff_alpha_ordinal"]["estimate"] < 0
    assert ("all raters", "krippendorff_alpha_interval") in lines and len(lines) == 6


def test_ratings_are_read_with_gaps_and_refused_twice():
    good = {"item_id": "q1", "model": "A", "rater": "ann", "group": "1", "rating": "4", "annotated_at": "x"}
    read = read_ratings("f", [Row(good, 2), Row({**good, "rater": "bo", "rating": ""}, 3)])
    assert read[0] == Rating("q1", "A", "ann", "1", 4.0) and math.isnan(read[1].rating)
    assert mean_ratings(read) == {Chain("q1", "A"): 4.0}
    matrix, items = reliability(read)
    assert matrix.shape == (2, 1) and items == [("", "q1")]
    with pytest.raises(TableError, match="line 3: rater 'ann' rates 'A' on 'q1' twice"):
        read_ratings("f", [Row(good, 2), Row({**good, "rating": "5"}, 3)])
    with pytest.raises(TableError, match="no column for 'rater'"):
        read_ratings("f", [Row({k: v for k, v in good.items() if k != "rater"}, 2)])


def test_metrics_that_follow_people_correlate_and_their_groups_too():
    rng = np.random.default_rng(0)
    quality = {(m, n): rng.random() for m in "ABCDE" for n in range(8)}
    rows = scored_rows(
        [(m, "x", f"i{n}", dict.fromkeys(METRICS, q) | {METRICS[4]: 1 - q}) for (m, n), q in quality.items()]
    )
    ratings = [Rating(f"i{n}", m, r, "1", q) for (m, n), q in quality.items() for r in ("a", "b", "c")]
    lines = {(line["measure"], line["unit"]): line for line in human_correlation(rows, ratings, 100, 0)}
    assert len(lines) == 2 * 10
    m1 = lines["m1", "chains"]
    assert (m1["estimate"], m1["low"], m1["n"], m1["n_clusters"]) == (
        pytest.approx(1),
        None,
        40,
        8,
    )
    assert lines["m5", "chains"]["estimate"] == pytest.approx(-1)
    assert lines["m1+m6", "chains"]["estimate"] == pytest.approx(1)
    assert (
        math.isclose(lines["aria", "models on a benchmark"]["estimate"], 1)
        and lines["aria", "models on a benchmark"]["n"] == 5
    )


def test_models_on_two_benchmarks_are_so_many_models_and_no_more():
    rows = scored_rows([(m, b, f"{b}0", (number + 1) / 9) for number, m in enumerate("ABCD") for b in "xy"])
    ratings = [Rating(f"{b}0", m, "a", "1", number, b) for number, m in enumerate("ABCD") for b in "xy"]
    lines = {(line["measure"], line["unit"]): line for line in human_correlation(rows, ratings, 50, 0)}
    line = lines["aria", "models on a benchmark"]
    assert (line["n"], line["n_clusters"]) == (8, 4)
    assert "once per benchmark" in line["note"] and "few models (4)" in line["note"]


def test_a_rating_is_of_one_trial_and_of_one_benchmark():
    """Of three trials the first with an ARIA was rated: 0.5 (M1 of the one before it is 0.1, of the one after 0.9)."""
    lame = dict.fromkeys(METRICS, 0.1) | {METRICS[2]: None}
    rows = scored_rows(
        [("A", "x", "i", lame), ("A", "x", "i", 0.5), ("A", "x", "i", 0.9), ("A", "x", "j", 0.2)]
    )
    rated = rated_rows(rows, {Chain("i", "A"): 4.0})
    assert np.isnan(rated).tolist() == [True, False, True, True] and rated[1] == 4.0
    with pytest.raises(TableError, match="'i' is an item of x and of y"):
        rated_rows(scored_rows([("A", "x", "i", 0.5), ("A", "y", "i", 0.5)]), {Chain("i", "A"): 4.0})


def test_ratings_of_two_benchmarks_and_of_two_trials_do_not_collide():
    """One item id in two benchmarks, two trials of it in one: three chains, each with its own rating."""
    rows = scored_rows([("A", "x", "i", 0.1), ("A", "y", "i", 0.2), ("A", "y", "i", 0.3)])
    rows = rows.set_column(rows.schema.get_field_index("trial"), "trial", pa.array([0, 0, 1]))
    cells = {"item_id": "i", "model": "A", "rater": "ann"}
    said = [("x", "0", "1"), ("y", "0", "2"), ("y", "1", "5")]
    table = [Row({**cells, "benchmark": b, "trial": t, "rating": r}, n) for n, (b, t, r) in enumerate(said)]
    ratings = read_ratings("f", table)
    assert rated_rows(rows, mean_ratings(ratings)).tolist() == [1.0, 2.0, 5.0]
    matrix, items = reliability(ratings)
    assert matrix.tolist() == [[1.0, 2.0, 5.0]] and items == [("x", "i"), ("y", "i"), ("y", "i")]


def test_ratings_of_other_chains_are_refused():
    rows = scored_rows([("A", "x", "i", 0.5)])
    with pytest.raises(TableError, match="no rated chain is in the run"):
        list(human_correlation(rows, [Rating("other", "A", "a", "1", 3.0)], 100, 0))
