"""What a model was asked in every trial, kept in the store beside what it said: how votes can be taken anew without a benchmark.

A row of PRESENTED is one trial of one strategy. Whatever the number of runs, of several rows about a trial the one written
last is valid; and of an item's trials under a strategy those count that are about the state of the item, the prompt and the
seed of the one written last, so that trials of an item which the benchmark corrected since take no part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from operators.base import Spec
from operators.chat_api import SPENT
from operators.fingerprint import digest
from operators.key_index import KeyIndex
from operators.mugen.presentation import Strategy, generation_set
from operators.prompts import Prompt
from operators.schema import PRESENTED
from operators.store import Shelf, Store

VOTE = ("model", "benchmark", "strategy", "n_candidates", "item_id")  # one answer of one model
PER_PART = 4096  # rows of a part of the store, at least
_OF_STATE = ("audio_hashes", "prompt", "permuted", "voting")  # of a trial's row, beside what is kept as it is
_CONTENT = tuple(name for name in PRESENTED.names if name not in ("key", "content", "asked_at"))


class Presenting(NamedTuple):
    """What the rows of a run do not say of themselves. questions: as the benchmark asks them, by item id. reader: the
    fingerprint of the judge that reads the options; None: rules do."""

    strategies: Mapping[str, Strategy]
    separate_voting: bool
    seed: int
    questions: Mapping[str, str]
    reader: str | None = None


def keep_presented(store: Store, model: Spec, rows: Iterable[pa.Table], how: Presenting) -> None:
    """Store what `model` was asked; what the store holds as it is now is not written again.

    rows: tables of some hundred rows, TRIAL_ROW with `model` and per row why there is no response (`response_error`) and under
    which key it is stored (`response_key`). A trial that a spend limit left out waits.
    """
    shelf, fresh = store.presented(model), [PRESENTED.empty_table()]
    known = KeyIndex(latest(shelf.read(["content", "asked_at", *VOTE, "trial"]))["content"])
    now = datetime.now(UTC)
    for table in rows:
        found = _kept(table, how, now)
        fresh.append(found.take(np.flatnonzero(known.places(found["content"]) < 0)))
        if sum(some.num_rows for some in fresh) >= PER_PART:
            shelf.append(pa.concat_tables(fresh))
            del fresh[1:]
    shelf.append(pa.concat_tables(fresh))


def _kept(rows: pa.Table, how: Presenting, now: datetime) -> pa.Table:
    asked = list(_asked(rows, how))
    for row in asked:
        # A reader is part of it where there is one: what was kept before readers were is as it was.
        told = [name for name in _CONTENT if name != "reader" or row[name] is not None]
        row["content"] = digest([[name, row[name]] for name in told], 32)
        row |= {"asked_at": now, "key": digest([row["content"], now.isoformat()], 32)}
    return pa.Table.from_pylist(asked, schema=PRESENTED)


def _asked(rows: pa.Table, how: Presenting) -> Iterator[dict[str, Any]]:
    """Every trial once for each strategy that draws on it."""
    drawn = {name: generation_set(one, how.separate_voting) for name, one in how.strategies.items()}
    prompts = {one.prompt: Prompt(one.prompt).sha256 for one in drawn.values()}
    states: dict[tuple, str] = {}
    told = [name for name in rows.column_names if name in PRESENTED.names or name in _OF_STATE]
    for row in rows.select(told).to_pylist():
        about, hashes = (row["prompt"], row["permuted"], row["voting"]), row.pop("audio_hashes")
        question = how.questions[row["item_id"]]
        item = (row["item_id"], row["n_candidates"], *about)
        if item not in states:
            parts = [
                question,
                row["gold_index"],
                row["category"],
                sorted(hashes),
                prompts[about[0]],
                about[1],
                how.seed,
            ]
            states[item] = digest(parts, 16)
        given = {name: row[name] for name in PRESENTED.names if name in row}
        if (given["response_error"] or "").startswith(SPENT):
            given["response_error"] = None
        for name, strategy in how.strategies.items():
            if drawn[name] == about and (strategy.vote or row["trial"] == 0):
                yield {
                    **given,
                    "strategy": name,
                    "state": states[item],
                    "question": question,
                    "reader": how.reader,
                }


def latest(rows: pa.Table) -> pa.Table:
    """The valid row of every trial of every strategy, oldest first. A model's name stands for it where there is no column
    `fingerprint`."""
    ordered = rows.sort_by("asked_at")
    whose = [name for name in ("fingerprint", *VOTE, "trial") if name in ordered.column_names]
    return ordered.take(np.flatnonzero(~ordered.select(whose).to_pandas().duplicated(keep="last").to_numpy()))


def of_one_state(rows: pa.Table) -> pa.Table:
    """Of `latest` rows those about the newest state of their item."""
    frame = rows.select(["fingerprint", *VOTE, "state"]).to_pandas()
    newest = frame.groupby(["fingerprint", *VOTE], dropna=False)["state"].transform("last")
    return rows.take(np.flatnonzero((frame["state"] == newest).to_numpy()))


class System(NamedTuple):
    """What results call a model under a `label`, and which judge read what it said last (None: rules)."""

    name: str
    reader: str | None


def systems(store: Store) -> dict[str, dict[tuple[str, str], System]]:
    """{model fingerprint: {(name, `label`): System}}: of several models of one name and label the one asked last keeps
    the name, and the others are called name@<first digits of the fingerprint>."""
    owners: dict[tuple[str, str], list[tuple[Any, str, str | None]]] = {}
    for shelf in store.shelves("presented"):
        whose = shelf.name.rsplit("/", 1)[-1]
        for system, (asked_at, reader) in shelf.undisturbed(lambda shelf=shelf: _last_asked(shelf)).items():
            owners.setdefault(system, []).append((asked_at, whose, reader))
    named: dict[str, dict[tuple[str, str], System]] = {}
    for system, models in owners.items():
        *older, newest = sorted(models, key=lambda model: model[:2])
        for _, whose, reader in older:
            named.setdefault(whose, {})[system] = System(f"{system[0]}@{whose[:8]}", reader)
        _, whose, reader = newest
        named.setdefault(whose, {})[system] = System(system[0], reader)
    return named


def _last_asked(shelf: Shelf) -> dict[tuple[str, str], tuple[Any, str | None]]:
    found: dict[tuple[str, str], tuple[Any, str | None]] = {}
    parts = ["model", "benchmark", "strategy", "n_candidates", "reader"]
    for table in shelf.stream([*parts, "asked_at"]):
        for row in table.group_by(parts).aggregate([("asked_at", "max")]).to_pylist():
            system = (row["model"], label(row["benchmark"], row["strategy"], row["n_candidates"]))
            if system not in found or row["asked_at_max"] >= found[system][0]:
                found[system] = (row["asked_at_max"], row["reader"])
    return found


def label(benchmark: str, strategy: str, n_candidates: int | None) -> str:
    """What the votes of a strategy are called where results stand by benchmark."""
    return f"{benchmark} ({strategy}{'' if n_candidates is None else f', {n_candidates} candidates'})"


def labels_of(rows: pa.Table) -> pa.ChunkedArray:
    """[N] the `label` of each row."""
    few = rows.select(["benchmark", "strategy", "n_candidates"]).to_pandas()
    kinds = few.drop_duplicates()
    names = [
        label(
            one.benchmark,
            one.strategy,
            None if one.n_candidates != one.n_candidates else int(one.n_candidates),
        )
        for one in kinds.itertuples()
    ]
    joined = few.merge(kinds.assign(label=names), how="left", on=list(few.columns))
    return pa.chunked_array([pa.array(joined["label"], pa.string())])
