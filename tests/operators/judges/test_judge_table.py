"""Table 2 by hand: means over rated rows, what failed at its worst, ranks by ARIA."""

import pyarrow as pa
import pytest

from operators.aggregate import SUMMARY
from operators.judges.judge_table import JUDGED, RATINGS, cells, judged, to_markdown


def ratings(*rows):
    names = ("model", "judge", "score")
    return pa.Table.from_pylist(
        [
            {**dict(zip(names, row, strict=True)), "benchmark": "b", "item_id": str(n), "trial": 0}
            for n, row in enumerate(rows)
        ],
        schema=RATINGS,
    )


def summary(covered=None, **aria):
    """Of ten rows each, all of which have an ARIA or as many as `covered` says."""
    counts = {"n_items": 10, "n_rows": 10, "accuracy": 0.5}
    return pa.Table.from_pylist(
        [
            {"model": model, "benchmark": "b", "group_kind": "overall", "aria_mean": mean, **counts}
            | {"aria_n_scored": (covered or {}).get(model, 10 if mean is not None else 0)}
            for model, mean in aria.items()
        ],
        schema=SUMMARY,
    )


def test_equal_models_share_a_rank_and_a_few_lucky_rows_have_none():
    names = ("best", "a", "b", "last", "lucky")
    means = dict(zip(names, (0.6, 0.5, 0.5, 0.4, 0.9), strict=True))
    rated = ratings(*((name, "ds", 0.5) for name in names))
    rows = judged(rated, summary(covered={"lucky": 1}, **means)).to_pylist()
    assert [(row["model"], row["aria_rank"]) for row in rows] == [
        ("best", 1), ("a", 2), ("b", 2), ("last", 4), ("lucky", None)
    ]  # fmt: skip


def test_means_failures_and_ranks():
    rated = ratings(
        ("low", "ds", 0.2),
        ("low", "ds", 0.4),
        ("high", "ds", 0.9),
        ("high", "ds", None),
        ("none", "ds", None),
    )
    rows = judged(rated, summary(low=0.3, high=0.6, none=None)).to_pylist()
    assert [(row["model"], row["aria_rank"]) for row in rows] == [("high", 1), ("low", 2), ("none", None)]
    high, low, none = rows
    assert (high["score"], high["score_if_failed_0"]) == (0.9, 0.45)  # (0.9 + 0) / 2
    assert (high["n_scored"], high["n_failed"]) == (1, 1)
    assert low["score"] == low["score_if_failed_0"] == (0.2 + 0.4) / 2
    assert none["score"] is None and none["n_failed"] == 1
    # Two items, 0.2 and 0.4: t of one degree of freedom 12.7062, standard error 0.1414 / sqrt(2) = 0.1.
    assert (low["score_low"], low["score_high"]) == (0, 1), "0.3 -+ 1.27062, cut"
    assert low["n_items"] == 2 and high["n_items"] == 1 and high["score_low"] is None
    assert (low["interval_reason"], high["interval_reason"]) == (None, "too_few: 1 item")


def test_trials_of_an_item_are_one_item_in_the_interval():
    rated = ratings(*[("m", "ds", 0.28)] * 2, *[("m", "ds", 0.32)] * 2).to_pylist()
    for row, item in zip(rated, "aabb", strict=True):
        row["item_id"] = item
    (found,) = judged(pa.Table.from_pylist(rated, schema=RATINGS), summary(m=0.3)).to_pylist()
    assert (found["n_scored"], found["n_items"]) == (4, 2)
    assert found["score_high"] == pytest.approx(0.3 + 12.7062 * 0.02, abs=1e-5)
    assert cells(pa.Table.from_pylist([found], schema=JUDGED))[1][0][3] == "0.300 [0.046, 0.554]"


def test_the_table_to_read_has_a_column_per_judge():
    rated = ratings(("m|x", "ds", 0.5), ("m|x", "gem", None))
    heads, lines = cells(judged(rated, summary(**{"m|x": 0.3})))
    assert heads == ["Model", "Benchmark", "Acc", "ds", "gem", "ARIA", "ARIA rank"]
    assert lines == [["m|x", "b", "0.500", "0.500", "- (1 failed)", "0.300", "1"]]
    assert "m\\|x" in to_markdown(judged(rated, summary(**{"m|x": 0.3})))
