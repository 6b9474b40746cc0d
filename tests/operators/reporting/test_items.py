import json

import pytest

from operators.aggregate import MEASURES
from operators.reporting.clips import Clips
from operators.reporting.items import (
    ROWS_PER_BLOCK,
    Responses,
    blocks,
    in_order,
    index,
    scored,
    told_of_details,
)
from operators.schema import METRICS
from tests.report_toys import HOSTILE, results


def clips(tmp_path):
    return Clips(tmp_path / "report.html", 1000, 1000)


def test_rows_of_an_item_are_neighbours_and_items_keep_their_order():
    rows = in_order(results(n_items=5))
    assert rows["item_id"].to_pylist() == [f"item-{n}" for n in range(5) for _ in range(2)]
    assert in_order(rows.take([9, 0, 5, 1, 4, 2, 3, 8, 7, 6]))["model"].to_pylist()[:2] == [
        "careful",
        "sloppy",
    ]


def test_the_columns_hold_the_numbers_of_the_table(tmp_path):
    rows = in_order(results())
    found = index(rows, clips(tmp_path))
    for name in MEASURES:
        assert found["columns"][name] == rows[name].to_pylist()
    assert len(found["items"]) == 12
    places = [found["items"][place]["item_id"] for place in found["columns"]["item"]]
    assert places == rows["item_id"].to_pylist()
    assert [found["models"][place] for place in found["columns"]["model"]] == rows["model"].to_pylist()


def test_what_has_no_answer_says_why_in_a_word(tmp_path):
    found = index(in_order(results()), clips(tmp_path))["columns"]
    reasons = {
        (place, reason) for place, reason in zip(found["item"], found["reason"], strict=True) if reason
    }
    assert reasons == {(3, "no_choice_named"), (4, "no_recorded_response")}


def test_the_same_id_in_two_benchmarks_is_two_items(tmp_path):
    import pyarrow as pa

    first = results(n_items=2)
    second = first.set_column(
        first.schema.get_field_index("benchmark"), "benchmark", pa.array(["other"] * first.num_rows)
    )
    found = index(in_order(pa.concat_tables([first, second])), clips(tmp_path))
    assert [item["benchmark"] for item in found["items"]] == ["toy", "toy", "other", "other"]


def test_responses_past_the_limit_are_left_out_and_counted_and_their_rows_kept():
    """Five characters of seven fit; there is no room for the next three, and nothing after it comes in again."""
    rows = [{"response": said, "answer": "a", "answer_index": 0} for said in ("12345", "678", "90", None)]
    responses = Responses(7)
    (kept,) = responses.fitted({"rows-0": rows}).values()
    assert kept[0] == rows[0] and kept[3] == rows[3]
    assert kept[1:3] == [{"answer_index": 0, "response_left_out": n} for n in (3, 2)]
    assert responses.n_left_out == 2 and responses.told().startswith("2 responses are too many")
    assert Responses(10).fitted({"rows-0": rows}) == {"rows-0": rows} and Responses(10).told() == ""


def test_blocks_cover_every_row_once_and_keep_texts_exactly():
    rows = in_order(results(n_items=150, text=HOSTILE))
    found = blocks(rows)
    assert [len(part) for part in found.values()] == [ROWS_PER_BLOCK, 100]
    said = [row.get("response") for part in found.values() for row in part]
    assert said == rows["response"].to_pylist()
    assert found["rows-0"][0]["metrics"][METRICS[3]]["details"]["ppl_pa"] == 30.5


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("{cut", None), ("[1]", None), ("[" * 100_000, None), ("7", None),
        ('{"x": NaN, "y": 1.5}', {"x": None, "y": 1.5}), ('{"x": [-Infinity, 1e999, 2]}', {"x": [None, None, 2]}),
    ],
)  # fmt: skip
def test_details_that_cannot_be_read_stand_as_text_are_counted_and_cost_nothing_else(text, read):
    rows = results(n_items=1)
    column = rows.schema.get_field_index(f"{METRICS[0]}_details")
    found = blocks(rows.set_column(column, f"{METRICS[0]}_details", [[text, "{}"]]))
    json.dumps(found, allow_nan=False)
    metric = found["rows-0"][0]["metrics"][METRICS[0]]
    assert metric == {"unread": text[:300]} | ({"details": read} if read else {})
    assert found["rows-0"][0]["response"] and METRICS[0] not in found["rows-0"][1]["metrics"]
    assert told_of_details(found).startswith("1 details of metrics") and told_of_details(blocks(rows)) == ""


def test_how_rows_were_scored_is_told_where_all_runs_say_so_alike():
    one = {"specs": {"m4": {"form": "log_ratio"}, "m5": {"granularity": "whole"}}}
    other = {"specs": {"m4": {"form": "log_ratio"}, "m5": {"granularity": "sentence_minmax"}}}
    assert scored([one, one]) == {"form": "log_ratio", "granularity": "whole"}
    assert scored([one, other]) == {"form": "log_ratio", "granularity": None}
    assert scored([one, {"specs": None}]) == scored([{}]) == scored([]) == {"form": None, "granularity": None}
