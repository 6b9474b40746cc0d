"""Workers store what they computed, stage by stage; the driver stores what they could not."""

import os
import time

import pyarrow as pa
import pytest

from operators.base import Resources, Stage
from operators.inspection import findings
from operators.merging import merge
from operators.schema import METRICS
from operators.shelf import Shelf
from operators.store import RUNNING, Store, StoreError
from operators.sweeping import STALE_MARK_SECONDS, waste
from pipelines.commit import LOOKS, Committer, Desk, marked
from pipelines.lookup import Lookup, tell_who_stored
from pipelines.pool import Pool
from tests import toys

ROWS = pa.table({"reasoning": ["one", "one two", "unscorable", "one two three"]})


def lookup(store, spec, metric, rows=ROWS):
    columns = {"value": metric, "details": f"{metric}_details"}
    shelf = store.scores(metric, spec)
    stage = Stage(metric[:2], spec, Resources())
    return Lookup(stage, shelf, rows, [None] * rows.num_rows, f"{metric}_reason", columns)


@pytest.fixture
def store(tmp_path):
    return Store(str(tmp_path / "store"))


@pytest.fixture
def pair(store):
    return [lookup(store, toys.M2(), METRICS[1]), lookup(store, toys.M3(), METRICS[2])]


def marks(lookups, rows=ROWS):
    for one in lookups:
        rows = one.mark(rows, one.todo())
    return rows


def worker(lookups, mark, looks=False):
    commits = [one.commit for one in lookups]
    return Pool([one.stage for one in lookups], None, Committer(commits, mark, looks))


def test_a_stage_is_stored_before_the_next_one_starts(store, pair, monkeypatch):
    with marked(store) as mark:
        pool = worker(pair, mark)
        monkeypatch.setattr(toys.M3, "build", lambda self: pytest.fail("the worker dies here"))
        with pytest.raises(pytest.fail.Exception):
            pool(marks(pair))
    first, second = (one.commit.shelf.read() for one in pair)
    assert (first.num_rows, second.num_rows) == (3, 0), "all but the unscorable row, and nothing"


def test_what_a_worker_stored_the_driver_stores_no_second_time(store, pair):
    with marked(store) as mark:
        block = worker(pair, mark)(marks(pair))
    assert [len(one.commit.shelf.parts()) for one in pair] == [1, 1]
    for one in pair:
        one.take(block)
    assert [len(one.commit.shelf.parts()) for one in pair] == [1, 1]
    entries, reasons = pair[0].results()
    assert entries["value"].to_pylist() == [0.01, 0.02, None, 0.03]
    assert reasons.to_pylist() == [None, None, "toy_reason", None]
    assert (pair[0].tally().computed, pair[0].tally().failed) == (4, 1)


def test_a_worker_that_sees_another_store_writes_nothing_and_the_driver_does(store, pair, capsys):
    block = worker(pair, f"{RUNNING}/of-another-machine")(marks(pair))
    assert [one.commit.shelf.parts() for one in pair] == [[], []]
    for one in pair:
        one.take(block)
    assert [one.commit.shelf.read().num_rows for one in pair] == [3, 3]
    tell_who_stored(pair)
    assert "m2, m3: 6 results were stored by the driver" in capsys.readouterr().err


@pytest.fixture
def desk(store, pair, monkeypatch):
    """A desk that sees the store, of a run whose workers, which come later, do not; what was asked of it."""
    with marked(store) as mark:
        made, asked = Desk([one.commit for one in pair], mark), []
        monkeypatch.setattr("pipelines.commit.sees_store", lambda commits, mark: False)

        def ask(method, *arguments):
            asked.append(method)
            return getattr(made, method)(*arguments)

        yield ask, asked


def far_worker(lookups, ask, looks=False):
    commits = [one.commit for one in lookups]
    return Pool([one.stage for one in lookups], None, Committer(commits, f"{RUNNING}/unseen", looks, ask))


