"""Find or compute: the store first, then Ray Data for what it lacks, each key once.

Successes are stored block by block, by the worker that has them (pipelines/commit.py) or, where it cannot, by the driver as
they arrive. Failures are not stored: they become reasons in this run and are tried again by the next.

A part is what one block adds to one shelf, and no row of a committed part is computed again. A driver, worker or node that is
killed therefore costs one part per worker, the one in its hands. Where neither a worker nor a desk beside the driver can write
(pipelines/commit.py), so that the driver does, a killed driver also costs blocks that had not arrived.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.base import Stage
from operators.chat_api import SPENT
from operators.entries import InMemory, OnDisk
from operators.fingerprint import row_keys
from operators.frames import codes, to_batch, with_columns
from operators.key_index import KeyIndex, first_of_each
from operators.spool import Spool, parts
from operators.store import Shelf
from operators.usage import together, totals
from pipelines.commit import Commit, marked
from pipelines.execution import run

PORTION = 4096  # rows that are Python objects at one time


@dataclass
class Tally:
    """What one stage did, summed over its actors. `seconds`: time inside it, without loading weights.

    `usage`: tokens, sound and money that the rows computed now took, failed ones included (operators.usage).
    `left_out`: rows not asked because a spend limit was reached: no failures of the model, so `failed` holds none of them.
    `unseen`: rows computed after a worker died, by one that could not see whether that one had stored them: perhaps twice.
    `encoded`: how many clips, texts, pairs ... its models were given; no more than there are distinct ones.
    """

    rows: int = 0
    unusable: int = 0
    from_store: int = 0
    computed: int = 0
    failed: int = 0
    seconds: float = 0.0
    usage: dict[str, float] = field(default_factory=dict)
    encoded: dict[str, int] = field(default_factory=dict)
    left_out: int = 0
    unseen: int = 0

    def __add__(self, other: Tally) -> Tally:
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Tally(*(together(a, b) if isinstance(a, dict) else a + b for a, b in pairs))

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "rows_per_second": self.computed / self.seconds if self.seconds else None}

    @property
    def usable(self) -> int:
        """Rows that could be tried, for their clips and for the money."""
        return self.rows - self.unusable - self.left_out

    @property
    def failure_rate(self) -> float:
        """Failed rows among those that could be tried."""
        return self.failed / self.usable if self.usable else 0.0


class Lookup:
    """One stage's results by key, for the rows of a table.

    `blocked` says per row why it cannot be tried (None: it can). `columns` maps stored columns to the columns of a
    finished block, where the names differ; `reason` is the column in which the stage itself names a failed row. `entries`:
    where what is found and computed lies until it is asked for, OnDisk for more text than memory should hold.
    """

    def __init__(
        self,
        stage: Stage,
        shelf: Shelf,
        rows: pa.Table | Spool,
        blocked: Sequence[str | None],
        reason: str,
        columns: dict[str, str] | None = None,
        entries: type[InMemory | OnDisk] = InMemory,
    ) -> None:
        # Listed before they are read: a part that comes meanwhile is not among them, whether it is read or not.
        before = frozenset(shelf.parts())
        self.stage, self.commit = stage, Commit(stage.name, shelf, reason, columns or {}, before)
        self._blocked = list(blocked)
        self._keys = self._row_keys(rows)
        self._index = KeyIndex(self._keys)
        # Where the entry of each distinct key stands among all entries found and computed; -1: there is none.
        self._entries = entries(shelf.schema)
        self._place = np.full(len(self._index), -1, dtype=np.int64)
        shelf.find_each(self._index, self._keep)
        self._stored = self._place >= 0
        self._failures: dict[str, str] = {}
        self._own: set[str] = set()  # parts of this run that it knows of
        self.n_stored_here = 0  # rows that their workers could not store
        self.n_unseen = (
            0  # rows that a worker in the place of one that died computed without a look into the store
        )
        self._seconds, self._usage, self._encoded = 0.0, {}, {}

    def _row_keys(self, rows: pa.Table | Spool) -> pa.ChunkedArray:
        keys = []
        for part, table in parts(rows):
            read, blocked = table.select(self.stage.spec.reads), self._blocked[part]
            for start in range(0, read.num_rows, PORTION):
                usable = [reason is None for reason in blocked[start : start + PORTION]]
                some = read.slice(start, PORTION).filter(usable)
                found = iter(row_keys(self.stage.spec, to_batch(some)))
                keys.append(pa.array([next(found) if one else None for one in usable], pa.string()))
        return pa.chunked_array(keys, pa.string())

    def _keep(self, entries: pa.Table) -> None:
        self._place[self._index.places(entries["key"])] = len(self._entries) + np.arange(entries.num_rows)
        self._entries.add(entries)

    def _known(self) -> np.ndarray:
        """[rows] where the entry of each row stands, -1 where there is none."""
        return np.append(self._place, -1)[self._index.rows]

    @property
    def keys(self) -> pa.ChunkedArray:
        """[rows] under which key each row is stored; null for a row that cannot be tried."""
        return self._keys

    def todo(self) -> np.ndarray:
        """[rows] true for the first row of every key that is not yet known."""
        return first_of_each(self._index.rows) & (self._known() < 0)

    def mark(self, rows: pa.Table, todo: np.ndarray, part: slice = slice(None)) -> pa.Table:
        """`rows`, all that it was made of or a part of them, with this stage's key and `todo` (of all rows) as columns."""
        name = self.stage.name
        marks = {f"{name}.todo": pa.array(todo[part], pa.bool_()), f"{name}.key": self._keys[part]}
        return with_columns(rows, marks)

    def take(self, block: pa.Table) -> None:
        """Keep a finished block: successes that its worker could not store go into the store, failures are remembered."""
        name, mine = self.stage.name, block.filter(block[f"{self.stage.name}.todo"])
        why = self.commit.reasons(mine)
        for key, reason in zip(mine[f"{name}.key"].to_pylist(), why.to_pylist(), strict=True):
            if reason is not None:
                self._failures[key] = reason
        good = mine.filter(pc.is_null(why))
        self._keep(self.commit.entries(good))
        if self.commit.stored in good.column_names:
            self._own |= set(good[self.commit.stored].drop_null().to_pylist())
            good = good.filter(pc.is_null(good[self.commit.stored]))
            self.n_stored_here += good.num_rows
            good = self._not_landed(good)
            self.n_unseen += pc.sum(mine[self.commit.unseen]).as_py() or 0
        if part := self.commit.shelf.append(self.commit.entries(good)):
            self._own.add(part)
        self._seconds += pc.sum(mine[f"{name}.seconds"]).as_py() or 0.0
        self._encoded = together(self._encoded, encoded(block, name))
        if "usage" in mine.column_names:
            self._usage = together(self._usage, totals(mine["usage"].to_pylist()))

    def _not_landed(self, good: pa.Table) -> pa.Table:
        """Of results that their worker could not store, as far as it knows, those that the store really lacks."""
        others = set(self.commit.shelf.parts()) - self.commit.before - self._own if good.num_rows else ()
        if not others:
            return good
        keys = good[f"{self.stage.name}.key"]
        landed = self.commit.shelf.find(keys.to_pylist(), self.commit.before | self._own)["key"]
        return good.filter(pc.invert(pc.is_in(keys, landed.combine_chunks())))

    def settle(self) -> None:
        """Where others wrote too, take what the store holds: what a worker committed and died before it could hand it over,
        and of a key that is stored twice the entry that everybody else is given."""
        ours = [key.decode() for key in self._index.keys[~self._stored]]
        if not ours or not set(self.commit.shelf.parts()) - self.commit.before - self._own:
            return
        found = self.commit.shelf.find(ours, self.commit.before)
        places = self._index.places(found["key"])
        late = self._place[places] < 0
        self._keep(found)
        # Found, as far as this process knows: nobody told how long computing it took.
        self._stored[places[late]] = True
        if "usage" in found.column_names:
            self._usage = together(self._usage, totals(found["usage"].filter(pa.array(late)).to_pylist()))
        for key in found["key"].to_pylist():
            self._failures.pop(key, None)

    def results(self, rows: slice = slice(None)) -> tuple[pa.Table, pa.Array]:
        """Per row, or per row of a part, the stored entry (nulls where there is none) and, there, the reason."""
        return self._entries.take(self._known()[rows]), self.reasons(rows)

    def reasons(self, rows: slice = slice(None)) -> pa.Array:
        """Per row why it has no entry; null where it has one."""
        places, blocked, keys = self._known()[rows], self._blocked[rows], self._keys[rows]
        reasons: list[str | None] = [None] * len(places)
        for row in np.flatnonzero(places < 0).tolist():
            known = blocked[row] or self._failures.get(keys[row].as_py())
            reasons[row] = known or "not_computed: the run ended before this row"
        return pa.array(reasons, pa.string())

    def tally(self) -> Tally:
        usable, rows = self._index.rows >= 0, len(self._index.rows)
        unpaid = [key for key, reason in self._failures.items() if reason.startswith(SPENT)]
        left_out = int(pc.sum(pc.is_in(self._keys, pa.array(unpaid, pa.string()))).as_py() or 0)
        computed = int((self._place >= 0).sum() - self._stored.sum()) + len(self._failures) - len(unpaid)
        stored = int(np.append(self._stored, False)[self._index.rows].sum())
        failed = int((usable & (self._known() < 0)).sum()) - left_out
        took = (self._seconds, self._usage, self._encoded)
        found = (stored, computed, failed)
        return Tally(rows, rows - int(usable.sum()), *found, *took, left_out, self.n_unseen)


