"""What is computed where: rows of the same clips are neighbours, whatever the order of the clips."""

from itertools import pairwise

import pyarrow as pa
import pytest

from operators.base import Resources, Stage
from operators.entries import InMemory, OnDisk
from operators.permutation import fan_out, in_order
from operators.schema import STORED_RESPONSE
from operators.spool import Spool, portions
from operators.store import Store
from pipelines.lookup import Lookup, by_clips, find_or_compute
from tests.mugen_toys import Loudest


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


def asked(n):
    rows = [
        {"item_id": f"q{i}", "benchmark": "b", "trial": 0, "question": f"Question {i}?"} for i in range(n)
    ]
    return pa.Table.from_pylist(
        [row | {"choices": ["a", "b"], "audio_uris": ["c.wav"], "audio_hashes": ["c"]} for row in rows]
    )


def finished(marked, responses, reasons):
    """A block as a worker gives it back."""
    rows = marked.to_pylist()
    told = {"finish_reason": "stop", "usage": '{"cost": 1}', "generate.error": None, "generate.seconds": 0.5}
    both = zip(rows, responses, reasons, strict=True)
    schema = pa.schema([*marked.schema, *list(STORED_RESPONSE)[-3:], ("response_error", pa.string())])
    for name, kind in (("error", pa.string()), ("seconds", pa.float64()), ("encoded", pa.string())):
        schema = schema.append(pa.field(f"generate.{name}", kind))
    done = [row | told | {"response": text, "response_error": reason} for row, text, reason in both]
    return pa.Table.from_pylist(done, schema=schema)


@pytest.mark.parametrize("entries", [InMemory, OnDisk])
def test_results_are_those_of_the_store_and_of_the_run_as_a_whole_and_in_parts(tmp_path, entries):
    rows, stage = asked(5), Stage("generate", Loudest(), Resources())
    shelf, blocked = Store(str(tmp_path)).responses(stage.spec), [None, None, None, "unheard", None]

    def lookup():
        return Lookup(stage, shelf, rows, blocked, "response_error", entries=entries)

    first = lookup()
    todo = first.todo()
    marked = first.mark(rows, todo)
    assert todo.tolist() == [True, True, True, False, True]
    first.take(finished(marked.slice(0, 3), ["zero", None, "two"], [None, "refusal", None]))
    second = lookup()
    assert second.todo().tolist() == [False, True, False, False, True]
    second.take(finished(second.mark(rows, second.todo()).slice(1, 1), ["one"], [None]))
    for one, texts, reasons in (
        (first, ["zero", None, "two", None, None], [None, "refusal", None, "unheard", "not_computed"]),
        (second, ["zero", "one", "two", None, None], [None, None, None, "unheard", "not_computed"]),
    ):
        found, why = one.results()
        assert found["response"].to_pylist() == texts
        assert [reason and reason.split(":")[0] for reason in why.to_pylist()] == reasons
        parts = [one.results(slice(start, start + 2)) for start in (0, 2, 4)]
        assert pa.concat_tables([part for part, _ in parts]).to_pylist() == found.to_pylist()
        assert [reason for _, part in parts for reason in part.to_pylist()] == why.to_pylist()
    assert (second.tally().from_store, second.tally().computed) == (2, 1)


def test_a_spool_is_looked_up_and_computed_as_the_table_of_its_rows(tmp_path, monkeypatch):
    rows, spool, stage = asked(7), Spool(), Stage("generate", Loudest(), Resources())
    for start in (0, 3):
        spool.add(rows.slice(start, 4 if start else 3))
    done = []

    def run(stages, table, *_):
        for some in portions(table):
            done.append((len(some), some["item_id"].to_pylist()))
            yield finished(some, [f"of {name}" for name in some["item_id"].to_pylist()], [None] * len(some))

    monkeypatch.setattr("pipelines.lookup.run", run)
    blocked, carry = [None] * 6 + ["unheard"], ("item_id", "benchmark", "trial")
    told = []
    for name, given in (("table", rows), ("spool", spool)):
        shelf = Store(str(tmp_path / name)).responses(stage.spec)
        for _ in range(2):
            lookup = Lookup(stage, shelf, given, blocked, "response_error", entries=OnDisk)
            find_or_compute([lookup], given, "test", carry=carry, whole="item_id")
        found, why = lookup.results()
        told.append((lookup.keys.to_pylist(), found.to_pylist(), why.to_pylist()))
    assert told[0] == told[1] and told[0][2] == [None] * 6 + ["unheard"]
    assert [n for n, _ in done] == [6, 3, 3], "the second time nothing is left"
    assert sorted(done[0][1]) == sorted(done[1][1] + done[2][1])
