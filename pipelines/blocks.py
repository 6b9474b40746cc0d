"""Into which blocks a table is cut for its workers, and how a block travels. Needs no ray."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from operators.frames import codes
from operators.spool import from_bytes, to_bytes


def block_rows(rows: int, most: int, actors: int) -> int:
    """Rows per block: at most `most`, and small enough for a dozen blocks per actor (a bar that moves, even work),
    but not under eight: a block costs some 50 ms."""
    return max(1, min(most, max(8, -(-rows // (12 * actors)))))


def cut(table: pa.Table, rows: int, whole: str | None) -> Iterator[pa.Table]:
    """Slices of `rows` rows (the last may be shorter), longer where equal neighbours in the column `whole` are in one."""
    values = codes(table[whole]) if whole else np.arange(table.num_rows)
    start = 0
    ends = (np.flatnonzero(np.diff(values)) + 1).tolist()
    for end in [*ends, table.num_rows] if table.num_rows else []:
        if end == table.num_rows or end - start >= rows:
            yield table.slice(start, end - start)
            start = end


def pack(block: pa.Table) -> pa.Table:
    """One row that holds a block, compressed: texts and locators that rows repeat cost next to nothing on their way, and in
    the memory of whoever holds many blocks. Nobody who sees one row can part it, or join it to another."""
    return pa.table({"block": pa.array([to_bytes(block)], pa.large_binary())})


def unpack(packed: pa.Table) -> Iterator[pa.Table]:
    """The block that each row holds."""
    for row in packed["block"]:
        yield from_bytes(row.as_buffer())