def encoded(block: pa.Table, stage: str) -> dict[str, int]:
    """What a stage encoded for the rows of a finished block, by kind."""
    reports = block[f"{stage}.encoded"].drop_null().to_pylist()
    return reduce(together, map(json.loads, reports), {})


def find_or_compute(
    lookups: list[Lookup],
    rows: pa.Table | Spool,
    title: str,
    carry: Sequence[str] = (),
    whole: str | None = None,
) -> None:
    """Compute on Ray Data what the `lookups` do not know; `carry` names columns that their shelves also store.

    whole: a column of `carry` whose equal rows one actor meets, one after the other (execution.run); of a spool, those of
    one portion.
    """
    _compute(lookups, _pending(lookups, rows, carry, whole), title, whole)


def find_or_compute_apart(
    asked: Sequence[tuple[Lookup, pa.Table]], title: str, carry: Sequence[str], whole: str
) -> None:
    """`find_or_compute` in one job for lookups that each have rows of their own, those of one after those of another."""
    pending = pa.concat_tables(
        (_pending([lookup], rows, carry, whole) for lookup, rows in asked), promote_options="default"
    )
    for lookup, _ in asked:
        mark = f"{lookup.stage.name}.todo"
        pending = with_columns(pending, {mark: pc.fill_null(pending[mark], False)})
    _compute([lookup for lookup, _ in asked], pending, title, whole)


