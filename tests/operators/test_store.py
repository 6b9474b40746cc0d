import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic.dataclasses import dataclass

from operators import parts
from operators.key_index import KeyIndex
from operators.schema import STORED_RESPONSE, STORED_SCORE
from operators.store import DamagedPart, Shelf, Store, StoreError


@dataclass(frozen=True)
class Scorer:
    reads: ClassVar[tuple[str, ...]] = ("text",)
    writes: ClassVar[tuple[str, ...]] = ("score",)
    version: ClassVar[int] = 1
    name: str = "a"


def scores(**values):
    rows = {"key": list(values), "value": list(values.values()), "details": ["{}"] * len(values)}
    return pa.table(rows, schema=STORED_SCORE)


def found(shelf, *keys):
    return {row["key"]: row["value"] for row in shelf.find(keys).to_pylist()}


@pytest.fixture(params=["local", "memory"])
def store(request, tmp_path):
    return Store(str(tmp_path / "store") if request.param == "local" else f"memory://{tmp_path.name}")


def test_what_is_stored_is_found_in_another_store_object(store):
    store.scores("m1", Scorer()).append(scores(a=0.25, b=0.1 + 0.2))
    again = Store(store.root).scores("m1", Scorer())
    assert found(again, "a", "b", "c") == {"a": 0.25, "b": 0.1 + 0.2}, "floats come back to the last bit"


def test_nothing_stored_is_an_empty_table_of_the_right_types(store):
    assert store.scores("m1", Scorer()).find(["a"]).schema == STORED_SCORE


def test_another_scorer_or_metric_never_answers(store):
    store.scores("m1", Scorer("a")).append(scores(k=1.0))
    assert found(store.scores("m1", Scorer("b")), "k") == {}
    assert found(store.scores("m2", Scorer("a")), "k") == {}


def test_a_key_written_twice_is_read_once_and_the_older_wins(store):
    shelf = store.scores("m1", Scorer())
    shelf.append(scores(k=1.0))
    shelf.append(scores(k=2.0, other=3.0))
    assert found(shelf, "k", "other") == {"k": 1.0, "other": 3.0}
    assert shelf.find(["k"]).num_rows == 1


def test_a_failure_is_never_stored(store):
    with pytest.raises(ValueError, match="failures are not stored"):
        store.scores("m1", Scorer()).append(scores(k=None))


def test_an_empty_block_leaves_no_part(store):
    shelf = store.scores("m1", Scorer())
    shelf.append(STORED_SCORE.empty_table())
    assert shelf.parts() == []


