"""Which rows of the last night are carried over: every valid question is found once, either carried or to be scored."""

import pyarrow as pa
import pytest

from operators import nights
from operators.asked import names_in_results
from operators.buckets import Buckets, portions
from operators.carrying import QUESTION, carry, questions, response_parts, untouched
from operators.fingerprint import fingerprint
from operators.frames import with_columns
from operators.schema import METRICS
from operators.store import Store
from tests.bench.nights import SERIES, Synthetic, fill, seed_night

PRINT = fingerprint(Synthetic())
ROWS = 40


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Only read."""
    root = tmp_path_factory.mktemp("carrying") / "store"
    fill(root, 0, ROWS)
    seed_night(root)
    return Store(str(root))


def known(store):
    (table,) = nights.stream(store, SERIES, "2026-01-01")
    return table


def shared_out(store, last, folder):
    """(items to be scored, rows carried over), where the last night left `last`."""
    named = names_in_results(store)
    before, now = (Buckets(folder / name, nights.NIGHT_ROW) for name in ("last", "now"))
    before.add(last)
    todo = Buckets(folder / "todo", QUESTION)
    carry(questions(store, named, folder), before, named, todo, now)
    whole = [pa.concat_tables([one for (one,) in portions(b)] or [b.read([])]) for b in (todo, now)]
    return sorted(whole[0]["item_id"].to_pylist()), whole[1]


def changed(table, name, value, row):
    cells = table[name].to_pylist()
    cells[row] = value
    return with_columns(table, {name: pa.array(cells, table.schema.field(name).type)})


def test_what_did_not_change_is_carried_over_whole(stored, tmp_path):
    todo, now = shared_out(stored, known(stored), tmp_path)
    assert todo == [] and now.sort_by("item_id").equals(known(stored).sort_by("item_id"))


def test_another_question_or_model_and_a_null_are_scored_anew(stored, tmp_path):
    last = known(stored)
    for row, metric in enumerate(METRICS):
        last = changed(last, metric, None, row)
    other = (
        ("content", "another gold answer"),
        ("content", None),
        ("fingerprint", "0" * 16),
        ("fingerprint", None),
    )
    for row, (column, value) in enumerate(other, len(METRICS)):
        last = changed(last, column, value, row)
    todo, now = shared_out(stored, last, tmp_path)
    assert todo == [f"item{row:08d}" for row in range(10)] and now.num_rows == ROWS - 10


def test_a_name_that_came_while_the_night_ran_waits_for_the_next(stored, tmp_path):
    found = questions(stored, {PRINT: {"another": "another"}}, tmp_path)
    assert len(found) == 0


def test_no_night_before_and_no_rows_at_all(stored, tmp_path):
    todo, now = shared_out(stored, nights.NIGHT_ROW.empty_table(), tmp_path)
    assert len(todo) == ROWS and now.num_rows == 0


def test_responses_that_were_written_anew_are_looked_up_again(tmp_path):
    fill(tmp_path, 0, 5)
    store = Store(str(tmp_path))
    then = {"synthetic": {"fingerprint": PRINT, "response_parts": response_parts(store, PRINT)}}
    assert len(response_parts(store, PRINT)) == 1 and untouched(store, then) == {PRINT}
    fill(tmp_path, 5, 9)
    assert untouched(store, then) == {PRINT}, "what came since changes nothing that was there"
    (part,) = then["synthetic"]["response_parts"]
    (tmp_path / "responses" / PRINT / part).unlink()
    fill(tmp_path, 0, 5)
    assert untouched(store, then) == set()
    assert untouched(store, {"synthetic": {"fingerprint": PRINT}}) == set(), "a night that did not record it"