def _pending(
    lookups: Sequence[Lookup], rows: pa.Table | Spool, carry: Sequence[str], whole: str | None
) -> pa.Table | Spool:
    """The rows in which one of the `lookups` has something to do, in the order in which they are computed."""
    todos = [lookup.todo() for lookup in lookups]
    wanted = np.logical_or.reduce(todos)
    columns = sorted({name for lookup in lookups for name in lookup.stage.spec.reads} | set(carry))

    def of(table: pa.Table, part: slice) -> pa.Table:
        table = table.select(columns)
        for lookup, todo in zip(lookups, todos, strict=True):
            table = lookup.mark(table, todo, part)
        return by_clips(table if wanted[part].all() else table.take(np.flatnonzero(wanted[part])), whole)

    if isinstance(rows, pa.Table):
        return of(rows, slice(None))
    pending = Spool()
    for part, table in parts(rows):
        pending.add(of(table, part))
    return pending


def _compute(lookups: Sequence[Lookup], pending: pa.Table | Spool, title: str, whole: str | None) -> None:
    if pending.num_rows == 0:
        return
    commits = [lookup.commit for lookup in lookups]
    with marked(commits[0].shelf.store) as mark:
        for block in run([lookup.stage for lookup in lookups], pending, title, whole, commits, mark):
            for lookup in lookups:
                lookup.take(block)
    for lookup in lookups:
        lookup.settle()
    tell_who_stored(lookups)


def tell_who_stored(lookups: Sequence[Lookup]) -> None:
    """Say where workers could not write into the store: a run that is killed then loses more than it would."""
    if rows := sum(lookup.n_stored_here for lookup in lookups):
        names = ", ".join(lookup.stage.name for lookup in lookups if lookup.n_stored_here)
        print(
            f"note: {names}: {rows} results were stored by the driver, as their workers do not see the store or cannot write "
            "to it; put it on S3 or on a folder that all nodes share",
            file=sys.stderr,
        )
    for lookup in lookups:
        if lookup.n_unseen:
            print(
                f"note: {lookup.stage.name}: a worker died, and the one in its place could not look into the store: "
                f"{lookup.n_unseen} rows were computed that may have been stored already, and then the older ones count",
                file=sys.stderr,
            )


def by_clips(table: pa.Table, whole: str | None = None) -> pa.Table:
    """Rows of the same clips, in whatever order, next to each other, so that mostly one actor meets them.

    whole: a column whose equal rows stay next to each other, also where their clips differ (an item with more or fewer
    candidates); among them those that ask the same in the same words do, so that a prompt's common beginning is met in
    a row. Where no stage hears clips the table stays as it is.
    """
    if "audio_hashes" not in table.column_names:
        return table
    units = codes(table[whole]) if whole else np.arange(table.num_rows)
    _, first, unit = np.unique(units, return_index=True, return_inverse=True)
    clips = pa.array(_clips(table.take(first)), pa.string())
    asked = [codes(table["question"])] if "question" in table.column_names else []
    order = np.lexsort([*asked, unit, pc.rank(clips, tiebreaker="dense").to_numpy()[unit]])
    return table if (np.diff(order) == 1).all() else table.take(order)


def _clips(table: pa.Table) -> Iterator[str]:
    for some in table.select(["audio_hashes"]).to_batches(PORTION):
        for hashes in some["audio_hashes"].to_pylist():
            yield "".join(sorted(name or "" for name in hashes or ()))
