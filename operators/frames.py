"""Between Arrow tables, which travel and are stored, and batches of numpy columns, which Specs work on."""

from __future__ import annotations

import math
from collections.abc import Iterable
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


TEXT_ERROR = "text_error"


def readable(table: pa.Table) -> pa.Table:
    """`table` with U+FFFD for every byte of text that is not UTF-8, also within lists, and the column TEXT_ERROR: null, or
    "not_utf8: " and the columns of the row that such bytes stand in. Bytes where text was written as such are read alike."""
    columns: dict[str, pa.Array] = {}
    found: list[list[str]] = [[] for _ in range(table.num_rows)]
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = _text_kind(column.type)
        if kind is None or (kind == column.type and _is_utf8(column)):
            continue
        cells = [_read(value) for value in column.cast(_bytes_kind(column.type)).to_pylist()]
        columns[name] = pa.array([cell for cell, _ in cells], kind)
        for row, (_, broken) in enumerate(cells):
            if broken:
                found[row].append(name)
    told = [f"not_utf8: {', '.join(names)}" if names else None for names in found]
    return with_columns(table, {**columns, TEXT_ERROR: pa.array(told, pa.string())})


def _text_kind(kind: pa.DataType) -> pa.DataType | None:
    """The type in which text, or bytes for text, of this type are read; None for what holds neither."""
    if pa.types.is_list(kind):
        inner = _text_kind(kind.value_type)
        return inner and pa.list_(inner)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return kind
    return pa.string() if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) else None


def _bytes_kind(kind: pa.DataType) -> pa.DataType:
    return pa.list_(_bytes_kind(kind.value_type)) if pa.types.is_list(kind) else pa.large_binary()


def _is_utf8(column: pa.ChunkedArray) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _read(value: bytes | list | None) -> tuple[Any, bool]:
    """Text of bytes (lists of text of lists), and whether any of it had to be replaced."""
    if value is None:
        return None, False
    if isinstance(value, list):
        parts = [_read(one) for one in value]
        return [text for text, _ in parts], any(broken for _, broken in parts)
    text = value.decode("utf-8", "replace")
    return text, text.encode() != value


def told_of_text(tables: Iterable[pa.Table]) -> str:
    """One sentence on how many rows of `readable` tables hold text that is not UTF-8; "" for none."""
    n = sum(len(table) - table[TEXT_ERROR].null_count for table in tables if TEXT_ERROR in table.column_names)
    rows = "1 row holds" if n == 1 else f"{n:,} rows hold"
    return f"{rows} text that is not UTF-8: \ufffd stands for what could not be read" if n else ""


def codes(column: pa.ChunkedArray) -> np.ndarray:
    """[N] a number per cell, equal for equal cells, in the order in which values come first; -1 for null."""
    return column.dictionary_encode().combine_chunks().indices.fill_null(-1).to_numpy(zero_copy_only=False)


def with_columns(table: pa.Table, columns: dict[str, pa.Array | pa.ChunkedArray]) -> pa.Table:
    """`table` with `columns` added or replaced."""
    for name, column in columns.items():
        place = table.schema.get_field_index(name)
        table = table.append_column(name, column) if place < 0 else table.set_column(place, name, column)
    return table
