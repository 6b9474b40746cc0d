import os
import warnings
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from pydantic.dataclasses import dataclass

from operators.schema import STORED_SCORE
from operators.store import DamagedPart, Store, StoreError


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


def test_every_flipped_bit_in_a_part_is_noticed_or_harmless(tmp_path):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    truth = {f"key{n}": n / 7 for n in range(50)}
    shelf.append(scores(**truth))
    (part,) = shelf.parts()
    data = Path(part).read_bytes()
    for place in range(0, len(data), 37):
        with open(part, "wb") as stream:
            stream.write(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DamagedPart)
            read = found(shelf, *truth)
        assert all(truth[key] == value for key, value in read.items()), f"bit flipped in byte {place}"
