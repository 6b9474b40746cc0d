"""Tables larger than memory, cut by item into files of a local folder: all rows about an item are read together.

What is said of items (means, what changed) can so be worked out a portion at a time, in memory that does not grow with the
number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

BUCKETS = 64
AT_ONCE = 20_000  # rows of a portion: fewer would cost time, for each portion has a price of its own
_CUT = "cut"  # beside every row in its file: a number of its item, by which a large bucket is cut


class Buckets:
    """Rows of one schema with an `item_id`, in BUCKETS files of `folder` (which must not exist)."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        folder.mkdir(parents=True)
        self.sizes = np.zeros(BUCKETS, dtype=np.int64)
        self._folder, self._schema = folder, schema
        self._writers: dict[int, pa.ipc.RecordBatchStreamWriter] = {}

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def add(self, table: pa.Table) -> None:
        """Keep these rows."""
        table = table.select(self._schema.names).cast(self._schema)
        numbers = numbers_of(table["item_id"])
        homes = (numbers % BUCKETS).astype(np.int64)
        order = np.argsort(homes, kind="stable")
        counts = np.bincount(homes, minlength=BUCKETS)
        cut = pa.array(numbers // BUCKETS, pa.uint64())
        ordered, start = table.append_column(_CUT, cut).take(order), 0
        for bucket in np.flatnonzero(counts):
            self._writer(int(bucket)).write_table(ordered.slice(start, counts[bucket]))
            start += counts[bucket]
        self.sizes += counts

    def read(self, buckets: Sequence[int], cut: int = 0, cuts: int = 1) -> pa.Table:
        """All rows of these buckets, or of those the part `cut` of `cuts`, all rows about an item in one part. Nothing can be
        added after the first reading."""
        self._close()
        paths = [self._path(bucket) for bucket in buckets if self.sizes[bucket]]
        # A batch at a time: of a bucket that is cut for its size only the part is ever in memory.
        batches = [batch for path in paths for batch in _batches(path, cut, cuts)]
        return pa.Table.from_batches(batches, self._schema)

    def _writer(self, bucket: int) -> pa.ipc.RecordBatchStreamWriter:
        if bucket not in self._writers:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            schema = self._schema.append(pa.field(_CUT, pa.uint64()))
            self._writers[bucket] = pa.ipc.new_stream(str(self._path(bucket)), schema, options=options)
        return self._writers[bucket]

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{bucket}.arrows"


def _batches(path: Path, cut: int, cuts: int) -> Iterator[pa.RecordBatch]:
    with pa.OSFile(str(path)) as file:
        for batch in pa.ipc.open_stream(file):
            place, rows = batch.schema.get_field_index(_CUT), batch.drop_columns(_CUT)
            mine = batch.column(place).to_numpy() % cuts == cut
            yield rows if mine.all() else rows.filter(pa.array(mine))


def numbers_of(item_ids: pa.ChunkedArray) -> np.ndarray:
    """[N] a number of 64 bits for every item, the same in every process."""
    names = item_ids.fill_null("").to_numpy(zero_copy_only=False)
    return pd.util.hash_array(names.astype(object))


def portions(
    *tables: Buckets, at_most: int = AT_ONCE, counted: Buckets | None = None
) -> Iterator[tuple[pa.Table, ...]]:
    """All rows of `tables`, some `at_most` together, those about an item never apart; more only where one item has more.

    counted: the table of whose rows these are to be so many, where the others' do not count; buckets without any are left out.
    """
    sizes = counted.sizes if counted is not None else sum(one.sizes for one in tables)
    for buckets in groups(sizes, at_most):
        cuts = math.ceil(sizes[buckets].sum() / at_most)
        for cut in range(cuts):
            found = tuple(one.read(buckets, cut, cuts) for one in tables)
            if any(map(len, found)):
                yield found


def groups(sizes: np.ndarray, at_most: int) -> Iterator[list[int]]:
    """The buckets that hold anything, in order, as many together as have no more than `at_most` rows, or one that has more."""
    group: list[int] = []
    for bucket in np.flatnonzero(sizes).tolist():
        if group and sizes[[*group, bucket]].sum() > at_most:
            yield group
            group = []
        group.append(bucket)
    if group:
        yield group
