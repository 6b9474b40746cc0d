"""ARIA, accuracy and their counts: nothing that failed may vanish from a denominator or shift a mean."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from operators.aggregate import MEASURES, SUMMARY, finish_rows, summarise
from operators.failures import FAILURES, failure_reasons
from operators.intervals import wilson_interval
from operators.schema import METRICS, result_schema

NO_SCORE = dict.fromkeys(METRICS)


def results(*rows: dict[str, Any]) -> pa.Table:
    """A result table; by default a row is an item of benchmark "b" that model "m" answers rightly."""
    filled = []
    for number, row in enumerate(rows):
        answer = row.get("answer_index", 1)
        default = {
            "item_id": f"i{number}",
            "model": "m",
            "benchmark": "b",
            "gold_index": 1,
            "category": "sound",
        }
        scores = dict.fromkeys(METRICS, 0.5)
        filled.append({**default, **scores, "answer_index": answer, "answer_index_paper": answer, **row})
    names = result_schema().names
    return pa.table({name: [row.get(name) for row in filled] for name in names}, schema=result_schema())


def overall(table: pa.Table) -> dict[str, Any]:
    rows = [row for row in summarise(table).to_pylist() if row["group_kind"] == "overall"]
    assert len(rows) == 1
    return rows[0]


def test_aria_is_the_mean_of_the_six() -> None:
    scores = dict(zip(METRICS, (0.1, 0.2, 0.3, 0.4, 0.5, 0.9), strict=True))
    # (0.1 + 0.2 + 0.3 + 0.4 + 0.5 + 0.9) / 6 = 2.4 / 6
    assert finish_rows(results(scores))["aria"].to_pylist() == pytest.approx([0.4])


@pytest.mark.parametrize("broken", [None, math.nan, math.inf])
def test_one_missing_metric_leaves_aria_null_and_the_batch_mate_alone(broken: float | None) -> None:
    done = finish_rows(results({METRICS[3]: broken}, {}))
    assert done["aria"].to_pylist() == [None, 0.5]
    assert done[METRICS[3]].to_pylist() == [None, 0.5]


def test_correct_has_three_values() -> None:
    done = finish_rows(
        results(
            {"answer_index": 1},
            {"answer_index": 0},
            {"answer_index": None},
            {"answer_index": None, "response_error": "timeout: 30 s"},
            {"item_error": "no_audio"},
            {"gold_index": None},
        )
    )
    assert done["correct"].to_pylist() == [True, False, False, False, None, None]


def test_the_two_extraction_rules_are_kept_apart() -> None:
    table = results(
        {"answer_index": 1, "answer_index_paper": None},
        {"answer_index": None, "answer_index_paper": 1},
        {"answer_index": 1, "answer_index_paper": 0},
        {},
    )
    row = overall(table)
    assert (row["n_correct"], row["n_no_answer"]) == (3, 1)
    assert (row["n_correct_paper"], row["n_no_answer_paper"]) == (2, 1)
    assert (row["accuracy"], row["accuracy_paper"]) == (3 / 4, 2 / 4)
    assert (row["accuracy_answered"], row["accuracy_answered_paper"]) == (3 / 3, 2 / 3)


def test_errors_do_not_leave_the_denominator() -> None:
    right, wrong = [{}] * 2, [{"answer_index": 0}] * 4
    errors = [{"answer_index": None, "response_error": "timeout", **NO_SCORE}] * 2
    row = overall(results(*right, *wrong, *errors))
    assert (row["n_items"], row["n_valid"], row["n_failed"], row["n_answered"]) == (8, 8, 2, 6)
    assert row["accuracy"] == 2 / 8
    assert row["accuracy_answered"] == 2 / 6
    assert row["n_no_answer"] == 0, "a response that never came is not one without an answer"
    # Wilson for 2 of 8, z = 1.959964: (p + z^2/16 -+ z sqrt(p (1 - p) / 8 + z^2 / 256)) / (1 + z^2 / 8)
    # = (0.25 + 0.240091 -+ 1.959964 * sqrt(0.0234375 + 0.0150057)) / 1.480182
    # = (0.490091 -+ 0.384288) / 1.480182
    assert row["accuracy_low"] == pytest.approx(0.071480, abs=1e-5)
    assert row["accuracy_high"] == pytest.approx(0.590723, abs=1e-5)


def test_no_answer_anywhere_is_zero_accuracy_not_chance() -> None:
    row = overall(results(*[{"answer_index": None}] * 5))
    assert (row["accuracy"], row["n_no_answer"], row["no_answer_rate"]) == (0.0, 5, 1.0)
    assert row["accuracy_answered"] is None


def test_an_item_that_cannot_be_judged_counts_against_nobody() -> None:
    row = overall(results({}, {"item_error": "gold_not_among_choices: x", "answer_index": None, **NO_SCORE}))
    assert (row["n_items"], row["n_valid"], row["n_failed"], row["accuracy"]) == (2, 1, 1, 1.0)
    assert (row["aria_n_scored"], row["aria_n_failed"]) == (1, 1)


def test_means_and_deviations() -> None:
    row = overall(results(*({METRICS[0]: value} for value in (0.2, 0.4, 0.9, None))))
    # mean 1.5 / 3; deviations -0.3, -0.1, 0.4: (0.09 + 0.01 + 0.16) / (3 - 1) = 0.13
    assert row[f"{METRICS[0]}_mean"] == pytest.approx(0.5)
    assert row[f"{METRICS[0]}_sd"] == pytest.approx(math.sqrt(0.13))
    assert (row[f"{METRICS[0]}_n_scored"], row[f"{METRICS[0]}_n_failed"]) == (3, 1)
    assert row["aria_n_failed"] == 1


def test_a_metric_that_failed_everywhere_is_null_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        row = overall(results(*[{METRICS[2]: math.nan, f"{METRICS[2]}_reason": "unparsable"}] * 3))
    assert (row[f"{METRICS[2]}_mean"], row[f"{METRICS[2]}_sd"]) == (None, None)
    assert (row[f"{METRICS[2]}_n_scored"], row[f"{METRICS[2]}_n_failed"], row["aria_mean"]) == (0, 3, None)


def test_nothing_valid_gives_nulls_not_zeros() -> None:
    row = overall(results({"item_error": "x", **NO_SCORE}))
    rates = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_answered", "no_answer_rate")
    assert [row[name] for name in rates] == [None] * 5
    assert row["n_valid"] == 0


def test_one_value_has_a_mean_and_no_deviation() -> None:
    row = overall(results({}))
    assert (row["aria_mean"], row["aria_sd"]) == (0.5, None)
    assert row["aria_low"] is None and row["aria_interval_reason"] == "too_few: 1 item"


def test_values_that_are_all_alike_have_no_interval_with_the_reason_and_others_have_one_without() -> None:
    row = overall(results(*[{METRICS[0]: value} for value in (0.1, 0.2, 0.3)]))
    assert row[f"{METRICS[1]}_low"] is None
    assert row[f"{METRICS[1]}_interval_reason"] == "no_spread: all 3 items are alike"
    assert row["aria_low"] < row["aria_mean"] and row["aria_interval_reason"] is None


def test_groups_add_up_to_the_whole() -> None:
    rng = np.random.default_rng(3)
    rows = [
        {
            "model": f"m{rng.integers(2)}",
            "benchmark": f"b{rng.integers(2)}",
            "category": [None, "music", "speech"][rng.integers(3)],
            "answer_index": [None, 0, 1][rng.integers(3)],
            METRICS[5]: [None, float(rng.random())][rng.integers(2)],
        }
        for _ in range(300)
    ]
    summary = summarise(results(*rows))
    assert summary.schema == SUMMARY
    frame = summary.to_pandas()
    assert set(frame["group"]) == {"all", "music", "speech", "uncategorised"}
    counts = [name for name in SUMMARY.names if name.startswith("n_") or "_n_" in name]
    for _, part in frame.groupby(["model", "benchmark"]):
        whole = part[part.group_kind == "overall"][counts].sum()
        assert (part[part.group_kind == "category"][counts].sum() == whole).all()
        assert (whole["n_rows"] == whole["aria_n_scored"] + whole["aria_n_failed"]).all()
    assert frame[frame.group_kind == "overall"]["n_items"].sum() == 300


def test_trials_of_an_item_are_one_item() -> None:
    often = [{"item_id": "a", "answer_index": int(i < 9)} for i in range(10)]
    half = [{"item_id": "b", "answer_index": int(i < 5)} for i in range(10)]
    row = overall(results(*often, *half))
    assert (row["n_items"], row["n_rows"], row["n_valid"], row["n_correct"]) == (2, 20, 20, 14)
    # (9/10 + 5/10) / 2
    assert row["accuracy"] == row["accuracy_answered"] == pytest.approx(0.7)
    # Wilson around 0.7 with n = 2 and z^2 = 3.841459; 14 of 20 would give 0.481 to 0.855:
    # (0.7 + z^2 / 4 -+ sqrt(z^2 * 0.21 / 2 + z^4 / 16)) / (1 + z^2 / 2) = (1.660365 -+ 1.151370) / 2.920730
    assert row["accuracy_low"] == pytest.approx(0.174270, abs=1e-5)
    assert row["accuracy_high"] == pytest.approx(0.962682, abs=1e-5)


def test_an_item_tried_more_often_weighs_no_more() -> None:
    trials = [{"item_id": "a", METRICS[0]: value} for value in (0.2, 0.4, 0.6, None)]
    row = overall(results(*trials, {"item_id": "b", METRICS[0]: 0.8, "answer_index": 0}))
    # Items: (0.2 + 0.4 + 0.6) / 3 = 0.4 and 0.8; mean 0.6, sd sqrt((0.04 + 0.04) / 1)
    assert row[f"{METRICS[0]}_mean"] == pytest.approx(0.6)
    assert row[f"{METRICS[0]}_sd"] == pytest.approx(math.sqrt(0.08))
    assert [row[f"{METRICS[0]}_n_{name}"] for name in ("items", "scored", "failed")] == [2, 4, 1]
    # a: 4 of 4 right, b: 0 of 1
    assert (row["accuracy"], row["n_correct"], row["n_valid"]) == (0.5, 4, 5)


def test_a_mean_of_scores_has_students_interval_over_items() -> None:
    """Items 0.3, 0.4, 0.5, the last tried twice: mean 0.4, sd 0.1, half width 4.3027 * 0.1 / sqrt(3) = 0.2484."""
    scores = {"a": (0.3,), "b": (0.4,), "c": (0.4, 0.6)}
    rows = [{"item_id": item, METRICS[0]: value} for item, values in scores.items() for value in values]
    found = [
        overall(results(*part))[f"{METRICS[0]}_{end}"]
        for part in (rows, rows[:2], rows[:1])
        for end in ("low", "high")
    ]
    # Of 0.3 and 0.4: 0.35 -+ 12.7062 * 0.0707 / sqrt(2) = 0.635, cut; of one value there is none.
    assert found == [
        pytest.approx(0.4 - 0.2484, abs=1e-4),
        pytest.approx(0.6484, abs=1e-4),
        0,
        pytest.approx(0.9853, abs=1e-4),
        None,
        None,
    ]


def test_shares_of_answers_are_taken_per_item() -> None:
    silent = {"answer_index": None}
    table = results({"item_id": "a"}, {"item_id": "a", **silent}, *[{"item_id": "b", **silent}] * 4)
    row = overall(table)
    # No answer: a 1 of 2, b 4 of 4. Right among the answered: a 1 of 1, b has no answer.
    assert (row["no_answer_rate"], row["accuracy_answered"], row["accuracy"]) == (0.75, 1.0, 0.25)


def test_repeating_every_row_changes_no_estimate_and_no_interval() -> None:
    rng = np.random.default_rng(5)
    rows = [
        {"answer_index": [None, 0, 1][rng.integers(3)], METRICS[1]: float(rng.random())} for _ in range(30)
    ]
    rows = [{**row, "item_id": f"i{number}"} for number, row in enumerate(rows)]
    once, thrice = overall(results(*rows)), overall(results(*rows * 3))
    assert (once["n_rows"], thrice["n_rows"], thrice["n_items"]) == (30, 90, 30)
    floats = [name for name, value in once.items() if isinstance(value, float)]
    assert [thrice[name] for name in floats] == pytest.approx([once[name] for name in floats])


def test_with_one_trial_each_rates_are_quotients_of_counts() -> None:
    rng = np.random.default_rng(7)
    scores = rng.random(200)
    errors = [None if rng.random() < 0.9 else "x" for _ in scores]
    table = results(
        *(
            {"answer_index": [None, 0, 1][rng.integers(3)], METRICS[0]: score, "response_error": error}
            for score, error in zip(scores, errors, strict=True)
        )
    )
    row = overall(table)
    assert row["n_items"] == row["n_rows"] == 200
    assert row["accuracy"] == row["n_correct"] / row["n_valid"]
    assert row["accuracy_answered"] == row["n_correct"] / row["n_answered"]
    assert row["no_answer_rate"] == row["n_no_answer"] / (row["n_answered"] + row["n_no_answer"])
    bounds = wilson_interval(row["n_correct"], row["n_valid"])
    assert (row["accuracy_low"], row["accuracy_high"]) == pytest.approx(bounds, abs=1e-15)
    assert row[f"{METRICS[0]}_mean"] == pytest.approx(scores.mean(), abs=1e-15)
    assert row[f"{METRICS[0]}_sd"] == pytest.approx(scores.std(ddof=1), abs=1e-14)


def test_a_summary_does_not_depend_on_the_order_of_rows() -> None:
    table = results(*({METRICS[0]: i / 7, "answer_index": i % 2, "model": f"m{i % 3}"} for i in range(30)))
    shuffled = table.take(np.random.default_rng(0).permutation(30))
    left, right = summarise(table).to_pylist(), summarise(shuffled).to_pylist()
    assert all(a == pytest.approx(b) for a, b in zip(left, right, strict=True))


def test_a_summary_does_not_depend_on_the_pieces_its_rows_came_in() -> None:
    random = np.random.default_rng(0)
    table = results(
        *({"item_id": f"q{n}", **dict(zip(METRICS, random.random(6), strict=True))} for n in range(60))
    )
    whole = summarise(table)
    for size in (1, 7, 50):
        pieces = pa.concat_tables([table.slice(start, size) for start in range(0, 60, size)])
        assert summarise(pieces).equals(whole)


def test_the_schema_holds_for_no_rows_and_for_columns_of_nulls() -> None:
    empty = results()
    assert summarise(empty).schema == SUMMARY
    assert failure_reasons(empty).schema == FAILURES
    untyped = pa.table({name: pa.nulls(2) for name in result_schema().names})
    summary = summarise(untyped)
    assert summary.schema == SUMMARY
    assert summary["aria_n_failed"].to_pylist() == [2, 2]


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="m4_step_causality"):
        summarise(results({}).drop_columns(["m4_step_causality"]))


def test_the_input_is_not_changed() -> None:
    table = results({METRICS[0]: math.nan}, {})
    before = table.to_pydict()
    finish_rows(table)
    summarise(table)
    assert repr(table.to_pydict()) == repr(before)
    assert finish_rows(table).column_names == table.column_names


def test_every_measure_of_the_summary_is_declared() -> None:
    assert all(
        f"{measure}_{part}" in SUMMARY.names for measure in MEASURES for part in ("mean", "sd", "n_scored")
    )
