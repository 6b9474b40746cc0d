"""What is computed where: rows of the same clips meet in one block, whatever the order of the clips."""

import pyarrow as pa

from operators.permutation import fan_out, in_order
from pipelines.execution import cut
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


def test_all_permutations_of_an_item_are_in_one_block():
    rows = presented(n_items=12, n_trials=10)
    assert len(set(map(tuple, rows["audio_hashes"].to_pylist()))) == 12 * 10, "all orders differ"
    ordered, together = by_clips(rows)
    blocks = list(cut(ordered, 8, together))
    assert sum(block.num_rows for block in blocks) == 120
    # Blocks of at least 8 rows, cut where the clips change: one item of 10 trials each.
    homes = [frozenset(block["item_id"].to_pylist()) for block in blocks]
    assert len(homes) == 12 and set(homes) == {frozenset({f"q{i}"}) for i in range(12)}


def test_the_trials_of_an_item_keep_their_order():
    ordered, _ = by_clips(presented(n_items=3, n_trials=4))
    assert ordered["trial"].to_pylist() == [0, 1, 2, 3] * 3


def test_rows_without_clips_and_unheard_clips_are_rows_too():
    unheard = pa.table({"audio_hashes": pa.array([["b", None], None, [None, "b"], []])})
    ordered, together = by_clips(unheard)
    assert ordered[together].to_pylist() == ["", "", "b", "b"]


def test_stages_that_hear_nothing_keep_their_rows_as_they_are():
    texts = pa.table({"response": ["two", "one"]})
    assert by_clips(texts) == (texts, None)
