"""Tables larger than memory: every row comes back once, beside all others about its item, in portions that do not grow."""

import pyarrow as pa
import pytest

from operators.buckets import BUCKETS, Buckets, portions

SCHEMA = pa.schema([("item_id", pa.string()), ("trial", pa.int64())])


def filled(folder, items, trials=1, adds=1):
    """A row per item and trial; the trials of an item come apart, as those of parts of a store do."""
    found = Buckets(folder, SCHEMA)
    for trial in range(trials):
        for add in range(adds):
            names = [f"item{n}" for n in range(add, items, adds)]
            found.add(pa.table({"item_id": names, "trial": [trial] * len(names)}, schema=SCHEMA))
    return found


def names(table):
    return set(table["item_id"].to_pylist())


@pytest.mark.parametrize("at_most", [10_000, 400, 40, 7])
def test_every_row_comes_once_and_no_item_in_two_portions(tmp_path, at_most):
    left, right = filled(tmp_path / "left", 1_000, trials=2, adds=3), filled(tmp_path / "right", 1_200)
    found = list(portions(left, right, at_most=at_most))
    for place, expected in enumerate((2_000, 1_200)):
        rows = [(row["item_id"], row["trial"]) for some in found for row in some[place].to_pylist()]
        assert len(rows) == len(set(rows)) == expected
    items = [names(one) | names(other) for one, other in found]
    assert sum(map(len, items)) == len(set.union(*items)) == 1_200


def test_a_portion_does_not_grow_with_the_rows_though_the_buckets_do(tmp_path):
    largest = {}
    for items in (640, 64_000):
        found = filled(tmp_path / str(items), items)
        largest[items] = max(len(some) for (some,) in portions(found, at_most=200))
    assert 64_000 / BUCKETS > 4 * 200, "a bucket alone is more than a portion"
    assert largest[640] <= 200 and largest[64_000] < 1.5 * 200


def test_where_one_table_is_counted_the_other_gives_what_is_about_its_items_alone(tmp_path):
    few, many = filled(tmp_path / "few", 3), filled(tmp_path / "many", 1_000)
    found = list(portions(few, many, at_most=2, counted=few))
    assert sorted(name for some, _ in found for name in names(some)) == ["item0", "item1", "item2"]
    assert all(names(some) <= names(beside) for some, beside in found)
    assert sum(len(beside) for _, beside in found) < 1_000
    empty = Buckets(tmp_path / "empty", SCHEMA)
    assert list(portions(empty)) == [] == list(portions(empty, many, counted=empty))
    assert empty.read([]).schema == SCHEMA
