"""All stored scores or responses as one table, part by part: a store may be larger than memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from operators.export import inert
from operators.frames import with_columns
from operators.inspection import class_of
from operators.key_index import KeyIndex, first_of_each
from operators.shelf import Shelf
from operators.store import Store

KINDS = ("scores", "responses", "asked", "presented")


def tables(store: Store, kind: str) -> Iterator[pa.Table]:
    """The rows of every shelf of one kind, each key once, with `fingerprint`, `spec` (class) and, for scores, `metric`."""
    for shelf in store.shelves(kind):
        *_, fingerprint = names = shelf.name.split("/")
        origin = {"fingerprint": fingerprint, "spec": class_of(shelf.spec())}
        origin |= {"metric": names[1]} if kind == "scores" else {}
        for table in _by_part(shelf):
            yield with_columns(
                table, {k: pa.array([v] * table.num_rows, pa.string()) for k, v in origin.items()}
            )


def _by_part(shelf: Shelf) -> Iterator[pa.Table]:
    """Each part without the keys of older ones. Raises FileNotFoundError where a merge runs at the same time."""
    seen = np.empty(0, dtype="S32")
    for path, data in shelf.blobs(shelf.parts()):
        table = shelf.load(path, data)
        index = KeyIndex(table["key"])
        fresh = first_of_each(index.rows) & ~np.isin(index.keys, seen)[index.rows]
        seen = np.union1d(seen, index.keys)
        yield table.take(np.flatnonzero(fresh))


def export(store: Store, kind: str, path: Path) -> int:
    """Write them to `path` (.parquet or .csv; lists as JSON text in CSV); the number of rows. The file appears when whole."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        rows = _write(tables(store, kind), unfinished, path.suffix == ".parquet")
        if rows:
            unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)  # of an export that failed
    return rows


def _write(found: Iterator[pa.Table], path: Path, parquet: bool) -> int:
    rows, writer = 0, None
    with ExitStack() as open_files:
        for table in found:
            table = table if parquet else inert(_flat(table))
            if writer is None:
                make = pq.ParquetWriter if parquet else pyarrow.csv.CSVWriter
                writer = open_files.enter_context(make(str(path), table.schema))
            writer.write_table(table)
            rows += table.num_rows
    return rows


def _flat(table: pa.Table) -> pa.Table:
    """Lists as JSON text, since CSV has no lists."""
    flat = {
        field.name: pa.array(
            [None if cell is None else json.dumps(cell) for cell in table[field.name].to_pylist()]
        )
        for field in table.schema
        if pa.types.is_list(field.type)
    }
    return with_columns(table, {name: column.cast(pa.string()) for name, column in flat.items()})
