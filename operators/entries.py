"""Rows of one schema by the number under which they came, in memory or on disk: what a run has found and computed so far."""

from __future__ import annotations

import json
import sqlite3

import numpy as np
import pyarrow as pa


class InMemory:
    """Rows as Arrow tables."""

    def __init__(self, schema: pa.Schema) -> None:
        self._tables, self._count = [schema.empty_table()], 0

    def __len__(self) -> int:
        return self._count

    def add(self, table: pa.Table) -> None:
        """Keep these rows under the next numbers."""
        self._tables.append(table)
        self._count += table.num_rows

    def take(self, places: np.ndarray) -> pa.Table:
        """The rows of these numbers in this order, nulls for -1."""
        return pa.concat_tables(self._tables).take(pa.array(places, mask=places < 0))


class OnDisk:
    """Rows in a temporary database of their own that goes with this object: memory holds what is taken, and no more."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema, self._count, self._rows = schema, 0, private_database()
        self._rows.execute("CREATE TABLE entries (place INTEGER PRIMARY KEY, entry)")

    def __len__(self) -> int:
        return self._count

    def add(self, table: pa.Table) -> None:
        """Keep these rows under the next numbers. Cells must be what JSON has."""
        entries = ((self._count + row, json.dumps(entry)) for row, entry in enumerate(table.to_pylist()))
        self._rows.executemany("INSERT INTO entries VALUES (?, ?)", entries)
        self._count += table.num_rows

    def take(self, places: np.ndarray) -> pa.Table:
        """The rows of these numbers in this order, nulls for -1."""
        return pa.Table.from_pylist([self._entry(place) for place in places.tolist()], schema=self._schema)

    def _entry(self, place: int) -> dict:
        if place < 0:
            return {}
        (entry,) = self._rows.execute("SELECT entry FROM entries WHERE place = ?", (place,)).fetchone()
        return json.loads(entry)


def private_database() -> sqlite3.Connection:
    """A database in a private file that SQLite removes; only its page cache (2 MB) is in memory."""
    found = sqlite3.connect("", isolation_level=None)
    found.execute("PRAGMA journal_mode=OFF")
    found.execute("BEGIN")
    return found
