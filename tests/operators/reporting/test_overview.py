import pyarrow as pa
import pytest

from operators.aggregate import finish_rows
from operators.reporting.overview import overview, usage, variance
from operators.schema import METRICS, result_schema
from tests.report_toys import results, row


def scored(values, benchmark="toy"):
    """Rows whose M1 is values[model][item], the other metrics 0.5."""
    rows = [
        row(f"i{n}", model, n, "x", benchmark=benchmark, **{**dict.fromkeys(METRICS, 0.5), METRICS[0]: value})
        for model, line in values.items()
        for n, value in enumerate(line)
    ]
    return finish_rows(pa.Table.from_pylist(rows, schema=result_schema()))


def test_shares_of_variance_by_hand():
    """M1 of models a, b on items 0, 1: [[0, 0.4], [0.4, 0.8]]. Grand mean 0.4; model means 0.2, 0.6: 2 * 2 * 0.04 = 0.16;
    item means 0.2, 0.6 likewise 0.16; no rest: half and half."""
    found = variance(scored({"a": [0.0, 0.4], "b": [0.4, 0.8]}))
    (block,) = found
    rows = {one["measure"]: one for one in block["rows"]}
    assert rows[METRICS[0]]["parts"] == pytest.approx({"model": 0.5, "item": 0.5, "residual": 0.0})
    assert METRICS[1] not in rows  # all equal: there is no variance to share out


def test_items_that_a_model_lacks_stay_out_and_are_counted():
    rows = scored({"a": [0.0, 0.4, 0.9], "b": [0.4, 0.8]})
    (block,) = variance(rows)
    assert {(one["n_models"], one["n_others"]) for one in block["rows"]} == {(2, 2)}


def test_two_benchmarks_are_compared_by_their_means():
    both = pa.concat_tables(
        [scored({"a": [0.1, 0.2], "b": [0.3, 0.5]}), scored({"a": [0.4, 0.1], "b": [0.9, 0.7]}, "other")]
    )
    assert [block["title"] for block in variance(both)] == [
        "toy: model and item", "other: model and item", "all benchmarks: model and benchmark",
    ]  # fmt: skip


def test_a_benchmark_counts_its_items_alike_however_many_trials_they_have():
    """M1 of a on toy: item 0 three times 0, item 1 once 0.8, a mean of 0.4 and not 0.2. Means [[0.4, 0.4], [0.4, 0.8]]:
    grand mean 0.5, models 0.4 and 0.6, benchmarks too: 0.04 of 0.12 each, and as much is left."""
    rows = [scored({"a": [0.0, 0.8], "b": [0.4, 0.4]}), scored({"a": [0.4, 0.4], "b": [0.8, 0.8]}, "other")]
    repeated = [rows[0].slice(0, 1)] * 2
    *_, block = variance(pa.concat_tables([*rows, *repeated]))
    (found,) = (one for one in block["rows"] if one["measure"] == METRICS[0])
    assert found["parts"] == pytest.approx({"model": 1 / 3, "benchmark": 1 / 3, "residual": 1 / 3})
    assert (found["n_others"], found["n_items"]) == (2, 4)


@pytest.mark.weights
def test_one_model_on_one_item_still_makes_a_page():
    data = overview(results(n_items=1, models=("only",)), {"run": {}})
    assert data["variance"] == []
    assert data["boards"][0]["models"][0]["mode"] is None
    assert "correlations" not in data["boards"][0]["charts"]


@pytest.mark.weights
def test_failures_are_those_of_the_run():
    found = overview(results(), {"run": {}})["failures"]
    assert {(row["stage"], row["reason"]) for row in found} >= {
        ("answer", "no_choice_named"),
        ("response", "no_recorded_response"),
    }


def test_what_responses_took_is_added_up_by_model_and_who_tells_nothing_is_left_out():
    """Two responses of "a" took 10 and 20 prompt tokens: 30; "b" tells nothing, and broken text says nothing."""
    rows = [row("i0", "a", 0, "x", usage='{"prompt_tokens": 10, "cost": 0.5}'), row("i1", "a", 1, "x", usage='{"prompt_tokens": 20}'),
            row("i0", "b", 0, "x", usage="{broken")]  # fmt: skip
    (found,) = usage(pa.Table.from_pylist(rows, schema=result_schema()))
    assert {name: value for name, value in found.items() if value is not None} == {
        "model": "a", "n_rows": 2, "prompt_tokens": 30, "cost": 0.5,
    }  # fmt: skip
