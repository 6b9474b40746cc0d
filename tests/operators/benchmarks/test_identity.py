"""Ids that clash, by hand."""

from operators.benchmarks.identity import settle_ids


def item(name, place, answer):
    return {"item_id": name, "place": place, "answer": answer, "gold_index": 0, "item_error": None}


def test_rows_that_differ_under_one_id_get_ids_of_their_own_also_where_a_row_has_such_an_id():
    rows = [item("x", "line 1", "a"), item("x", "line 2", "b"), item("x [line 1]", "line 3", "c")]
    settled, n_repeats = settle_ids(rows)
    assert [row["item_id"] for row in settled] == ["x [line 1] [line 1]", "x [line 2]", "x [line 1]"]
    assert [row["gold_index"] for row in settled] == [None, None, 0] and n_repeats == 0
    assert settled[0]["item_error"].startswith("duplicate_id: ") and settled[2]["item_error"] is None


def test_equal_rows_count_once():
    settled, n_repeats = settle_ids([item("x", "line 1", "a"), item("x", "line 2", "a")])
    assert [row["item_id"] for row in settled] == ["x"] and n_repeats == 1
