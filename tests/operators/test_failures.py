"""Failures are counted by stage and reason, with one row as an example of each."""

from __future__ import annotations

import math

from operators.failures import failure_reasons, reasons_together
from operators.schema import METRICS
from tests.operators.test_aggregate import NO_SCORE, results


def test_failures_are_counted_by_the_part_before_the_colon() -> None:
    late = {"answer_index": None, "response_error": "timeout: 30 s", **NO_SCORE}
    table = results(
        {**late, "item_id": "z"},
        {**late, "response_error": "timeout: 31 s", "item_id": "a"},
        {METRICS[2]: math.nan, f"{METRICS[2]}_reason": "unparsable: 'great:ly'"},
        {"answer_index": None, "answer_reason": "several letters: A and B"},
        {"row_error": "ValueError: line\nbreak: x", **NO_SCORE},
        {METRICS[1]: None},
    )
    rows = failure_reasons(table).select(["stage", "reason", "n", "example_item_id"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("response", "timeout", 2, "a"),
        ("row", "ValueError", 1, "i4"),
        ("answer", "several letters", 1, "i3"),
        ("m2_inter_step_coherence", "not_scored", 1, "i5"),
        ("m3_chain_coverage", "unparsable", 1, "i2"),
    ]


def test_the_example_of_a_failure_is_one_row_of_one_benchmark_and_trial() -> None:
    """Of three rows about the least item id: benchmark "b" before "c", trial 1 before 2; also across portions."""
    silent = {"answer_index": None, "answer_reason": "none"}
    rows = [
        {**silent, "item_id": "a", "benchmark": "c", "trial": 0},
        {**silent, "item_id": "z", "benchmark": "a", "trial": 0},
        {**silent, "item_id": "a", "benchmark": "b", "trial": 2},
        {"item_id": "a", "benchmark": "b", "trial": 0},
        {**silent, "item_id": "a", "benchmark": "b", "trial": 1},
    ]
    whole = failure_reasons(results(*rows))
    parts = reasons_together([failure_reasons(results(row)) for row in rows])
    for found in (whole, parts):
        (one,) = found.to_pylist()
        assert (one["n"], one["example_item_id"], one["example_benchmark"], one["example_trial"]) == (
            4,
            "a",
            "b",
            1,
        )


def test_a_clean_run_has_no_failures() -> None:
    assert failure_reasons(results({}, {})).num_rows == 0
