"""Tables larger than memory, cut by item into files of a local folder: all rows about an item are read together.

What is said of items (means, what changed) can so be worked out a few buckets at a time, in memory that does not grow with the
number of rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

BUCKETS = 64
AT_ONCE = 20_000  # rows of small buckets that are read together: each reading has a price of its own


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
        homes = bucket_of(table["item_id"])
        order = np.argsort(homes, kind="stable")
        counts = np.bincount(homes, minlength=BUCKETS)
        ordered, start = table.take(order), 0
        for bucket in np.flatnonzero(counts):
            self._writer(int(bucket)).write_table(ordered.slice(start, counts[bucket]))
            start += counts[bucket]
        self.sizes += counts

    def read(self, buckets: Sequence[int]) -> pa.Table:
        """All rows of these buckets. Nothing can be added after the first reading."""
        self._close()
        paths = [self._path(bucket) for bucket in buckets if self.sizes[bucket]]
        tables = [pa.ipc.open_stream(pa.OSFile(str(path))).read_all() for path in paths]
        return pa.concat_tables([self._schema.empty_table(), *tables])

    def _writer(self, bucket: int) -> pa.ipc.RecordBatchStreamWriter:
        if bucket not in self._writers:
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            self._writers[bucket] = pa.ipc.new_stream(str(self._path(bucket)), self._schema, options=options)
        return self._writers[bucket]

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}

    def _path(self, bucket: int) -> Path:
        return self._folder / f"{bucket}.arrows"


def bucket_of(item_ids: pa.ChunkedArray) -> np.ndarray:
    """[N] the bucket of every item, the same in every process."""
    names = item_ids.fill_null("").to_numpy(zero_copy_only=False)
    return (pd.util.hash_array(names.astype(object)) % BUCKETS).astype(np.int64)


def groups(*sizes: np.ndarray, at_least: int = AT_ONCE) -> Iterator[list[int]]:
    """The buckets in order, as many together as make `at_least` rows of all the given sizes."""
    group: list[int] = []
    total = sum(sizes)
    for bucket in range(BUCKETS):
        group.append(bucket)
        if total[group].sum() >= at_least:
            yield group
            group = []
    if total[group].sum():
        yield group
