"""What a night costs does not grow with what it need not look at; `tests.bench.nights` measures larger stores."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from operators.asked import digests
from operators.fingerprint import fingerprint
from operators.frames import with_columns
from operators.store import Store
from tests.bench.nights import Synthetic, fill, night, seed_night

# Whole nights in processes of their own.
pytestmark = pytest.mark.weights


def stored(folder, rows):
    fill(folder / "store", 0, rows)
    seed_night(folder / "store")
    return folder / "store"


def corrected(asked):
    """The same questions, asked later, with another gold answer."""
    changed = {
        "asked_at": pa.array(
            [datetime(2026, 2, 1, tzinfo=UTC)] * len(asked), asked.schema.field("asked_at").type
        ),
        "gold_index": pa.array([3] * len(asked), pa.int64()),
    }
    table = with_columns(asked, changed)
    contents = digests(table)
    return with_columns(table, {"content": pa.array(contents), "key": pa.array(contents)})


FEW, MANY = (
    25_000,
    100_000,
)  # more than one portion of buckets in both, so that only what is held for all rows differs


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("large"), MANY)


def test_memory_stays_and_nothing_is_scored_where_nothing_changed(tmp_path, large):
    roots = {FEW: stored(tmp_path, FEW), MANY: large}
    spent = {rows: night(root, tmp_path / f"out{rows}") for rows, root in roots.items()}
    for rows, one in spent.items():
        assert (one.computed, one.record["carried_over"]) == (0, rows)
    # 3 MB when this was written; reading a shelf of questions whole makes it 75.
    assert spent[MANY].peak_mb - spent[FEW].peak_mb < 30


def test_exactly_the_changed_rows_are_scored(tmp_path, large):
    fill(large, MANY, MANY + 1_000)
    store = Store(str(large))
    # Of three questions the benchmark corrected something: asked anew, they are looked at again.
    asked = store.shelf(f"asked/{fingerprint(Synthetic())}").read().slice(0, 3)
    store.asked(Synthetic()).append(corrected(asked))
    spent = night(large, tmp_path / "out", "max_failure_rate=1")
    assert spent.computed == 6 * 1_003 and spent.record["carried_over"] == MANY - 3
    assert spent.computed < 0.02 * 6 * MANY, "of the work that scored the whole store"
    again = night(large, tmp_path / "again", "max_failure_rate=1")
    assert again.computed == 0 and again.record["carried_over"] == MANY + 1_000
