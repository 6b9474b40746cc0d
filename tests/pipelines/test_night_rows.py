"""The rows of a night without its process: what it leaves beside them."""

from operators import nights
from operators.asked import names_in_results
from operators.store import Store
from pipelines.lookup import Tally
from pipelines.night_rows import failing, night_rows
from pipelines.phases import Journal
from pipelines.rescore_settings import Rescore
from tests.bench.nights import SCORERS, SERIES, fill, seed_night


def test_texts_of_an_earlier_night_in_the_folder_are_not_taken_for_this_ones(tmp_path):
    fill(tmp_path / "store", 0, 20)
    seed_night(tmp_path / "store")
    store, stale = Store(str(tmp_path / "store")), tmp_path / "results.parquet"
    stale.write_bytes(b"of an earlier night")
    before = (SERIES, nights.last(store, SERIES))
    rows, n_carried, again = night_rows(
        Rescore(), store, names_in_results(store), SCORERS, before, tmp_path, tmp_path / "scratch", Journal()
    )
    assert (len(rows.now), n_carried) == (20, 20) and not again and not stale.exists()


def test_the_limit_is_over_the_rows_scored_tonight():
    # 1,000 rows stand, 10 are new, of which 6 fail: 6 of 10 although 6 of 1,010 is little.
    journal = Journal()
    journal.add("m1", Tally(rows=1000, from_store=1000))
    journal.add("m1", Tally(rows=10, computed=10, failed=6))
    assert failing(0.5, journal, {}) == ["m1 failed on 6 of 10 rows scored tonight"]
    assert failing(0.6, journal, {}) == []
    # Five of the six failed last night too: one of five rows is news.
    assert failing(0.5, journal, {"m1": 5}) == [] and failing(0.1, journal, {"m1": 5})


def test_a_night_that_only_tries_lasting_nulls_again_is_no_failure():
    journal = Journal()
    journal.add("m1", Tally(rows=100, from_store=99))
    journal.add("m1", Tally(rows=1, computed=1, failed=1))
    assert failing(0.0, journal, {"m1": 1}) == [] and failing(0.0, journal, {})
