"""Between Arrow tables, which travel and are stored, and batches of numpy columns, which Specs work on."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.base import Batch


def to_batch(table: pa.Table, columns: tuple[str, ...] | None = None) -> Batch:
    """Columns of `table` as numpy arrays: floats with NaN for null, everything else as objects with None for null."""
    return {name: _to_numpy(table.column(name)) for name in (columns or table.column_names)}


def _to_numpy(column: pa.ChunkedArray) -> np.ndarray:
    if pa.types.is_floating(column.type):
        return column.to_numpy(zero_copy_only=False).astype(np.float64, copy=False)
    # Filled one by one: numpy would make a matrix of lists that happen to be equally long.
    cells = np.empty(len(column), dtype=object)
    for row, value in enumerate(column.to_pylist()):
        cells[row] = value
    return cells


def to_column(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """One numpy column as an Arrow array of the declared type; NaN becomes null."""
    return pa.array([_cell(value) for value in values], type=kind)


def _cell(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, tuple):
        return list(value)
    return value


def finite(table: pa.Table) -> pa.Table:
    """`table` with null for every float that is not finite, also within lists: other writers' files hold such."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_floating(column.type):
            columns[name] = pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))
        elif _of_floats(column.type) and not _all_finite(pc.list_flatten(column)):
            lists = [row and [_finite(value) for value in row] for row in column.to_pylist()]
            columns[name] = pa.array(lists, column.type)
    return with_columns(table, columns)


def _of_floats(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) and pa.types.is_floating(kind.value_type)


def _all_finite(values: pa.ChunkedArray) -> bool:
    return pc.all(pc.is_finite(values), min_count=0).as_py()


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def decoded(table: pa.Table) -> pa.Table:
    """`table` with plain values in place of dictionary-encoded ones, also within lists."""
    return table.cast(pa.schema([field.with_type(_plain(field.type)) for field in table.schema]))


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.list_(_plain(kind.value_type)) if pa.types.is_list(kind) else kind


def codes(column: pa.ChunkedArray) -> np.ndarray:
    """[N] a number per cell, equal for equal cells, in the order in which values come first; -1 for null."""
    return column.dictionary_encode().combine_chunks().indices.fill_null(-1).to_numpy(zero_copy_only=False)


def with_columns(table: pa.Table, columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """`table` with `columns` added or replaced."""
    for name, column in columns.items():
        place = table.schema.get_field_index(name)
        table = table.append_column(name, column) if place < 0 else table.set_column(place, name, column)
    return table