def test_the_desk_stores_for_a_worker_that_does_not_see_the_store_before_it_goes_on(pair, desk, monkeypatch):
    ask, asked = desk
    block = far_worker(pair, ask)(marks(pair))
    assert asked == ["sees", "append", "append"]
    parts = [one.commit.shelf.parts() for one in pair]
    assert [one.commit.shelf.read().num_rows for one in pair] == [3, 3]
    for one in pair:
        one.take(block)
        one.settle()
    assert [one.commit.shelf.parts() for one in pair] == parts and pair[0].n_stored_here == 0

    monkeypatch.setattr(
        toys.M2, "build", lambda self: pytest.fail("nothing is left to do but the row that fails")
    )
    rows = marks(pair).filter(pa.array([True, True, False, True]))
    again = far_worker(pair, ask, looks=True)(rows)
    assert asked[3:] == ["sees", "find", "append", "find", "append"]
    assert not any(again["m2.todo"].to_pylist()) and not again["m2.unseen"][0].as_py()


def test_a_desk_that_fails_leaves_it_to_the_driver(pair, desk):
    ask, _ = desk

    def lost(method, *arguments):
        if method == "append":
            raise StoreError("the desk died")
        return ask(method, *arguments)

    block = far_worker(pair, lost)(marks(pair))
    assert [one.commit.shelf.parts() for one in pair] == [[], []]
    pair[0].take(block)
    assert pair[0].n_stored_here == 3


def test_a_worker_that_cannot_write_leaves_it_to_the_driver_and_stops_trying(store, pair, monkeypatch):
    tries = []

    def refused(self, name, data):
        tries.append(name)
        raise StoreError("no room")

    with marked(store) as mark:
        monkeypatch.setattr(Store, "write", refused)
        block = worker(pair, mark)(marks(pair))
        monkeypatch.undo()
    assert len(tries) == 1
    for one in pair:
        one.take(block)
    assert [one.commit.shelf.read().num_rows for one in pair] == [3, 3]


def test_a_successor_computes_nothing_that_was_stored_and_replaces_nothing(store, pair):
    """A value that was sampled would come out otherwise a second time: 0.75 stays, though the toy would say 0.02."""
    shelf, key = pair[0].commit.shelf, pair[0].keys[1].as_py()
    early = pa.Table.from_pylist([{"key": key, "value": 0.75, "details": "{}"}], schema=shelf.schema)
    shelf.append(early)
    with marked(store) as mark:
        block = worker(pair, mark, looks=True)(marks(pair))
    assert block["m2.todo"].to_pylist() == [True, False, True, True]
    pair[0].take(block)
    assert pair[0].results()[1].to_pylist()[1].startswith("not_computed")
    pair[0].settle()
    entries, reasons = pair[0].results()
    assert entries["value"].to_pylist() == [0.01, 0.75, None, 0.03]
    assert reasons.to_pylist() == [None, None, "toy_reason", None]
    assert sorted(shelf.read()["value"].to_pylist()) == [0.01, 0.03, 0.75]


def failing_looks(monkeypatch, times):
    """Let the first `times` looks into a shelf fail; what is returned has an entry per look."""
    find, looks = Shelf.find, []

    def failing(self, keys, besides=()):
        looks.append(self.name)
        if len(looks) <= times:
            raise StoreError("SlowDown")
        return find(self, keys, besides)

    monkeypatch.setattr(Shelf, "find", failing)
    return looks


def test_a_successor_looks_again_where_a_look_failed(store, pair, monkeypatch):
    with marked(store) as mark:
        worker(pair, mark)(marks(pair))
        looks = failing_looks(monkeypatch, LOOKS - 1)
        block = worker(pair, mark, looks=True)(marks(pair))
    assert len(looks) == LOOKS + 1, "M2 at the last try, M3 at once"
    assert block["m2.todo"].to_pylist() == [False, False, True, False]
    assert not any(block[f"{name}.unseen"][0].as_py() for name in ("m2", "m3"))


def test_a_successor_that_cannot_look_computes_and_says_so(store, pair, monkeypatch, capsys):
    """All four rows of M2 are computed a second time; the older entries count, and compact leaves the newer out."""
    with marked(store) as mark:
        worker(pair, mark)(marks(pair))
        failing_looks(monkeypatch, LOOKS)
        block = worker(pair, mark, looks=True)(marks(pair))
        monkeypatch.undo()
    for one in pair:
        one.take(block)
        one.settle()
    tell_who_stored(pair)
    told = capsys.readouterr().err
    assert "note: m2: a worker died" in told and "4 rows were computed that may have been stored" in told
    assert "m3" not in told
    assert [one.tally().unseen for one in pair] == [4, 0]
    assert [one.results()[0]["value"].null_count for one in pair] == [1, 1]
    shelf = pair[0].commit.shelf
    (found,) = findings(shelf)
    assert found.text.startswith("3 rows repeat a key; compact") and not found.grave
    assert merge(shelf).repeats == 3 and list(findings(shelf)) == []


