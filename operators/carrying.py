"""Which stored responses a night must look at, and which rows of the last one still hold: without a Python object per row.

A row of the last night holds where the same scorers would score the same response to the same question: model and question are
in its `fingerprint` and `content`, the response is where it was (`untouched`), and the scorers are checked by the caller. A row
in which anything is missing is looked at again, and the metrics it lacks are computed again, whatever the reason was: a null
is no result, and from a reason nobody can tell that it will stay (weights and servers come back).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.asked import latest
from operators.buckets import Buckets, portions
from operators.frames import with_columns
from operators.schema import ASKED, METRICS
from operators.store import Store

# What tells questions apart and finds them again: not their texts.
LIGHT = ("key", "content", "asked_at", "model", "trial", "benchmark", "item_id")
QUESTION = pa.schema([pa.field("fingerprint", pa.string()), *(ASKED.field(name) for name in LIGHT)])


def questions(store: Store, named: Mapping[str, Mapping[str, str]], folder: Path) -> Buckets:
    """What every model that `names_in_results` names was asked (QUESTION), by item, in a new folder below `folder`.

    A question may stand there more than once, and outdated ones too: `latest` of a bucket leaves the valid ones.
    """
    found = Buckets(folder / "all", QUESTION)
    for fingerprint, names in named.items():
        shelf, known = store.shelf(f"asked/{fingerprint}"), pa.array(list(names), pa.string())
        # A merge in mid-reading only adds repeats.
        shelf.undisturbed(
            lambda shelf=shelf, whose=fingerprint, known=known: _gather(
                shelf.stream(LIGHT), whose, known, found
            )
        )
    return found


def _gather(tables: Iterator[pa.Table], fingerprint: str, names: pa.Array, into: Buckets) -> None:
    for every in tables:
        # A run that writes meanwhile may have brought a name that has none in the results yet.
        table = every.filter(pc.is_in(every["model"], names))
        into.add(with_columns(table, {"fingerprint": pa.repeat(fingerprint, len(table))}))


def carry(
    asked: Buckets, last: Buckets, named: Mapping[str, Mapping[str, str]], todo: Buckets, now: Buckets
) -> None:
    """Share out the valid questions: what the night `last` knows goes to `now` (NIGHT_ROW), the rest to `todo`."""
    for every, rows in portions(asked, last):
        valid, known = latest(every), rows.filter(whole(rows))
        places = pc.index_in(identity(valid), identity(known))
        todo.add(valid.filter(pc.is_null(places)))
        kept = valid.filter(pc.is_valid(places))
        rows = known.take(places.drop_null())
        # A name may stand for another model since, and this one for itself with its fingerprint.
        now.add(with_columns(rows, {"model": names_of(kept, named)}))


def response_parts(store: Store, fingerprint: str) -> list[str]:
    """The parts of the store in which a model's responses lie now, by name."""
    return [path.rsplit("/", 1)[-1] for path in store.shelf(f"responses/{fingerprint}").parts()]


def untouched(store: Store, models: Mapping[str, Mapping[str, Any]]) -> set[str]:
    """The fingerprints among the `models` of a night whose responses lie where they lay then.

    The oldest response to a question is the valid one, so parts that came since change nothing. A part that is gone may
    have been written anew with other responses: what was scored from it must be looked up again.
    """
    found = set()
    for one in models.values():
        then, fingerprint = one.get("response_parts"), one.get("fingerprint")
        if then is not None and set(then) <= set(response_parts(store, fingerprint)):
            found.add(fingerprint)
    return found


def whole(rows: pa.Table) -> np.ndarray:
    """[N] whether every metric of a row of a night has a value."""
    return np.logical_and.reduce([pc.is_valid(rows[name]).to_numpy() for name in METRICS])


def names_of(rows: pa.Table, named: Mapping[str, Mapping[str, str]]) -> pa.Array:
    """The name in results of each row's model."""
    pairs = [(print_, name, shown) for print_, names in named.items() for name, shown in names.items()]
    known = pa.array([f"{print_} {name}" for print_, name, _ in pairs], pa.string())
    asked = pc.binary_join_element_wise(rows["fingerprint"], rows["model"], " ")
    return pa.array([shown for _, _, shown in pairs], pa.string()).take(
        pc.index_in(asked, known).combine_chunks()
    )


def identity(rows: pa.Table) -> pa.Array:
    """[N] which response to which question each row is about."""
    return pc.binary_join_element_wise(rows["fingerprint"], rows["content"], " ").combine_chunks()