def test_a_part_cut_off_is_ignored_by_name_and_the_rest_is_read(tmp_path):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    shelf.append(scores(a=1.0))
    shelf.append(scores(b=2.0))
    first = shelf.parts()[0]
    os.truncate(first, os.path.getsize(first) // 2)
    with pytest.warns(DamagedPart, match=os.path.basename(first)):
        assert found(shelf, "a", "b") == {"b": 2.0}
    aside = Path(first).with_name(f"damaged-{Path(first).name}")
    assert aside.exists() and not Path(first).exists(), "quarantined under its own name"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found(shelf, "a", "b") == {"b": 2.0}, "the next reader is not told again"


def test_a_part_whose_bytes_are_not_its_own_is_noticed_even_where_parquet_reads_it(tmp_path):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    shelf.append(scores(a=1.0))
    (part,) = shelf.parts()
    pq.write_table(scores(a=0.5), part)
    with pytest.warns(DamagedPart, match="not those that its name promises"):
        assert found(shelf, "a") == {}


def test_parts_of_older_versions_still_answer(tmp_path):
    """Their names end in eight random digits, and columns of today are missing."""
    shelf = Store(str(tmp_path)).responses(Scorer())
    folder = tmp_path / shelf.name
    folder.mkdir(parents=True)
    old = pa.table({"key": ["k"], "item_id": ["q1"], "response": ["dog"], "gone": [1]})
    pq.write_table(old, folder / "part-20260101T000000000000-0123abcd.parquet")
    (row,) = shelf.find(["k"]).to_pylist()
    assert row == dict.fromkeys(STORED_RESPONSE.names) | {"key": "k", "item_id": "q1", "response": "dog"}
    pq.write_table(pa.table({"key": ["l"]}), folder / "part-20260102T000000000000-0123abcd.parquet")
    with pytest.warns(DamagedPart, match="no column 'response'"):
        assert shelf.find(["k", "l"]).num_rows == 1
    assert len(shelf.parts()) == 2, "a part that this version cannot use is not damaged: it stays"


def test_a_reader_starts_anew_where_a_part_it_listed_was_merged_away(tmp_path, monkeypatch):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    shelf.append(scores(a=1.0))
    shelf.append(scores(b=2.0))
    stale = [shelf.parts()[0], str(tmp_path / "gone")]
    whole = shelf.parts()
    listings = iter([stale, whole, stale, whole])
    monkeypatch.setattr(Shelf, "parts", lambda _: next(listings))
    assert found(shelf, "a", "b") == {"a": 1.0, "b": 2.0}
    told: list[str] = []
    shelf.find_each(KeyIndex(["a", "b"]), lambda table: told.extend(table["key"].to_pylist()))
    assert told == ["a", "a", "b"], "part by part, and what came before the merge once more"


def test_rows_come_from_the_row_groups_that_hold_them(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "ROWS_PER_GROUP", 4)
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    shelf.append(scores(**{f"key{n:02}": float(n) for n in range(11)}))
    read, groups = parts.read, []
    monkeypatch.setattr(
        parts, "read", lambda *a, **named: groups.append(named.get("groups")) or read(*a, **named)
    )
    assert found(shelf, "key00", "key03", "key09", "none") == {"key00": 0.0, "key03": 3.0, "key09": 9.0}
    assert groups == [None, [0, 2]], "the keys of all groups, the rows of two"


FULL = """
import resource, signal, sys
from operators.store import StoreError
from tests.operators.test_store import Scorer, Store, scores
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
shelf = Store(sys.argv[1]).scores("m1", Scorer())
shelf.append(scores(a=1.0))
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    shelf.append(scores(**{f"key{n}": n / 7 for n in range(4000)}))
except StoreError as error:
    print(error)
"""


def test_where_there_is_no_room_the_user_is_told_and_nothing_is_left_half_written(tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert "File too large" in told and "run the same command again" in told
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    assert [path.name for path in (tmp_path / shelf.name).iterdir() if path.name.startswith(".")] == []
    shelf.append(scores(**{f"key{n}": n / 7 for n in range(4000)}))
    assert found(shelf, "a", "key3999") == {"a": 1.0, "key3999": 3999 / 7}


def test_shelves_are_listed_by_kind(store):
    assert list(store.shelves()) == []
    store.scores("m1", Scorer("a")).append(scores(a=1.0))
    store.scores("m1", Scorer("b")).append(scores(a=1.0))
    names = [shelf.name for shelf in store.shelves()]
    assert len(names) == 2 and all(name.startswith("scores/m1/") for name in names)
    shelf = store.shelf(names[0])
    assert shelf.read().num_rows == 1 and shelf.spec()["fingerprint"] == names[0].split("/")[-1]
    with pytest.raises(ValueError, match="opened to be read"):
        shelf.append(scores(b=1.0))


def test_a_crash_between_write_and_rename_leaves_nothing_a_reader_sees(tmp_path, monkeypatch):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    shelf.append(scores(a=1.0))

    def crash(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(KeyboardInterrupt):
        shelf.append(scores(b=2.0))
    monkeypatch.undo()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found(shelf, "a", "b") == {"a": 1.0}


def test_the_spec_lies_beside_its_scores(tmp_path):
    shelf = Store(str(tmp_path)).scores("m1", Scorer("a"))
    shelf.append(scores(a=1.0))
    assert '"name": "a"' in (tmp_path / shelf.name / "spec.json").read_text()


@pytest.mark.parametrize(
    ("root", "said"), [("", "empty"), ("nope://bucket/x", "nope"), ("nope://KEY:SECRET@y", "'nope://y'")]
)
def test_a_root_that_cannot_be_opened_is_named_without_secrets(root, said):
    with pytest.raises(StoreError, match=said):
        Store(root)


def test_every_flipped_bit_in_a_part_is_noticed(tmp_path):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    truth = {f"key{n}": n / 7 for n in range(50)}
    shelf.append(scores(**truth))
    (part,) = shelf.parts()
    data = Path(part).read_bytes()
    for place in range(0, len(data), 37):
        with open(part, "wb") as stream:  # where a damaged one was set aside, it is there again
            stream.write(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedPart)
            read = found(shelf, *truth)
        assert read == {}, f"bit flipped in byte {place}"


@pytest.mark.parametrize("root", ["s3://KEY:HIDDEN@bucket/store", "s3://bucket/store?X-Amz-Signature=HIDDEN"])
def test_a_root_with_credentials_is_refused_without_repeating_them(root):
    with pytest.raises(StoreError, match="set them in the environment") as told:
        Store(root)
    assert "HIDDEN" not in str(told.value)
