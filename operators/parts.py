"""One Parquet part of a store: its bytes, and a name that says when it was written and what bytes it must hold.

    part-<UTC time>-<first 16 hex digits of the SHA-256 of its bytes>.parquet

Parts sort by age, and a part that was cut off or changed contradicts its own name. Older parts end in eight random digits
instead; for them the checksums of Parquet's pages stand in.
"""

from __future__ import annotations

import hashlib
import io
import re
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# Columns without which a stored row says nothing; all others may be missing from parts of older versions.
REQUIRED = frozenset({"key", "value", "response"})
ROWS_PER_GROUP = 16_384
_NAME = re.compile(r"part-(?P<stamp>\d{8}T\d{12})-(?P<digest>[0-9a-f]{8}|[0-9a-f]{16})\.parquet")


class Damaged(ValueError):
    """Bytes that are not the part that was written."""


class OtherSchema(ValueError):
    """A sound part that lacks a required column, or holds another type there."""


def is_part(name: str) -> bool:
    """Whether `name` (without folder) is that of a committed part."""
    return _NAME.fullmatch(name) is not None


def stamp_of(name: str) -> str:
    """When the part of this name was written, as text that sorts by age."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"{name!r} is not the name of a part")
    return match["stamp"]


def now() -> str:
    """The stamp of a part that is written now."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")


def name_for(data: bytes, stamp: str) -> str:
    """The name of a part of these bytes."""
    return f"part-{stamp}-{hashlib.sha256(data).hexdigest()[:16]}.parquet"


def encode(table: pa.Table) -> bytes:
    """`table` as Parquet, checksummed page by page."""
    stream = io.BytesIO()
    pq.write_table(table, stream, compression="zstd", write_page_checksum=True, row_group_size=ROWS_PER_GROUP)
    return stream.getvalue()


def check(data: bytes, name: str) -> None:
    """Raise Damaged where `data` contradicts the digest in `name`."""
    match = _NAME.fullmatch(name)
    if match and len(match["digest"]) == 16 and name_for(data, match["stamp"]) != name:
        raise Damaged(f"its {len(data)} bytes are not those that its name promises")


def opened(data: bytes, name: str) -> pq.ParquetFile:
    """The part, checked. Raises Damaged."""
    check(data, name)
    try:
        return pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise Damaged(str(error)) from error


def read(
    file: pq.ParquetFile,
    schema: pa.Schema,
    columns: list[str] | None = None,
    groups: list[int] | None = None,
) -> pa.Table:
    """`columns` and row `groups` (default: all) of a part in `schema`; what an older version did not write is null.

    Raises Damaged, and OtherSchema for a part without a required column.
    """
    wanted = [schema.field(name) for name in (columns or schema.names)]
    have = set(file.schema_arrow.names)
    lacking = [field.name for field in wanted if field.name in REQUIRED and field.name not in have]
    if lacking:
        raise OtherSchema(f"it has no column {lacking[0]!r}; its columns are {sorted(have)}")
    try:
        groups = list(range(file.num_row_groups)) if groups is None else groups
        table = file.read_row_groups(groups, columns=[field.name for field in wanted if field.name in have])
    except (pa.ArrowException, OSError, EOFError) as error:
        raise Damaged(str(error)) from error
    filled = [
        table[field.name] if field.name in have else pa.nulls(table.num_rows, field.type) for field in wanted
    ]
    try:
        return pa.table(filled, names=[field.name for field in wanted]).cast(pa.schema(wanted))
    except (pa.ArrowException, ValueError) as error:
        raise OtherSchema(str(error)) from error


def read_rows(file: pq.ParquetFile, schema: pa.Schema, rows: np.ndarray) -> pa.Table:
    """The rows at the ascending places `rows`; only the row groups that hold one are decoded."""
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    ends = np.cumsum(sizes, dtype=np.int64)
    home = np.searchsorted(ends, rows, side="right")
    groups = np.unique(home)
    read_before = np.cumsum([0, *(sizes[group] for group in groups)])[:-1]
    place = rows - (ends - sizes)[home] + read_before[np.searchsorted(groups, home)]
    return read(file, schema, groups=groups.tolist()).take(place)
