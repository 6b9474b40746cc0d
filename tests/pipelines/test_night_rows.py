"""The rows of a night without its process: what it leaves beside them."""

import tracemalloc
from collections import Counter
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators import nights
from operators.asked import names_in_results
from operators.buckets import Buckets, portions
from operators.store import Store
from pipelines import night_rows as module
from pipelines.lookup import Tally
from pipelines.night_rows import failing, goes, night_rows, outages, summed
from pipelines.phases import Journal
from pipelines.rescore_settings import Rescore
from tests.bench.nights import SCORERS, SERIES, fill, seed_night


def test_texts_of_an_earlier_night_in_the_folder_are_not_taken_for_this_ones(tmp_path):
    fill(tmp_path / "store", 0, 20)
    seed_night(tmp_path / "store")
    store, stale = Store(str(tmp_path / "store")), tmp_path / "results.parquet"
    stale.write_bytes(b"of an earlier night")
    before = (SERIES, nights.last(store, SERIES))
    rows, n_carried, again, _ = night_rows(
        Rescore(), store, names_in_results(store), SCORERS, before, tmp_path, tmp_path / "scratch", Journal()
    )
    assert (len(rows.now), n_carried) == (20, 20) and not again and not stale.exists()


def test_goes_are_few_and_hold_every_row_once(tmp_path):
    todo, failed = (
        Buckets(tmp_path / name, pa.schema([("item_id", pa.string())])) for name in ("todo", "failed")
    )
    todo.add(pa.table({"item_id": [f"item{n}" for n in range(10_000)]}))
    sizes = [len(rows) for rows, _ in goes(todo, failed, at_once=1_000)]
    # Buckets hold some 156 rows: six of them make a go, and for goes of 100 each is cut in two, not quite evenly.
    assert sum(sizes) == 10_000 and max(sizes) <= 1_000 and len(sizes) <= 13
    few = [len(rows) for rows, _ in goes(todo, failed, at_once=100)]
    assert sum(few) == 10_000 and max(few) <= 100 and min(few) > 40


def test_means_and_reasons_do_not_depend_on_the_portions_or_on_when_they_are_added_up(tmp_path, monkeypatch):
    fill(tmp_path / "store", 0, 60)
    seed_night(tmp_path / "store")
    (rows,) = nights.stream(Store(str(tmp_path / "store")), SERIES, "2026-01-01")
    last, now = (Buckets(tmp_path / name, nights.NIGHT_ROW) for name in ("last", "now"))
    last.add(rows)
    lacking = [
        None if row % 3 else value for row, value in enumerate(rows["m1_acoustic_grounding"].to_pylist())
    ]
    now.add(
        rows.set_column(rows.column_names.index("m1_acoustic_grounding"), "m1_acoustic_grounding", [lacking])
    )
    whole = summed(last, now, tmp_path / "whole.parquet")
    small = partial(portions, at_most=6)
    monkeypatch.setattr(module, "portions", small)
    monkeypatch.setattr(module, "WAITING", 3)
    assert len(list(small(last, now))) > 3 * 3
    apart = summed(last, now, tmp_path / "apart.parquet")
    for one, other in zip(whole[0].to_pylist(), apart[0].to_pylist(), strict=True):
        assert one == pytest.approx(other, abs=1e-12)
    assert whole[1].equals(apart[1]) and whole[1]["n"].to_pylist() == [40]
    counts = ("n_last", "n_now", "added", "gone", "lost", "gained", "differ", "touched", "untold", "reasons")
    for pair, moved in whole[2].moved.items():
        for one, other in zip(moved, apart[2].moved[pair], strict=True):
            assert [getattr(one, name) for name in counts] == [getattr(other, name) for name in counts]


def test_the_limit_is_over_the_rows_scored_tonight():
    # 1,000 rows stand, 10 are new, of which 6 fail: 6 of 10 although 6 of 1,010 is little.
    journal = Journal()
    journal.add("m1", Tally(rows=1000, from_store=1000))
    journal.add("m1", Tally(rows=10, computed=10, failed=6))
    assert failing(0.5, journal, {}) == {"m1": "m1 failed on 6 of 10 rows scored tonight"}
    assert failing(0.6, journal, {}) == {}
    # Five of the six failed last night too: one of five rows is news.
    again = {"m1": Counter({"unscorable": 5})}
    assert failing(0.5, journal, again) == {} and failing(0.1, journal, again)


def test_a_night_that_only_tries_lasting_nulls_again_is_no_failure():
    journal = Journal()
    journal.add("m1", Tally(rows=100, from_store=99))
    journal.add("m1", Tally(rows=1, computed=1, failed=1))
    assert failing(0.0, journal, {"m1": Counter(["unscorable"])}) == {} and failing(0.0, journal, {})


def out_tonight(tally, reasons, standing=("m1",)):
    """The metrics that are out, after a night "before" in which those of `standing` failed."""
    journal = Journal()
    journal.add("m1", tally)
    last = nights.Night("before", nights.NIGHT_ROW.empty_table(), {"out": dict.fromkeys(standing)})
    return [
        (one.metric, one.since, one.n_rows) for one in outages(last, journal, {"m1": Counter(reasons)}, ())
    ]


def test_a_metric_that_raised_on_every_row_again_is_out_and_rows_of_their_own_reasons_are_not():
    tried = Tally(rows=100, from_store=98, computed=2, failed=2)
    assert out_tonight(tried, {"RuntimeError": 2}) == [("m1", "before", 2)]
    assert out_tonight(tried, {"RuntimeError": 2}, ()) == [], (
        "it worked last night: two rows that it cannot read"
    )
    assert out_tonight(tried, {"unparsable_slot_score": 2}) == [], "98 others have a value"
    assert out_tonight(Tally(rows=2, computed=2, failed=2), {"perplexity_not_finite": 2})
    assert out_tonight(Tally(rows=2, computed=2, failed=2), {"no_gold_answer": 2}) == []
    alone = Tally(rows=100, from_store=99, computed=1, failed=1)
    assert out_tonight(alone, {"RuntimeError": 1}) == [], "a single row"
    works = Tally(rows=100, from_store=97, computed=3, failed=2)
    assert out_tonight(works, {"RuntimeError": 2}) == [], "a third row got its score"
    assert outages(None, Journal(), {}, ()) == ()


def test_of_a_night_one_row_group_is_held_at_a_time(tmp_path):
    folder = tmp_path / "store" / "nightly" / "toy" / "2026-01-01"
    folder.mkdir(parents=True)
    draw, blank = np.random.default_rng(0), nights.NIGHT_ROW.empty_table().to_pydict()
    with pq.ParquetWriter(folder / "rows.parquet", nights.NIGHT_ROW) as writer:
        for _ in range(30):
            told = [draw.bytes(16).hex() for _ in range(2_000)]
            cells = {name: told if name in ("item_id", "content") else [None] * 2_000 for name in blank}
            writer.write_table(pa.table(cells, schema=nights.NIGHT_ROW))
    size = (folder / "rows.parquet").stat().st_size
    tracemalloc.start()
    try:
        rows = sum(len(table) for table in nights.stream(Store(str(tmp_path / "store")), "toy", "2026-01-01"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert rows == 60_000 and size > 3_000_000
    assert peak < size / 3, "what is read of the file waits in bytes until its row group is decoded"
