"""What a finished block adds to a shelf, and who writes it: the worker that computed it, a desk beside the driver for a worker
that does not see the store, the driver for what neither could write.

A worker commits a stage's results before it goes on to the next stage or block, so that a driver or a worker that is
killed costs, per worker, one part: that of the stage and block in its hands. It writes only where it sees the mark of the
run in the store, as a folder of the driver's need not be a folder of its node's, nor a bucket's name the same bucket there.

Whoever comes after a worker that died looks first for what that one committed, so that it is not computed, or paid for, twice.
Where that fails, which the run tells, or two runs compute the same, a sampled response may be stored in two versions: the
table of a run holds the one that the store gives to everybody else (Lookup.settle). A write that was reported as failed may
have landed all the same: whoever stores its rows instead looks for them first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
from fsspec.implementations.local import LocalFileSystem

from operators.base import Stage
from operators.frames import with_columns
from operators.store import RUNNING, Shelf, Store, StoreError

LOOKS = 3  # how often a successor tries to look, each time with all the tries that a store makes by itself


@dataclass(frozen=True)
class Commit:
    """Where the results of a stage go. In the blocks of a run, `<stage>.key` and `<stage>.todo` say which rows they are.

    columns: stored columns by the names that they have in a finished block, where these differ. reason: the column in which
    the stage itself names a failed row. before: the parts of the shelf that were there when the run looked into it; none
    holds what the run has to compute.
    """

    stage: str
    shelf: Shelf | FarShelf
    reason: str
    columns: Mapping[str, str]
    before: frozenset[str] = frozenset()

    @property
    def stored(self) -> str:
        """The column that names the part into which the worker has committed a row; null where it could not."""
        return f"{self.stage}.stored"

    @property
    def unseen(self) -> str:
        """The column that is true where a worker died, and its successor could not see what that one had committed."""
        return f"{self.stage}.unseen"

    def reasons(self, block: pa.Table) -> pa.ChunkedArray:
        """[rows] why there is no result; null where there is one."""
        value = block[self.columns.get("value", "response")]
        silent = pc.if_else(pc.is_null(value), "no_value: the stage gave neither a value nor a reason", None)
        return pc.coalesce(block[f"{self.stage}.error"], block[self.reason], silent)

    def entries(self, block: pa.Table) -> pa.Table:
        """The rows of a block, all of them results, as the shelf holds them."""
        names = {"key": f"{self.stage}.key", **self.columns}
        stored = {name: block[names.get(name, name)] for name in self.shelf.schema.names}
        return pa.table(stored).cast(self.shelf.schema)

    def results(self, block: pa.Table) -> pa.Table:
        """The rows of a block in which the stage was to run and has a result."""
        mine = block.filter(block[f"{self.stage}.todo"])
        return mine.filter(pc.is_null(self.reasons(mine)))

    def without_stored(self, table: pa.Table) -> pa.Table:
        """`table` with nothing to do in the rows that are in the shelf by now."""
        todo, keys = table[f"{self.stage}.todo"], table[f"{self.stage}.key"]
        found = self.shelf.find(keys.filter(todo).to_pylist(), self.before)["key"].combine_chunks()
        return with_columns(table, {f"{self.stage}.todo": pc.and_not(todo, pc.is_in(keys, found))})


class Desk:
    """Looks up and commits for workers that do not see the store, where it is seen. Needs no ray: execution.py makes it an actor."""

    def __init__(self, commits: Sequence[Commit], mark: str) -> None:
        self._commits, self._sees = {one.stage: one for one in commits}, sees_store(commits, mark)

    def sees(self) -> bool:
        """Whether it can do anything."""
        return self._sees

    def append(self, stage: str, table: pa.Table) -> str | None:
        """`Shelf.append` on the shelf of `stage`."""
        return self._commits[stage].shelf.append(table)

    def find(self, stage: str, keys: Sequence[str | None], besides: Collection[str]) -> pa.Table:
        """`Shelf.find` on the shelf of `stage`."""
        return self._commits[stage].shelf.find(keys, besides)


@dataclass(frozen=True)
class FarShelf:
    """A shelf of a store that is seen from a desk alone. ask: calls a method of the Desk; raises StoreError where it cannot."""

    ask: Callable[..., Any]
    stage: str
    schema: pa.Schema

    def append(self, table: pa.Table) -> str | None:
        """`Shelf.append`."""
        return self.ask("append", self.stage, table)

    def find(self, keys: Sequence[str | None], besides: Collection[str] = ()) -> pa.Table:
        """`Shelf.find`."""
        return self.ask("find", self.stage, keys, besides)


class Committer:
    """Commits in a worker, as long as it can: what it cannot write is the driver's to write, or to say why not.

    mark: the run's mark in the store. looks: whether this worker is in the place of one that died. ask: calls a method of
    the run's Desk, where it has one.
    """

    def __init__(
        self, commits: Sequence[Commit], mark: str, looks: bool, ask: Callable[..., Any] | None = None
    ) -> None:
        self._commits, self._mark, self._looks = {one.stage: one for one in commits}, mark, looks
        self._ask = ask
        self._sees: bool | None = None
        self._writes, self._unseen = True, False

    def before(self, stage: Stage, table: pa.Table) -> pa.Table:
        """`table` without anything to do for `stage` in the rows that a worker which died had committed."""
        self._unseen = self._looks
        if not (self._looks and stage.name in self._commits and self._sees_store()):
            return table
        for _ in range(LOOKS):
            with suppress(StoreError):
                rest = self._commits[stage.name].without_stored(table)
                self._unseen = False
                return rest
        return table

    def after(self, stage: Stage, table: pa.Table) -> pa.Table:
        """Commit what `stage` did; `<stage>.stored` and `<stage>.unseen` tell the driver."""
        if stage.name not in self._commits:
            return table
        part = self._write(stage.name, table) if self._writes and self._sees_store() else None
        commit = self._commits[stage.name]
        told = {commit.stored: pa.scalar(part, pa.string()), commit.unseen: pa.scalar(self._unseen)}
        return with_columns(table, {name: pa.repeat(one, table.num_rows) for name, one in told.items()})

    def _sees_store(self) -> bool:
        if self._sees is None:
            self._sees = sees_store(list(self._commits.values()), self._mark) or self._sees_from_afar()
        return self._sees

    def _sees_from_afar(self) -> bool:
        with suppress(StoreError):
            if self._ask and self._ask("sees"):
                far = {
                    name: FarShelf(self._ask, name, one.shelf.schema) for name, one in self._commits.items()
                }
                self._commits = {name: replace(one, shelf=far[name]) for name, one in self._commits.items()}
                return True
        return False

    def _write(self, stage: str, table: pa.Table) -> str | None:
        commit = self._commits[stage]
        try:
            return commit.shelf.append(commit.entries(commit.results(table)))
        except StoreError:
            self._writes = False
            return None


@contextmanager
def marked(store: Store) -> Iterator[str]:
    """While a run writes into `store`, a mark of its own there. One that a killed run leaves is waste some time."""
    name = f"{RUNNING}/{uuid4().hex}"
    store.write(name, b"")
    try:
        yield name
    finally:
        with suppress(StoreError):  # who may write may not always delete
            store.remove(name)


def sees_store(commits: Sequence[Commit], mark: str) -> bool:
    """Whether the store of `commits`, which is one, is the one that was marked, seen from here."""
    if not commits:
        return False
    try:
        commits[0].shelf.store.read(mark)
    except (OSError, StoreError):
        return False
    return True


def in_folder(store: Store) -> bool:
    """Whether it lies in a folder, which other nodes may not have, and not in a bucket, which all reach or none."""
    return isinstance(store.filesystem, LocalFileSystem)
