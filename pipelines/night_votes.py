"""The votes of a night: what MUGEN's trials said, read as the last run read it, one row per model, strategy and item.

By rules: by those of today. By an LLM judge: what it decided then, from the store. A night asks no judge, so a response whose
verdict the store lacks does not vote, as in the run where the judge failed; an item that nobody can decide for it waits.

A row of votes has no metrics of a chain of thought: the slots of one response are not what won, and the options are clips. It
says what was chosen, and whether that is right. Votes are read again where a trial, its response, or the reader changed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from operators import nights
from operators.aggregate import finish_rows
from operators.answers import Extraction
from operators.buckets import Buckets, portions
from operators.carrying import identity, untouched
from operators.fingerprint import fingerprint
from operators.frames import with_columns
from operators.mugen import judged
from operators.mugen.kept import VOTE, System, labels_of, latest, of_one_state
from operators.mugen.options import Asked, RuleReader
from operators.mugen.presentation import map_back
from operators.schema import METRICS, PRESENTED
from operators.store import Store
from operators.voting import majority

READER = RuleReader()
NO_METRIC = "not_defined: the options are clips and trials vote"
_LIGHT = (*VOTE, "trial", "key", "content", "asked_at", "state", "response_key", "reader")
_QUESTION = pa.schema([pa.field("fingerprint", pa.string()), *(PRESENTED.field(name) for name in _LIGHT)])

Named = Mapping[str, Mapping[tuple[str, str], System]]


class Ballot(NamedTuple):
    """A trial with its response, and which option that selects; None where a judge left no verdict."""

    row: dict[str, Any]
    found: Extraction | None


class Votes(NamedTuple):
    """How many rows of votes there are, how many of them as in the night before, trials that were read, and votes that wait
    for the response of a trial, or for a judge's verdict on it."""

    rows: int = 0
    carried_over: int = 0
    trials_read: int = 0
    waiting: int = 0


def standing(store: Store, last: nights.Night | None, rows: pa.Table) -> pa.Table:
    """Of some `rows` of the night `last` the votes that hold for as long as their trials are the same."""
    if last is None or last.fingerprint("read") != fingerprint(READER):
        return rows.slice(0, 0)
    kept = untouched(store, dict(enumerate(last.record.get("voted", []))))
    stand = pc.is_in(rows["fingerprint"], pa.array(sorted(kept), pa.string()))
    return rows.filter(pc.and_(stand, pc.equal(rows[f"{METRICS[0]}_reason"], NO_METRIC)))


def votes_of(store: Store, named: Named, known: Buckets, now: Buckets, scratch: Path, at_once: int) -> Votes:
    """Put the votes of all stored trials (NIGHT_ROW) into `now`; those that `known` holds are not read again. Of the others some
    `at_once` trials are in memory with what was said."""
    total = Votes()
    asked = _presented(store, named, scratch)
    for every, stood in portions(asked, known):
        trials = _read_alike(of_one_state(latest(every)), named)
        if not trials.num_rows:
            continue
        votes, vote = _votes(trials, named)
        places = pc.index_in(identity(votes), identity(stood))
        kept = votes.filter(pc.is_valid(places))
        now.add(with_columns(stood.take(places.drop_null()), {"model": kept["model"]}))
        fresh, n_read, n_found = np.flatnonzero(pc.is_null(places)), 0, 0
        for some in _portions(vote, fresh, at_once):
            found = _read(store, trials.take(some), votes, vote[some])
            now.add(found)
            n_read, n_found = n_read + len(some), n_found + len(found)
        counts = (len(kept) + n_found, len(kept), n_read, len(fresh) - n_found)
        total = Votes(*map(sum, zip(total, counts, strict=True)))
    if total.waiting:
        print(
            f"note: {total.waiting} votes wait for responses, or for what a judge reads in them, that the store does not have: "
            "run mugen_eval again to have them counted",
            file=sys.stderr,
        )
    return total


def _portions(vote: np.ndarray, fresh: np.ndarray, at_once: int) -> Iterator[np.ndarray]:
    """The trials of the votes `fresh`, about `at_once` together, those of one vote never apart."""
    mine = np.flatnonzero(np.isin(vote, fresh))
    mine = mine[np.argsort(vote[mine], kind="stable")]
    ends = np.flatnonzero(np.diff(vote[mine], append=-1)) + 1  # where the trials of a vote end
    start = 0
    while start < len(mine):
        end = ends[min(np.searchsorted(ends, start + at_once), len(ends) - 1)]
        yield mine[start:end]
        start = end


def _presented(store: Store, named: Named, scratch: Path) -> Buckets:
    found = Buckets(scratch / "presented", _QUESTION)

    def gather(shelf: Any, whose: str) -> None:
        for table in shelf.stream(_LIGHT):
            known = pa.array([" ".join(system) for system in named[whose]], pa.string())
            system = pc.binary_join_element_wise(table["model"], labels_of(table), " ")
            mine = table.filter(pc.is_in(system, known))
            found.add(with_columns(mine, {"fingerprint": pa.repeat(whose, len(mine))}))

    for whose in named:
        shelf = store.shelf(f"presented/{whose}")
        shelf.undisturbed(lambda shelf=shelf, whose=whose: gather(shelf, whose))
    return found


def _read_alike(trials: pa.Table, named: Named) -> pa.Table:
    """`trials`, all of a system with the reader of its last run, also those that this run did not come to."""
    systems = zip(
        trials["fingerprint"].to_pylist(),
        trials["model"].to_pylist(),
        labels_of(trials).to_pylist(),
        strict=True,
    )
    readers = [named[whose][name, called].reader for whose, name, called in systems]
    return with_columns(trials, {"reader": pa.array(readers, pa.string())})


