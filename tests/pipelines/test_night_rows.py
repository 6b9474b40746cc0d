"""The rows of a night without its process: what it leaves beside them."""

from operators import nights
from operators.asked import names_in_results
from operators.store import Store
from pipelines.night_rows import night_rows
from pipelines.phases import Journal
from pipelines.rescore_settings import Rescore
from tests.bench.nights import SCORERS, SERIES, fill, seed_night


def test_texts_of_an_earlier_night_in_the_folder_are_not_taken_for_this_ones(tmp_path):
    fill(tmp_path / "store", 0, 20)
    seed_night(tmp_path / "store")
    store, stale = Store(str(tmp_path / "store")), tmp_path / "results.parquet"
    stale.write_bytes(b"of an earlier night")
    before = (SERIES, nights.last(store, SERIES))
    rows, n_carried = night_rows(
        Rescore(), store, names_in_results(store), SCORERS, before, tmp_path, tmp_path / "scratch", Journal()
    )
    assert (len(rows.now), n_carried) == (20, 20) and not stale.exists()
