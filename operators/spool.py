"""A table on disk, read from its beginning as often as it is wanted: memory holds one portion of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from tempfile import TemporaryFile

import pyarrow as pa


class Spool:
    """Tables in the order in which they came, compressed in a private file that goes with this object."""

    def __init__(self) -> None:
        self.num_rows = 0
        self._file = TemporaryFile()  # noqa: SIM115 - closed, and gone, with this object
        self._spans: list[tuple[int, int]] = []

    def add(self, table: pa.Table) -> None:
        """Keep these rows as a portion of their own; none are kept for an empty table."""
        if not table.num_rows:
            return
        data = to_bytes(table)
        self._spans.append((self._file.seek(0, 2), len(data)))
        self._file.write(data)
        self.num_rows += table.num_rows

    def __iter__(self) -> Iterator[pa.Table]:
        for start, length in self._spans:
            self._file.seek(start)
            yield from_bytes(self._file.read(length))


def portions(rows: pa.Table | Spool) -> Iterable[pa.Table]:
    """The tables that `rows` consists of, a table of itself alone."""
    return rows if isinstance(rows, Spool) else [rows]


def parts(rows: pa.Table | Spool) -> Iterator[tuple[slice, pa.Table]]:
    """Each of the `portions` with the place of its rows among all."""
    start = 0
    for table in portions(rows):
        yield slice(start, start + table.num_rows), table
        start += table.num_rows


def to_bytes(table: pa.Table) -> bytes:
    """A table as a compressed Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_bytes(data: bytes | pa.Buffer) -> pa.Table:
    """The table of `to_bytes`."""
    return pa.ipc.open_stream(data).read_all()
