"""Which of many keys are known, without a Python object per key: a store may hold millions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class KeyIndex:
    """The distinct keys among some rows' keys (None: the row has none), sorted.

    keys: [K] distinct keys as bytes. rows: [N] where each row's key stands in `keys`, -1 for none.
    """

    def __init__(self, keys: Iterable[str | None] | pa.ChunkedArray) -> None:
        given = keys if isinstance(keys, pa.ChunkedArray) else pa.chunked_array([pa.array(keys, pa.string())])
        self.rows = np.full(len(given), -1, dtype=np.int64)
        usable = given.is_valid().to_numpy()
        self.keys, self.rows[usable] = np.unique(_bytes(given.drop_null()), return_inverse=True)

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, keys: pa.ChunkedArray) -> np.ndarray:
        """Where each of `keys` stands in this index, -1 where it does not."""
        asked = _bytes(keys)
        if not len(self) or not len(asked):
            return np.full(len(asked), -1, dtype=np.int64)
        near = np.minimum(np.searchsorted(self.keys, asked), len(self) - 1)
        return np.where(self.keys[near] == asked, near, -1)


def _bytes(keys: pa.ChunkedArray) -> np.ndarray:
    """[N] the keys (none is null) as fixed-width bytes. Keys as we make them are all equally long, and need no copy."""
    length = pc.max(pc.binary_length(keys)).as_py() or 32
    try:
        fixed = keys.cast(pa.binary()).cast(pa.binary(length)).combine_chunks()
    except pa.ArrowInvalid:
        return keys.to_numpy(zero_copy_only=False).astype(np.bytes_)
    return np.frombuffer(fixed.buffers()[1] or b"", dtype=f"S{length}")[fixed.offset :][: len(fixed)]


def first_of_each(places: np.ndarray) -> np.ndarray:
    """[N] true for the first row of every place that is not -1."""
    first = np.zeros(len(places), dtype=bool)
    distinct, row = np.unique(places, return_index=True)
    first[row[distinct >= 0]] = True
    return first
