"""The parts of one fingerprint in a store: find rows by key, append parts, merge many parts into few.

Readers and writers need no lock. A part never changes; a merge commits the merged part before it removes its sources, and
a reader that misses a part lists the folder anew. Whoever reads sees every key once, the oldest entry of it.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from fsspec.implementations.local import LocalFileSystem

from operators import parts
from operators.base import Spec
from operators.fingerprint import canonical, fingerprint
from operators.key_index import KeyIndex, first_of_each
from operators.remote import failures

if TYPE_CHECKING:
    from operators.store import Store

T = TypeVar("T")
DAMAGED = "damaged-"
TRIES = 20  # how often a reader lists anew that a merge overtakes
AT_ONCE = 32  # parts fetched together from an object store
MERGED_BYTES = 64 << 20  # a part of this size is left alone by a merge


class DamagedPart(UserWarning):
    """A Parquet part that cannot be read; its rows are computed again."""


class Shelf:
    """The parts of one fingerprint. A reader sees every key once, whatever crashed while it was written."""

    def __init__(self, store: Store, name: str, schema: pa.Schema, spec: Spec | None = None) -> None:
        self.store, self.name, self.schema, self._spec = store, name, schema, spec
        self._folder = store.place(name)

    def parts(self) -> list[str]:
        """Paths of the committed parts, oldest first."""
        return sorted(entry["name"] for entry in self.files() if parts.is_part(_last(entry["name"])))

    def files(self) -> list[dict]:
        """Everything in the shelf's folder, as fsspec describes it."""
        return self.store.entries(self.name)

    def spec(self) -> dict | None:
        """What spec.json says: `fingerprint` and `spec`; None where it is absent or unreadable."""
        return self.store.read_json(f"{self.name}/spec.json")

    def find(self, keys: Sequence[str | None], besides: Collection[str] = ()) -> pa.Table:
        """The stored rows among `keys`, one per key (the oldest wins), in no particular order.

        besides: paths of parts that need not be read, as none of the keys is in them.
        """
        wanted = KeyIndex(keys)
        found = self.undisturbed(lambda: list(self._find(wanted, besides)))
        return pa.concat_tables([self.schema.empty_table(), *found])

    def find_each(self, wanted: KeyIndex, keep: Callable[[pa.Table], None]) -> None:
        """Give `keep` the rows of `find`, those of one part at a time. A merge meanwhile may bring some of them again."""

        def search() -> None:
            for table in self._find(wanted):
                keep(table)

        self.undisturbed(search)

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows, one per key (the oldest wins), oldest first; `columns` of them, and the key."""
        wanted = list(dict.fromkeys(["key", *(columns or self.schema.names)]))
        return self.undisturbed(lambda: distinct(self._all(wanted)))

    def stream(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """All rows, a row group at a time, oldest part first; a key may come again, as it does in two parts.

        Raises FileNotFoundError where a merge removes a part meanwhile: begin again (`undisturbed`).
        """
        for path, data in self.blobs(self.parts()):
            with self._setting_aside(path):
                file = parts.opened(data, _last(path))
                for group in range(file.num_row_groups):
                    yield parts.read(file, self.schema, list(columns), [group])

    def append(self, table: pa.Table) -> str | None:
        """Commit `table` as one part, and its path; None where there are no rows. Rows with a null in a required column are
        a fault of the caller."""
        if table.num_rows == 0:
            return None
        for name in parts.REQUIRED & set(self.schema.names):
            if count := table.column(name).null_count:
                raise ValueError(f"{self.name}: failures are not stored, but {count} rows have no {name}")
        self._describe()
        return self.commit(table.select(self.schema.names).cast(self.schema), parts.now())

    def commit(self, table: pa.Table, stamp: str) -> str:
        """Let a part with these rows appear; its path."""
        data = parts.encode(table)
        name = parts.name_for(data, stamp)
        self.store.write(f"{self.name}/{name}", data)
        return f"{self._folder}/{name}"

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files of this shelf; one that is gone already is no error."""
        for path in paths:
            self.store.remove(f"{self.name}/{_last(path)}")

    def blobs(self, paths: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """(path, bytes) of each file, in order. Raises FileNotFoundError where a merge has removed one."""
        files = self.store.filesystem
        at_once = 1 if isinstance(files, LocalFileSystem) else AT_ONCE
        for start in range(0, len(paths), at_once):
            some = list(paths[start : start + at_once])
            with self.store.reaching(self.name):
                found = files.cat(some) if len(some) > 1 else {some[0]: files.cat_file(some[0])}
            yield from ((path, found[path]) for path in some)

    def load(
        self, path: str, data: bytes, wanted: KeyIndex | None = None, columns: list[str] | None = None
    ) -> pa.Table:
        """The rows of one part, of a `wanted` key if that is given. A damaged part is set aside by name, and empty."""
        with self._setting_aside(path):
            file = parts.opened(data, _last(path))
            if wanted is None:
                return parts.read(file, self.schema, columns)
            keys = parts.read(file, self.schema, ["key"])["key"]
            rows = np.flatnonzero(wanted.places(keys) >= 0)
            return parts.read_rows(file, self.schema, rows) if len(rows) else self.schema.empty_table()
        return self.schema.empty_table().select(columns or self.schema.names)

    @contextmanager
    def _setting_aside(self, path: str) -> Iterator[None]:
        """Around whatever decodes a part: one that is damaged is set aside, one of another schema ignored."""
        try:
            yield
        except parts.Damaged as error:
            self._set_aside(path, str(error))
        except parts.OtherSchema as error:
            warnings.warn(f"ignored part {path}: {error}", DamagedPart, stacklevel=2)

    def _find(self, wanted: KeyIndex, besides: Collection[str] = ()) -> Iterator[pa.Table]:
        missing = np.ones(len(wanted), dtype=bool)
        if not len(wanted):
            return
        for path, data in self.blobs([path for path in self.parts() if path not in besides]):
            table = self.load(path, data, wanted)
            places = wanted.places(table["key"])
            rows = np.flatnonzero(missing[places] & first_of_each(places))
            missing[places[rows]] = False
            yield table.take(rows)
            if not missing.any():
                return

    def _all(self, columns: list[str]) -> pa.Table:
        loaded = [self.load(path, data, columns=columns) for path, data in self.blobs(self.parts())]
        return pa.concat_tables([self.schema.empty_table().select(columns), *loaded])

    def undisturbed(self, reading: Callable[[], T]) -> T:
        """`reading()`, begun anew whenever a merge removes a part that was listed."""
        for left in reversed(range(TRIES)):
            try:
                return reading()
            except FileNotFoundError:
                if not left:
                    raise
        raise AssertionError("not reached")

    def _set_aside(self, path: str, why: str) -> None:
        """Rename a damaged part, so that it is read once more by a person and never again by a run."""
        aside = f"{self._folder}/{DAMAGED}{_last(path)}"
        try:
            self.store.filesystem.mv(path, aside)
            told = f"set aside as {DAMAGED}{_last(path)}"
        except FileNotFoundError:
            told = "set aside by another run"
        except failures():
            told = "left where it is: the store is read-only"
        warnings.warn(
            f"damaged part {path}: {why}; {told}, its rows count as missing", DamagedPart, stacklevel=2
        )

    def _describe(self) -> None:
        if self._spec is None:
            raise ValueError(f"{self.name} was opened to be read")
        name = f"{self.name}/spec.json"
        if self.spec() is None:
            body = {"fingerprint": fingerprint(self._spec), "spec": canonical(self._spec)}
            self.store.write(name, json.dumps(body, indent=1).encode())


def distinct(table: pa.Table) -> pa.Table:
    """The first row of every key."""
    index = KeyIndex(table["key"])
    return table.take(np.flatnonzero(first_of_each(index.rows)))


def _last(path: str) -> str:
    return path.rsplit("/", 1)[-1]
