"""Merging parts never changes what a reader sees, whenever it reads and whatever crashes."""

import os

import pyarrow as pa
import pytest

from operators import parts
from operators.merging import merge
from operators.shelf import Shelf
from operators.store import DamagedPart, Store
from tests.operators.test_store import Scorer, found, scores


@pytest.fixture(params=["local", "memory"])
def shelf(request, tmp_path):
    root = str(tmp_path / "store") if request.param == "local" else f"memory://merge-{tmp_path.name}"
    shelf = Store(root).scores("m1", Scorer())
    for number in range(6):
        shelf.append(scores(**{f"key{number}": number / 7, "shared": float(number)}))
    return shelf


TRUTH = {f"key{number}": number / 7 for number in range(6)} | {"shared": 0.0}


def test_many_parts_become_one_and_answer_as_before(shelf):
    before = found(shelf, *TRUTH)
    done = merge(shelf)
    assert before == TRUTH == found(shelf, *TRUTH)
    assert (done.parts_before, done.parts_after, done.rows, done.repeats) == (6, 1, 7, 5)
    assert merge(shelf).parts_after == 1, "and there is nothing more to merge"


def test_a_later_part_does_not_outrank_an_older_one_after_the_merge(shelf):
    merge(shelf)
    shelf.append(scores(shared=99.0, late=1.0))
    merge(shelf)
    assert found(shelf, "shared", "late") == {"shared": 0.0, "late": 1.0}


def test_parts_of_the_wanted_size_stay_and_are_not_merged_across(shelf):
    big = max(entry["size"] for entry in shelf.files())
    assert merge(shelf, size=big - 10).parts_after == 6 and found(shelf, *TRUTH) == TRUTH


def test_a_part_that_this_version_cannot_read_is_not_removed(shelf):
    other = shelf.commit(pa.table({"key": ["later"], "score_of_another_version": [0.5]}), parts.now())
    with pytest.warns(DamagedPart, match="no column 'value'"):
        merge(shelf)
    assert found(shelf, *TRUTH) == TRUTH
    assert other in shelf.parts()


@pytest.mark.parametrize("removed", range(7))
def test_a_crash_at_any_point_of_the_removal_loses_nothing(shelf, monkeypatch, removed):
    remove, left = Shelf.remove, [removed]

    def crash(self, paths):
        remove(self, list(paths)[: left[0]])
        raise KeyboardInterrupt

    monkeypatch.setattr(Shelf, "remove", crash)
    with pytest.raises(KeyboardInterrupt):
        merge(shelf)
    monkeypatch.undo()
    assert found(shelf, *TRUTH) == TRUTH and shelf.read().num_rows == 7
    merge(shelf)
    assert found(shelf, *TRUTH) == TRUTH


def test_a_reader_in_the_middle_of_a_merge_sees_every_key_once(shelf, monkeypatch):
    load, calls = Shelf.load, []

    def overtaken(self, path, data, *more, **named):
        calls.append(path)
        if len(calls) == 2:
            monkeypatch.setattr(Shelf, "load", load)
            merge(self)
        return load(self, path, data, *more, **named)

    monkeypatch.setattr(Shelf, "load", overtaken)
    assert found(shelf, *TRUTH) == TRUTH
    assert len(calls) == 2 and len(shelf.parts()) == 1


def test_two_merges_at_once_write_the_same_part(shelf, monkeypatch):
    commit = Shelf.commit

    def after_another(self, table, stamp):
        monkeypatch.setattr(Shelf, "commit", commit)
        merge(self)
        return commit(self, table, stamp)

    monkeypatch.setattr(Shelf, "commit", after_another)
    merge(shelf)
    assert len(shelf.parts()) == 1 and found(shelf, *TRUTH) == TRUTH


def test_a_damaged_part_is_left_out_of_the_merge_and_kept_by_name(tmp_path):
    shelf = Store(str(tmp_path)).scores("m1", Scorer())
    for number in range(3):
        shelf.append(scores(**{f"key{number}": float(number)}))
    os.truncate(shelf.parts()[1], 100)
    with pytest.warns(DamagedPart):
        merge(shelf)
    assert found(shelf, "key0", "key1", "key2") == {"key0": 0.0, "key2": 2.0}
    names = [entry["name"].rsplit("/", 1)[-1] for entry in shelf.files()]
    assert (
        sum(parts.is_part(name) for name in names) == 1
        and sum(name.startswith("damaged-") for name in names) == 1
    )