def _votes(trials: pa.Table, named: Named) -> tuple[pa.Table, np.ndarray]:
    """The votes that `trials` make, and of which of them each trial is: `fingerprint`, `content` (what all its trials are),
    `model` and `benchmark` as results call them."""
    frame = trials.select(["fingerprint", *VOTE]).to_pandas()
    vote = frame.groupby(["fingerprint", *VOTE], dropna=False, sort=False).ngroup().to_numpy()
    # The sum does not depend on the order of the trials, and equal trials have equal hashes in every process.
    hashes = pd.util.hash_array(trials["content"].to_numpy(zero_copy_only=False).astype(object))
    sums = np.zeros(vote.max() + 1, dtype=np.uint64)
    np.add.at(sums, vote, hashes)
    first = trials.take(np.unique(vote, return_index=True)[1])
    labels = labels_of(first)
    systems = zip(*(c.to_pylist() for c in (first["fingerprint"], first["model"], labels)), strict=True)
    cells = {
        "content": pa.array([f"votes {total:016x}" for total in sums.tolist()]),
        "benchmark": labels,
        "model": pa.array([named[whose][name, called].name for whose, name, called in systems], pa.string()),
    }
    return with_columns(first, cells).select(
        ["fingerprint", "content", "model", "benchmark", "item_id"]
    ), vote


def _read(store: Store, trials: pa.Table, votes: pa.Table, vote: np.ndarray) -> pa.Table:
    """NIGHT_ROW of every vote all of whose `trials` have a response, or a reason why there is none, and that readings decide."""
    numbers, said = _whole(store, trials, vote)
    answers: dict[int, list[Ballot]] = {}
    for number, ballot in zip(numbers, map(Ballot, said, _readings(store, said)), strict=True):
        answers.setdefault(number, []).append(ballot)
    about = votes.to_pylist()
    rows = [
        row
        for number, given in sorted(answers.items())
        if all(row["response"] is not None or row["response_error"] for row, _ in given)
        and (row := _row(about[number], given)) is not None
    ]
    absent = {f.name: pa.nulls(len(rows), f.type) for f in nights.NIGHT_ROW}
    absent |= {f"{metric}_reason": pa.repeat(NO_METRIC, len(rows)) for metric in METRICS}
    given = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    cells = {name: pa.array(column, nights.NIGHT_ROW.field(name).type) for name, column in given.items()}
    return finish_rows(pa.table(absent | cells)).select(nights.NIGHT_ROW.names).cast(nights.NIGHT_ROW)


def _whole(store: Store, trials: pa.Table, vote: np.ndarray) -> tuple[list[int], list[dict[str, Any]]]:
    """The trials with their questions and responses, and the vote of each."""
    tables, numbers = [], []
    for whose in pc.unique(trials["fingerprint"]).to_pylist():
        mine = pc.equal(trials["fingerprint"], whose)
        some = trials.filter(mine)
        found = store.shelf(f"presented/{whose}").find(some["key"].to_pylist())
        places = pc.index_in(found["key"], some["key"].combine_chunks())
        said = store.shelf(f"responses/{whose}").find(found["response_key"].to_pylist())
        answers = said["response"].take(pc.index_in(found["response_key"], said["key"].combine_chunks()))
        tables.append(with_columns(found, {"response": answers, "reader": some["reader"].take(places)}))
        numbers.append(vote[mine.to_numpy()][places.to_numpy()])
    if not tables:
        return [], []
    return np.concatenate(numbers).tolist(), pa.concat_tables(tables).to_pylist()


def _readings(store: Store, said: list[dict[str, Any]]) -> list[Extraction | None]:
    """Which option each response selects, to its reader; None where a judge left no verdict."""
    found: list[Extraction | None] = [None] * len(said)
    for reader in {row["reader"] for row in said}:
        mine = [place for place, row in enumerate(said) if row["reader"] == reader]
        asked = [
            Asked(said[place]["question"], len(said[place]["audio_order"]), said[place]["response"])
            for place in mine
        ]
        shelf = store.shelf(f"scores/{judged.READINGS}/{reader}")
        read = READER.read(asked) if reader is None else judged.find(shelf, asked)
        for place, one in zip(mine, read, strict=True):
            found[place] = one
    return found


def _row(about: dict[str, Any], trials: list[Ballot]) -> dict[str, Any] | None:
    """What the trials of one item choose together; None where nobody won and a judge's verdict is lacking."""
    rows, readings = zip(*trials, strict=True)
    places = [found and found.index for found in readings]
    chosen = [map_back(row["audio_order"], place) for row, place in zip(rows, places, strict=True)]
    won = majority(chosen, [row["trial"] for row in rows])
    lost = readings.count(None)
    if lost and won.index is None:
        return None
    silent = all(row["response"] is None for row in rows)
    return {
        **about,
        **{name: rows[0][name] for name in ("category", "gold_index")},
        # Never that of a whole vote: the next night looks whether the verdicts have come.
        "content": f"{about['content']} without {lost} verdicts" if lost else about["content"],
        "trial": 0,
        "answer_index": won.index,
        "answer_index_paper": won.index,  # MUGEN has one way of reading, so both rules' columns show the vote
        "answer_reason": f"no_vote: none of {len(trials)} trials is readable" if won.index is None else None,
        "response_error": rows[0]["response_error"] if silent else None,
    }
