"""What models were asked, kept beside what they said: how stored responses can be scored anew without their benchmark's files.

A row of ASKED is one item as the benchmark held it, for one model and trial, with the key of the response. It is written
before generation, so that a run that was killed leaves no response whose question nobody knows; and again whenever the
item has changed since (a corrected gold answer, another category), and then the last row is valid.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.base import Spec
from operators.fingerprint import digest
from operators.frames import with_columns
from operators.schema import ASKED, STORED_RESPONSE
from operators.store import Shelf, Store
from operators.usage import number

PLACE = ("model", "benchmark", "item_id", "trial")
UNANSWERED = "no_stored_response: a run that stopped did not come to it"
_CONTENT = tuple(name for name in ASKED.names if name not in ("key", "content", "asked_at"))


def digests(asked: pa.Table) -> list[str]:
    """What each row says, as 32 digits: of everything but when it was asked."""
    columns = [asked[name].to_pylist() for name in _CONTENT]
    return [
        digest([[name, _plain(cell)] for name, cell in zip(_CONTENT, row, strict=True)], 32)
        for row in zip(*columns, strict=True)
    ]


def _plain(cell: Any) -> Any:
    return [_plain(one) for one in cell] if isinstance(cell, list) else cell


def keep_asked(store: Store, model: Spec, rows: pa.Table, response_keys: Sequence[str | None]) -> None:
    """Store what is about to be asked; rows that the store already holds, as they are now, are not written again.

    `rows`: items with CLIPS columns, `model` (the name it goes by), `trial` and, where there is one, `response_error`.
    """
    nothing = pa.nulls(rows.num_rows, pa.string())
    given = {name: rows[name] if name in rows.column_names else nothing for name in ASKED.names}
    table = pa.table({**given, "response_key": pa.array(response_keys, pa.string())})
    table = with_columns(table, {"asked_at": pa.nulls(rows.num_rows, ASKED.field("asked_at").type)}).cast(
        ASKED
    )
    contents, shelf = digests(table), store.asked(model)
    now = datetime.now(UTC)
    known = latest(shelf.read([*PLACE, "asked_at", "content"]))["content"]
    new = np.flatnonzero(~np.isin(np.array(contents, dtype=object).astype(str), known.to_numpy().astype(str)))
    fresh = {
        "key": pa.array([digest([content, now.isoformat()], 32) for content in contents], pa.string()),
        "content": pa.array(contents, pa.string()),
        "asked_at": pa.array([now] * rows.num_rows, ASKED.field("asked_at").type),
    }
    shelf.append(with_columns(table, fresh).take(new))


def keep_recorded(store: Store, model: Spec, rows: pa.Table) -> None:
    """Store the responses of a file (`rows`: items with CLIPS and RESPONSE columns) and what they answer."""
    identity = zip(*(rows[name].to_pylist() for name in (*PLACE, "response")), strict=True)
    keys = [None if row[-1] is None else digest(list(row), 32) for row in identity]
    keep_asked(store, model, rows, keys)
    shelf = store.responses(model)
    said = with_columns(rows, {"key": pa.array(keys, pa.string())}).select(STORED_RESPONSE.names)
    said = said.filter(pc.is_valid(said["key"]))
    stored = shelf.find(said["key"].to_pylist())["key"]
    shelf.append(said.filter(pc.invert(pc.is_in(said["key"], stored.combine_chunks()))))


def stored_batches(store: Store, named: Mapping[str, Mapping[str, str]], at_once: int) -> Iterator[pa.Table]:
    """`stored_rows` of all models that `names_in_results` names, small ones together: about `at_once` rows at a time."""
    waiting: list[pa.Table] = []
    for fingerprint, names in named.items():
        for table in stored_rows(store, fingerprint, names, at_once):
            if waiting and sum(map(len, waiting)) + len(table) > at_once:
                yield pa.concat_tables(waiting)
                waiting = []
            waiting.append(table)
    if waiting:
        yield pa.concat_tables(waiting)


def stored_rows(
    store: Store, fingerprint: str, name_of: Mapping[str, str], at_once: int
) -> Iterator[pa.Table]:
    """What a model was asked and said, `at_once` rows at a time: ITEM, CLIPS and RESPONSE columns and `content`.

    `name_of` gives the name in results for each name that the model went by. A row without a response has the reason.
    """
    asked = latest(store.shelf(f"asked/{fingerprint}").read())
    for start in range(0, asked.num_rows, at_once):
        yield with_answers(store, fingerprint, name_of, asked.slice(start, at_once))


def with_answers(store: Store, fingerprint: str, name_of: Mapping[str, str], rows: pa.Table) -> pa.Table:
    """ASKED rows of one model with what it said; the other columns and names as in `stored_rows`."""
    found = store.shelf(f"responses/{fingerprint}").find(rows["response_key"].to_pylist())
    places = pc.index_in(rows["response_key"], found["key"].combine_chunks())
    answers = found.select(["response", "finish_reason", "usage"]).take(places)
    why = pc.coalesce(rows["response_error"], rows["item_error"], rows["audio_error"], pa.scalar(UNANSWERED))
    error = pc.if_else(pc.is_valid(answers["response"]), pa.scalar(None, pa.string()), why)
    model = pa.array([name_of[name] for name in rows["model"].to_pylist()], pa.string())
    used = [number(text, "audio_seconds_used") for text in answers["usage"].to_pylist()]
    whose = {
        "audio_seconds_used": pa.array(used, pa.float64()),
        "model": model,
        "response_error": error,
        "fingerprint": pa.array([fingerprint] * len(rows)),
    }
    return with_columns(rows, {**{name: answers[name] for name in answers.column_names}, **whose})


def names_in_results(store: Store) -> dict[str, dict[str, str]]:
    """{model fingerprint: {the name it goes by: its name in results}}.

    Where one name stands for several models (a changed prompt, other weights), the one asked last keeps it and the others
    are called name@<first digits of the fingerprint>: they are not averaged, and a report can say that the name moved on.
    """
    owners: dict[str, list[tuple[Any, str]]] = {}
    for shelf in store.shelves("asked"):
        for name, asked_at in shelf.undisturbed(lambda shelf=shelf: _last_asked(shelf)).items():
            owners.setdefault(name, []).append((asked_at, shelf.name.rsplit("/", 1)[-1]))
    named: dict[str, dict[str, str]] = {}
    for name, models in owners.items():
        *older, (_, newest) = sorted(models)
        named.setdefault(newest, {})[name] = name
        for _, fingerprint in older:
            named.setdefault(fingerprint, {})[name] = f"{name}@{fingerprint[:8]}"
    return named


def _last_asked(shelf: Shelf) -> dict[str, Any]:
    """{name a model went by: when it was last asked under it}."""
    latest_of: dict[str, Any] = {}
    for table in shelf.stream(["model", "asked_at"]):
        times = table.group_by("model").aggregate([("asked_at", "max")])
        for name, asked_at in zip(times["model"].to_pylist(), times["asked_at_max"].to_pylist(), strict=True):
            latest_of[name] = max(asked_at, latest_of.get(name, asked_at))
    return latest_of


def answered(rows: pa.Table) -> pa.Table:
    """Without the questions that a run did not come to: they say nothing about the model yet."""
    return rows.filter(pc.fill_null(pc.not_equal(rows["response_error"], UNANSWERED), True))


def latest(asked: pa.Table) -> pa.Table:
    """The valid row about every item and trial of every model: the one asked last. A model's name stands for it where
    there is no column `fingerprint`."""
    ordered = asked.sort_by("asked_at")
    whose = [name for name in ("fingerprint", *PLACE) if name in asked.column_names]
    places = ordered.select(whose).to_pandas().duplicated(keep="last").to_numpy()
    return ordered.take(np.flatnonzero(~places))