@pytest.mark.parametrize("landed", [True, False])
def test_a_write_that_is_reported_as_failed_is_stored_once_whether_it_landed_or_not(
    store, pair, monkeypatch, landed
):
    write = Store.write

    def cut(self, name, data):
        if landed or "part-" not in name:
            write(self, name, data)
        if "part-" in name:
            raise StoreError("the connection was cut")

    with marked(store) as mark:
        monkeypatch.setattr(Store, "write", cut)
        block = worker(pair, mark)(marks(pair))
        monkeypatch.undo()
    for one in pair:
        one.take(block)
        one.settle()
        assert one.results()[0]["value"].null_count == 1
        assert list(findings(one.commit.shelf)) == [], "no key twice"
    assert [len(one.commit.shelf.parts()) for one in pair] == [1, 1]
    assert [one.tally().computed for one in pair] == [4, 4]


def test_of_two_versions_the_table_has_the_one_that_the_store_gives(store, pair):
    """A second worker drew 0.75 where ours says 0.02, and its part is the older one; a third comes too late for 0.03."""
    shelf = pair[0].commit.shelf
    keys = pair[0].keys.to_pylist()

    def drawn(key, value):
        shelf.append(
            pa.Table.from_pylist([{"key": key, "value": value, "details": "{}"}], schema=shelf.schema)
        )

    drawn(keys[1], 0.75)
    with marked(store) as mark:
        block = worker(pair, mark)(marks(pair))
    drawn(keys[3], 0.9)
    pair[0].take(block)
    pair[0].settle()
    assert pair[0].results()[0]["value"].to_pylist() == [0.01, 0.75, None, 0.03]
    again = lookup(store, toys.M2(), METRICS[1])
    assert again.results()[0]["value"].to_pylist() == [0.01, 0.75, None, 0.03]
    assert (pair[0].tally().computed, pair[0].tally().failed) == (4, 1)


def test_what_failed_here_and_was_stored_by_another_is_no_failure(store, pair):
    key = pair[0].keys[2].as_py()
    with marked(store) as mark:
        pair[0].take(worker(pair, mark)(marks(pair)))
    entry = {"key": key, "value": 0.5, "details": "{}"}
    pair[0].commit.shelf.append(pa.Table.from_pylist([entry], schema=pair[0].commit.shelf.schema))
    pair[0].settle()
    assert pair[0].results()[0]["value"].to_pylist() == [0.01, 0.02, 0.5, 0.03]
    tally = pair[0].tally()
    assert (tally.computed, tally.from_store, tally.failed) == (3, 1, 0)


def test_where_nobody_else_wrote_nothing_is_read_again(store, pair, monkeypatch):
    with marked(store) as mark:
        block = worker(pair, mark)(marks(pair))
    monkeypatch.setattr(type(pair[0].commit.shelf), "blobs", lambda *_: pytest.fail("a part was read"))
    for one in pair:
        one.take(block)
        one.settle()
    assert [one.results()[0]["value"].null_count for one in pair] == [1, 1]


def test_a_row_given_up_after_it_was_stored_is_no_failure(store, pair):
    from pipelines.pool import given_up

    with marked(store) as mark:
        worker(pair, mark)(marks(pair))
    for one in pair:
        one.take(
            given_up([one.stage for one in pair], marks(pair), "worker_died: no worker survives this row")
        )
        one.settle()
    _, reasons = pair[0].results()
    assert reasons.to_pylist() == [None, None, "worker_died: no worker survives this row", None]


def test_a_mark_goes_with_its_run_and_one_that_stays_is_waste_after_a_month(store, tmp_path):
    with marked(store) as mark:
        assert store.read(mark) == b""
        assert list(waste(store, None, [])) == [], "a run that goes on"
        long_ago = time.time() - STALE_MARK_SECONDS - 60
        os.utime(tmp_path / "store" / mark, (long_ago, long_ago))
        assert [one.name for one in waste(store, None, [])] == [mark]
    with pytest.raises(FileNotFoundError):
        store.read(mark)


def test_who_may_not_delete_may_run(store, monkeypatch):
    def refused(path):
        raise PermissionError(path)

    with marked(store):
        monkeypatch.setattr(store.filesystem, "rm_file", refused)
    assert len(store.entries(RUNNING)) == 1
