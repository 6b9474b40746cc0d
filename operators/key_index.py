"""Which of many keys are known, without a Python object per key: a store may hold millions."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa


class KeyIndex:
    """The distinct keys among some rows' keys (None: the row has none), sorted.

    keys: [K] distinct keys as bytes. rows: [N] where each row's key stands in `keys`, -1 for none.
    """

    def __init__(self, keys: Iterable[str | None]) -> None:
        given = list(keys)
        usable = np.array([key is not None for key in given], dtype=bool)
        known = _bytes(np.array([key for key in given if key is not None], dtype=object))
        self.rows = np.full(len(given), -1, dtype=np.int64)
        self.keys, self.rows[usable] = np.unique(known, return_inverse=True)

    def __len__(self) -> int:
        return len(self.keys)

    def places(self, keys: pa.ChunkedArray) -> np.ndarray:
        """Where each of `keys` stands in this index, -1 where it does not."""
        asked = _bytes(keys.to_numpy(zero_copy_only=False) if len(keys) else np.empty(0, object))
        if not len(self) or not len(asked):
            return np.full(len(asked), -1, dtype=np.int64)
        near = np.minimum(np.searchsorted(self.keys, asked), len(self) - 1)
        return np.where(self.keys[near] == asked, near, -1)


def _bytes(keys: np.ndarray) -> np.ndarray:
    return keys.astype(np.bytes_) if len(keys) else np.empty(0, dtype="S32")


def first_of_each(places: np.ndarray) -> np.ndarray:
    """[N] true for the first row of every place that is not -1."""
    first = np.zeros(len(places), dtype=bool)
    distinct, row = np.unique(places, return_index=True)
    first[row[distinct >= 0]] = True
    return first
