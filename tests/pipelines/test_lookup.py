"""What is computed where: rows of the same clips are neighbours, whatever the order of the clips."""

from itertools import pairwise

import pyarrow as pa

from operators.permutation import fan_out, in_order
from pipelines.lookup import by_clips


def presented(n_items, n_trials):
    """Every item in every trial's order, trials outermost: what belongs together lies as far apart as it can."""
    items = [
        {"item_id": f"q{i}", "audio_uris": ["r", *"abcde"], "audio_hashes": [f"{i}{k}" for k in range(6)]}
        for i in range(n_items)
    ]
    fanned = [row for item in items for row in fan_out(item, n_trials, 0, n_fixed=1)]
    rows = [{**row, "audio_hashes": in_order(row["audio_hashes"], row["audio_order"], 1)} for row in fanned]
    columns = ("item_id", "trial", "audio_hashes")
    rows = [{name: row[name] for name in columns} for row in sorted(rows, key=lambda row: row["trial"])]
    return pa.Table.from_pylist(rows)


def test_all_permutations_of_an_item_stand_side_by_side():
    rows = presented(n_items=12, n_trials=10)
    assert len(set(map(tuple, rows["audio_hashes"].to_pylist()))) == 12 * 10, "all orders differ"
    ordered = by_clips(rows)["item_id"].to_pylist()
    assert len(ordered) == 120
    changes = sum(one != other for one, other in pairwise(ordered))
    assert changes == 12 - 1


def test_an_item_stays_whole_with_fewer_candidates_and_what_is_asked_alike_stands_together():
    clips = ["a", "b", "c", "d"]
    rows = [
        {"item_id": name, "question": f"{n} candidates", "audio_hashes": [name + clip for clip in clips[:n]]}
        for _ in range(2)
        for n in (2, 4)
        for name in ("q1", "q2", "q3")
    ]
    ordered = by_clips(pa.Table.from_pylist(rows), whole="item_id").to_pylist()
    assert [row["item_id"] for row in ordered] == ["q1"] * 4 + ["q2"] * 4 + ["q3"] * 4
    assert [row["question"][0] for row in ordered] == ["2", "2", "4", "4"] * 3


def test_the_trials_of_an_item_keep_their_order():
    ordered = by_clips(presented(n_items=3, n_trials=4))
    assert ordered["trial"].to_pylist() == [0, 1, 2, 3] * 3


def test_rows_without_clips_and_unheard_clips_are_rows_too():
    unheard = pa.table({"audio_hashes": pa.array([["b", None], None, [None, "b"], []])})
    assert by_clips(unheard)["audio_hashes"].to_pylist() == [None, [], ["b", None], [None, "b"]]


def test_stages_that_hear_nothing_keep_their_rows_as_they_are():
    texts = pa.table({"response": ["two", "one"]})
    assert by_clips(texts) == texts
