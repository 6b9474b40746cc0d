"""Tables that users write: JSONL, JSON, CSV, TSV and Parquet, read into rows that know where they stand.

Formats go by the file's name: `.jsonl` / `.ndjson` (one JSON object a line), `.json` (a list of objects),
`.csv`, `.tsv`, each also with `.gz`, and `.parquet`. Text is UTF-8, with or without a byte-order mark; CSV
has a header line, and an empty CSV cell is the empty string. JSON's `NaN`, which data frames write for a
missing cell, is read as null. A file is local or any URI that fsspec opens.
"""

from __future__ import annotations

import difflib
import gzip
import hashlib
import os
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from operators.locators import is_uri, shown
from operators.remote import explain, failures, open_filesystem
from operators.table_formats import (
    KEPT_BYTES,
    Row,
    TableError,
    json_line_row,
    parquet_rows,
    text_of,
    text_rows,
    unzip,
    without_trailing_commas,
)

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

TEXT_FORMATS = (".jsonl", ".ndjson", ".json", ".csv", ".tsv")


def stem(path: str) -> str:
    """The file's name without folder, format and `.gz`: "runs/my.jsonl.gz" -> "my"."""
    name = PurePosixPath(urlsplit(path).path if is_uri(path) else path).name
    name = name[:-3] if name.lower().endswith(".gz") else name
    return PurePosixPath(name).stem


def read_bytes(path: str) -> bytes:
    """The whole content of a local file or URI. Raises TableError where there is none."""
    try:
        if not is_uri(path):
            return Path(path).read_bytes()
        files, place = filesystem_of(path)
        with files.open(place, "rb") as file:
            return file.read()
    except TableError:
        raise
    except FileNotFoundError:
        raise TableError(f"{shown(path)}: there is no such file{_near(path)}") from None
    except IsADirectoryError:
        raise TableError(f"{shown(path)} is a folder; give the path of a file in it") from None
    except failures() as error:
        raise TableError(f"{shown(path)} cannot be read: {explain(error)}") from error
    except ValueError:  # a NUL in a path, say
        raise _no_address(path) from None


def filesystem_of(path: str) -> tuple[AbstractFileSystem, str]:
    """The filesystem of a path or address and the path there. Raises TableError where nothing opens that kind of address."""
    try:
        return open_filesystem(path)
    except ImportError as error:
        raise TableError(f"{shown(path)}: opening this kind of address needs a package: {error}") from None
    except ValueError:
        raise _no_address(path) from None


def _no_address(path: str) -> TableError:
    return TableError(
        f"{shown(path)!r} is neither a path nor an address that can be opened (s3://, gs://, https://)"
    )


def digest(path: str) -> str:
    """SHA-256 of the content of a local file or URI, in hex. Raises TableError where there is none."""
    try:
        if not is_uri(path):
            with open(path, "rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        pass  # `read_bytes` says why
    return hashlib.sha256(read_bytes(path)).hexdigest()


def read_rows(path: str, keep_broken: bool = False, trailing_commas: bool = False) -> list[Row]:
    """All rows of the file at `path`, in order.

    With `trailing_commas` a comma before a closing bracket of JSON, as some published files have it, is no error.

    With `keep_broken` a row that cannot be read (a line that is no JSON object, fields that do not fit the header, bytes
    that are not UTF-8) becomes an empty Row with a `problem`, and its mates are kept; a file most of whose rows are like
    that is refused all the same, being of another format. Raises TableError.
    """
    path = str(path)
    name = shown(path).lower()
    compressed = name.endswith(".gz")
    ending = PurePosixPath(name[:-3] if compressed else name).suffix
    if not path:
        raise TableError("the path of a file is empty: name the file")
    if ending not in TEXT_FORMATS and (ending != ".parquet" or compressed):
        if not is_uri(path) and not os.path.isfile(path):
            read_bytes(path)  # which says so
        allowed = f"{', '.join(TEXT_FORMATS)} (each also with .gz) and .parquet"
        raise TableError(f"{shown(path)}: unknown kind of file; the name must end in one of {allowed}")
    data = read_bytes(path)
    if ending == ".parquet":
        rows = parquet_rows(shown(path), data)
    else:
        by_row = ending != ".json"
        text = text_of(shown(path), unzip(shown(path), data) if compressed else data, by_row)
        is_json = ending not in (".csv", ".tsv")
        rows = text_rows(
            shown(path), without_trailing_commas(text) if trailing_commas and is_json else text, ending
        )
    if not rows:
        raise TableError(f"{shown(path)} is empty: it has no rows")
    broken = [row for row in rows if row.problem]
    if broken and (not keep_broken or 2 * len(broken) > len(rows)):
        count = f" ({len(broken)} of {len(rows)} rows are like this)" if len(broken) > 1 else ""
        raise TableError(f"{shown(path)}, {broken[0].place}: {broken[0].problem}{count}")
    return rows


def stream_rows(path: str) -> Iterable[Row]:
    """`read_rows(path, keep_broken=True)`, to be iterated over any number of times.

    A local JSONL or Parquet file is read anew each time, and memory holds a part of it only; other files are read whole.
    """
    path = str(path)
    name = path.lower()
    plain = not is_uri(path) and Path(path).is_file()
    if plain and name.endswith((".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".parquet")):
        return _Streamed(path)
    return read_rows(path, keep_broken=True)


class _Streamed:
    """The rows of a file that can be read piece by piece. What cannot be read is left to `read_rows`, to say why."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __iter__(self) -> Iterator[Row]:
        rows = self._parquet() if self._path.lower().endswith(".parquet") else self._lines()
        n = broken = 0
        try:
            for row in rows:
                n, broken = n + 1, broken + (row.problem is not None)
                yield row
        except (UnicodeDecodeError, OSError, EOFError, zlib.error, pa.ArrowInvalid):
            read_rows(self._path, keep_broken=True)
            raise
        if not n or 2 * broken > n:
            read_rows(self._path, keep_broken=True)

    def _lines(self) -> Iterator[Row]:
        opened = gzip.open if self._path.lower().endswith(".gz") else open
        with opened(self._path, "rt", encoding="utf-8-sig", errors=KEPT_BYTES, newline="\n") as file:
            for number, line in enumerate(file, 1):
                if text := line.strip():
                    yield json_line_row(text, number)

    def _parquet(self) -> Iterator[Row]:
        file, number = pq.ParquetFile(self._path, pre_buffer=False), 0
        if len(set(file.schema_arrow.names)) < len(file.schema_arrow.names):
            read_rows(self._path)
        for batch in file.iter_batches(batch_size=1024):
            for cells in batch.to_pylist():
                number += 1
                yield Row(cells, number, "row")


def _near(path: str) -> str:
    """A hint at a file with a similar name in the same folder, or at the folder that was looked in."""
    if is_uri(path):
        return ""
    folder = Path(path).parent
    if not folder.is_dir():
        return f"; the folder {folder} does not exist either (looked from {Path.cwd()})"
    near = difflib.get_close_matches(Path(path).name, os.listdir(folder), 1, 0.7)
    return f"; did you mean {folder / near[0]}?" if near else f" (looked in {folder.resolve()})"
