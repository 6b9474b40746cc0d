import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators import nights
from operators.inspection import contents, findings, night_findings
from operators.merging import merge
from operators.store import DamagedPart, Store
from operators.sweeping import remove, waste
from tests.operators.test_store import Scorer, found, scores


@pytest.fixture
def shelf(tmp_path):
    shelf = Store(str(tmp_path / "store")).scores("m1", Scorer())
    shelf.append(scores(a=0.25, b=0.5))
    shelf.append(scores(c=0.75))
    return shelf


def told(shelf):
    return [(one.grave, one.text.split(":")[0].split(";")[0]) for one in findings(shelf)]


def test_a_sound_shelf_is_counted_and_nothing_is_found(shelf):
    has = contents(shelf)
    assert (has.rows, has.n_parts, has.spec, has.n_damaged) == (3, 2, "Scorer", 0)
    assert has.n_bytes == sum(os.path.getsize(part) for part in shelf.parts())
    assert told(shelf) == []


def test_repeated_keys_are_a_note_and_a_contradiction_is_said(shelf):
    shelf.append(scores(a=0.25, d=1.0))
    assert told(shelf) == [(False, "1 rows repeat a key")]
    shelf.append(scores(b=0.6))
    assert told(shelf) == [(False, "2 rows repeat a key, 1 keys with different content")]
    merge(shelf)
    assert told(shelf) == [] and found(shelf, "a", "b") == {"a": 0.25, "b": 0.5}


def test_responses_that_contradict_each_other_are_told_from_equal_ones(tmp_path):
    shelf = Store(str(tmp_path)).responses(Scorer())
    seen = []
    for text in ("It barks.", "It barks.", "It meows."):
        row = {"key": "k", "item_id": "q", "response": text}
        shelf.append(pa.Table.from_pylist([row], schema=shelf.schema))
        seen.append(told(shelf))
    both = "2 rows repeat a key, 1 keys with different content"
    assert seen == [[], [(False, "1 rows repeat a key")], [(False, both)]]


def test_bytes_that_changed_are_wrong_even_where_parquet_reads_them(shelf):
    pq.write_table(scores(a=0.9), shelf.parts()[0])
    assert told(shelf) == [(True, "damaged")]
    assert contents(shelf).n_parts == 2, "to look is not to change"


def test_a_cut_part_is_wrong_before_and_after_it_was_set_aside(shelf):
    os.truncate(shelf.parts()[0], 30)
    assert told(shelf) == [(True, "damaged")] and contents(shelf).n_damaged == 1
    with pytest.warns(DamagedPart):
        shelf.read()
    assert told(shelf) == [(True, "damaged, set aside")] and contents(shelf).n_damaged == 1


def test_a_description_of_something_else_is_wrong(shelf, tmp_path):
    place = tmp_path / "store" / shelf.name / "spec.json"
    body = json.loads(place.read_text())
    body["spec"]["name"] = "b"
    place.write_text(json.dumps(body))
    assert told(shelf) == [(True, "spec.json does not describe this folder")]
    place.unlink()
    assert told(shelf) == [(True, "spec.json is missing or unreadable")]


def test_waste_is_found_and_only_removed_one_by_one(shelf, tmp_path):
    store, folder = shelf.store, tmp_path / "store" / shelf.name
    left, fresh = folder / ".part-x.1234", folder / ".part-y.1234"
    for place in (left, fresh):
        place.write_bytes(b"half")
    os.utime(left, (0, 0))
    os.truncate(shelf.parts()[0], 30)
    with pytest.warns(DamagedPart):
        shelf.read()
    listed = list(waste(store, None, []))
    assert sorted(one.why for one in listed) == [
        "damaged, its rows are computed again",
        "left by a write that did not finish",
    ], "a write that began just now may still finish"
    assert left.exists(), "finding is not removing"
    for one in listed:
        remove(store, one)
    assert not left.exists() and fresh.exists() and found(shelf, "c") == {"c": 0.75}
    (whole,) = waste(store, None, [shelf.name.split("/")[-1]])
    assert whole.name == shelf.name
    remove(store, whole)
    remove(store, whole)
    assert list(store.shelves()) == []


def test_old_nights_go_and_the_last_ones_stay(tmp_path):
    store = Store(str(tmp_path))
    for day in (1, 2, 3):
        store.write(f"nightly/offline/2026-01-0{day}/run.json", b'{"fingerprints": {}}')
    store.write("nightly/offline/2026-01-04/rows.parquet", b"of a night that did not finish")
    assert [one.name for one in waste(store, 2, [])] == ["nightly/offline/2026-01-01"]
    assert list(waste(store, None, [])) == []
    os.utime(tmp_path / "nightly/offline/2026-01-04/rows.parquet", (0, 0))
    (left,) = waste(store, None, [])
    assert (left.name, left.why) == ("nightly/offline/2026-01-04", "a night that did not finish")
    remove(store, left)
    assert nights.finished(store, "offline") == store.folders("nightly/offline")
    assert nights.last(store, "elsewhere") is None
    store.write("nightly/team/mine/2026-01-01/run.json", b'{"fingerprints": {}}')
    for place in (tmp_path / "nightly/team/mine").rglob("*"):
        os.utime(place, (0, 0))
    assert list(waste(store, None, [])) == [], "a folder of folders is no night"


def test_a_night_that_cannot_be_read_is_wrong_and_one_that_did_not_finish_a_note(tmp_path):
    store, rows = Store(str(tmp_path)), tmp_path / "rows.parquet"
    pq.write_table(nights.NIGHT_ROW.empty_table(), rows)
    for name in ("sound", "cut", "lost", "open"):
        store.write_file(f"nightly/offline/{name}/rows.parquet", rows)
        if name != "open":
            store.write(f"nightly/offline/{name}/run.json", b'{"fingerprints": {}}')
    os.truncate(tmp_path / "nightly/offline/cut/rows.parquet", 100)
    (tmp_path / "nightly/offline/lost/rows.parquet").unlink()
    seen = {one.place.rsplit("/", 1)[-1]: one for one in night_findings(store)}
    assert {name: one.grave for name, one in seen.items()} == {"cut": True, "lost": True, "open": False}
    assert "rows.parquet cannot be read" in seen["cut"].text and "did not finish" in seen["open"].text
