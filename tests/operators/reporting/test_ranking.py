import math

import pyarrow as pa
import pytest

from operators.aggregate import finish_rows, summarise
from operators.reporting.ranking import categories, leaderboards
from operators.schema import METRICS, result_schema
from tests.report_toys import results, row


def board(rows):
    return leaderboards(summarise(rows))[0]


def test_the_interval_of_a_mean_is_over_items():
    """Two trials of each of three items. Items: 0.3, 0.4, 0.5, so mean 0.4, sd 0.1, half width 4.3027 * 0.1 / sqrt(3)."""
    scores = {"i0": (0.2, 0.4), "i1": (0.4, 0.4), "i2": (0.4, 0.6)}
    rows = [row(item, "a", n, "x", trial=trial) | {METRICS[0]: value}
            for n, (item, values) in enumerate(scores.items()) for trial, value in enumerate(values)]  # fmt: skip
    (entry,) = board(finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))["models"]
    cell = entry["cells"][METRICS[0]]
    assert (cell["low"], cell["high"]) == pytest.approx((0.4 - 0.2484, 0.4 + 0.2484), abs=1e-4)
    assert (cell["n"], cell["n_items"]) == (6, 3)
    (one,) = board(finish_rows(pa.Table.from_pylist(rows[:2], schema=result_schema())))["models"]
    assert one["cells"][METRICS[0]]["value"] == pytest.approx(0.3) and one["cells"][METRICS[0]]["low"] is None


def test_numbers_are_those_of_the_summary_unrounded():
    rows = results()
    summary = {r["model"]: r for r in summarise(rows).to_pylist() if r["group_kind"] == "overall"}
    for entry in board(rows)["models"]:
        for name in METRICS:
            assert entry["cells"][name]["value"] == summary[entry["model"]][f"{name}_mean"]
        assert entry["cells"]["accuracy"]["low"] == summary[entry["model"]]["accuracy_low"]


def test_ranks_run_from_one_and_ties_share():
    rows = [
        row(f"i{n}", model, n, "x", chosen=answer)
        for n in range(4)
        for model, answer in (("a", 0), ("b", 0), ("c", 1))
    ]
    found = {
        e["model"]: e["cells"]["accuracy"]
        for e in board(finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))["models"]
    }
    assert [found[name]["rank"] for name in "abc"] == [1, 1, 3]
    assert found["a"]["of"] == 3
    assert [found[name]["level"] for name in "abc"] == [1.0, 1.0, 0.0]


def test_a_column_of_equals_has_no_colour():
    rows = [row(f"i{n}", model, n, "x") for n in range(2) for model in "ab"]
    found = board(finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))["models"]
    assert [entry["cells"]["accuracy"]["level"] for entry in found] == [None, None]


def test_a_mean_over_few_rows_has_no_rank_and_no_mode():
    rows = [row(f"i{n}", model, n, "x") for n in range(10) for model in "abcd"]
    for one in rows:
        if one["model"] == "d" and one["item_id"] != "i0":
            one |= dict.fromkeys(METRICS)
    found = {
        e["model"]: e
        for e in board(finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))["models"]
    }
    assert found["d"]["cells"]["aria"]["n"] == 1
    assert found["d"]["cells"]["aria"]["rank"] is None
    assert found["d"]["mode"] is None
    assert found["a"]["cells"]["aria"]["of"] == 3


def test_all_null_metrics_give_null_not_nan():
    rows = [row("i", "a", 0, "x", **dict.fromkeys(METRICS))]
    cells = board(finish_rows(pa.Table.from_pylist(rows, schema=result_schema())))["models"][0]["cells"]
    assert cells["aria"]["value"] is None
    assert not any(isinstance(v, float) and math.isnan(v) for cell in cells.values() for v in cell.values())


def test_categories_rank_within_themselves():
    rows = results()
    block = categories(summarise(rows))[0]
    assert [group["group"] for group in block["groups"]] == ["music", "sound", "speech"]
    for group in block["groups"]:
        assert {entry["cells"]["accuracy"]["of"] for entry in group["models"]} == {2}


def test_names_beside_the_category_have_tables_of_their_own():
    rows = [
        row(f"i{n}", m, n, "x", groups=f'{{"difficulty": "{"hard" if n else "easy"}"}}')
        for n in range(3)
        for m in "ab"
    ]
    table = finish_rows(pa.Table.from_pylist(rows, schema=result_schema()))
    found = categories(summarise(table))
    assert [(block["kind"], [group["group"] for group in block["groups"]]) for block in found] == [
        ("category", ["music", "sound", "speech"]), ("difficulty", ["easy", "hard"]),
    ]  # fmt: skip
    assert [entry["n_items"] for entry in found[1]["groups"][1]["models"]] == [2, 2]
