"""What a table's text or bytes hold, format by format, as rows that know where they stand.

JSON and CSV are read so that an error has a place: the line of a row in JSONL and CSV, of an element in a JSON list.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# Bytes that are not UTF-8 pass through decoding as lone surrogates, which UTF-8 text cannot hold, so that their row can be told.
KEPT_BYTES = "surrogateescape"
_KEPT_BYTE = re.compile("[\udc80-\udcff]")
_SPACE = re.compile(r"[ \t\r\n]*")
# No string of JSON goes over the end of a line: one that is cut short leaves the lines after it alone.
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=[ \t\r\n]*[}\]])')


class TableError(ValueError):
    """A user's file cannot be used as a whole. The message names the file, the place and what to do."""


class Row(dict):
    """One row: {column: cell}, and its place. `problem` ("reason: detail") says why it could not be read."""

    def __init__(self, cells: Mapping[str, Any], number: int, unit: str = "line", problem: str | None = None):
        super().__init__(cells)
        self.number = number
        self.unit = unit
        self.problem = problem

    @property
    def place(self) -> str:
        """Where the row starts, from 1: "line 7" of a text file, "row 7" of a Parquet file or of a list with rows side by
        side."""
        return f"{self.unit} {self.number}"


def without_trailing_commas(text: str) -> str:
    """JSON `text` without the commas that stand, outside its strings, before a closing bracket; all else in place."""
    return _STRING_OR_COMMA.sub(lambda found: found[0] if found[0] != "," else "", text)


def unzip(file: str, data: bytes) -> bytes:
    try:
        return gzip.decompress(data)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TableError(f"{file} is not a whole gzip file ({error}); compress it again") from None


def text_of(file: str, data: bytes, by_row: bool) -> str:
    """`data` as text; bytes that are not UTF-8 are refused, or left to their rows, where these are read one by one."""
    if other := _other_encoding(data):
        raise TableError(f"{file} is {other} text; save it as UTF-8")
    try:
        return data.decode("utf-8-sig", KEPT_BYTES if by_row else "strict")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = f"byte 0x{data[error.start]:02x}"
        raise TableError(f"{file}, line {line}: {byte} is not UTF-8; save the file as UTF-8") from None


def _other_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32, by the mark at the start or else by the zero bytes that either puts into Latin letters and brackets."""
    if data.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    head = data[:8]
    zeros = head.count(0) / max(1, len(head))
    return None if zeros < 0.5 else "UTF-16" if zeros == 0.5 else "UTF-32"


def text_rows(file: str, text: str, ending: str) -> list[Row]:
    if ending in (".csv", ".tsv"):
        return _csv_rows(file, text, "," if ending == ".csv" else "\t")
    if ending == ".json":
        return _json_list_rows(file, text)
    # Only "\n" ends a line: splitlines() would also cut at U+2028 and its like, which JSON strings may hold.
    lines = enumerate(text.split("\n"), 1)
    return [json_line_row(line.strip(), number) for number, line in lines if line.strip()]


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    cells = dict(pairs)
    if len(cells) < len(pairs):
        twice = next(name for i, (name, _) in enumerate(pairs) if name in {other for other, _ in pairs[:i]})
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return cells


_JSON = json.JSONDecoder(
    object_pairs_hook=_no_duplicates, parse_constant=lambda name: None if name == "NaN" else float(name)
)


def _json_problem(text: str, error: Exception) -> str:
    """What is wrong with a piece of JSON, with the remedy where it is a well-known habit."""
    if not isinstance(error, json.JSONDecodeError):
        return "nested too deeply" if isinstance(error, RecursionError) else str(error)
    if text in ("[", "{"):
        return "an object stands whole on its line; a file that is one list is named .json"
    before = text[max(0, error.pos - 80) : error.pos + 1].rstrip()
    here = text[error.pos : error.pos + 80].lstrip()
    if re.search(r",\s*[}\]]?$", before) and here.lstrip(", \t\r\n")[:1] in ("}", "]"):
        return "a comma stands before a closing bracket: JSON has no trailing commas, remove it"
    if here == "," and error.msg == "Extra data":
        return "a comma stands after the object: one object a line, without commas between"
    if here[:1] == "'":
        return "JSON text stands in double quotes, not single ones"
    return f"{error.msg} at column {error.colno}"


def _bytes_problem(text: str) -> str | None:
    """What is wrong with a row's text where some of its bytes were kept, as they are not UTF-8."""
    found = _KEPT_BYTE.search(text)
    return (
        f"not_utf8: byte 0x{ord(found[0]) - 0xDC00:02x} is not UTF-8; save the file as UTF-8"
        if found
        else None
    )


def json_line_row(line: str, number: int) -> Row:
    if problem := _bytes_problem(line):
        return Row({}, number, problem=problem)
    try:
        return _object_row(_JSON.decode(line), number)
    except (ValueError, RecursionError) as error:
        return Row({}, number, problem=f"malformed_json: {_json_problem(line, error)}")


def _object_row(value: Any, number: int) -> Row:
    if isinstance(value, dict):
        return Row(value, number)
    kind = "a list (a file that is one list is named .json)" if isinstance(value, list) else "a bare value"
    return Row({}, number, problem=f"not_an_object: a row is a JSON object {{...}}, this is {kind}")


def _json_list_rows(file: str, text: str) -> list[Row]:
    """The elements of a JSON list one by one, so that each has a line number and an error has a place."""
    position = _SPACE.match(text).end()
    if text[position : position + 1] != "[":
        raise TableError(f"{file}: {_not_a_list(text)}")
    rows: list[Row] = []
    line, counted = 1, 0
    position = _SPACE.match(text, position + 1).end()
    more = text[position : position + 1] != "]"
    while more:
        line, counted = line + text.count("\n", counted, position), position
        try:
            value, position = _JSON.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            at = text.count("\n", 0, error.pos) + 1 if isinstance(error, json.JSONDecodeError) else line
            raise TableError(f"{file}, line {at}: malformed JSON: {_json_problem(text, error)}") from None
        rows.append(_object_row(value, line))
        position = _SPACE.match(text, position).end()
        more = text[position : position + 1] == ","
        position = _SPACE.match(text, position + 1).end() if more else position
    if text[position : position + 1] != "]" or text[position + 1 :].strip():
        at = text.count("\n", 0, position) + 1
        raise TableError(f'{file}, line {at}: malformed JSON: "," or the final "]" is expected; cut short?')
    # Several on a line: their place in the list tells them apart.
    if len({row.number for row in rows}) < len(rows):
        return [Row(row, number, "row", row.problem) for number, row in enumerate(rows, 1)]
    return rows


def _not_a_list(text: str) -> str:
    """Why the content of a .json file, which does not start with a bracket, is not a table."""
    if not text.strip():
        return "is empty"
    try:
        value = _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        if getattr(error, "msg", "") == "Extra data" and text.lstrip()[0] == "{":
            return "holds several JSON objects, not a list; one object a line is a .jsonl file, rename it"
        return f"malformed JSON: {_json_problem(text, error)}"
    if not isinstance(value, dict):
        return "must hold a JSON list of objects"
    inner = [key for key, content in value.items() if isinstance(content, list)]
    hint = f"save the list under its key {inner[0]!r} by itself" if inner else "put it into a list: [{...}]"
    return f"holds one JSON object, but must hold a list of objects; {hint}"


def _csv_rows(file: str, text: str, delimiter: str) -> list[Row]:
    # The standard limit of 131,072 characters a cell is less than a long chain of thought.
    limit = csv.field_size_limit(sys.maxsize)
    start = 1
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
        header: list[str] | None = None
        rows: list[Row] = []
        for record in reader:
            if header is None and record:
                header = _csv_header(file, record)
            elif header is not None and record:
                rows.append(_csv_row(header, record, start))
            start = reader.line_num + 1
        return rows
    except csv.Error as error:
        hint = "a quote inside a quoted cell is written twice"
        raise TableError(f"{file}, line {start}: malformed quoting ({error}); {hint}") from None
    finally:
        csv.field_size_limit(limit)


def _csv_header(file: str, record: list[str]) -> list[str]:
    header = [name.strip() for name in record]
    if problem := _bytes_problem("".join(header)):
        raise TableError(f"{file}, line 1: {problem}")
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"{file}, line 1: the header names the column {twice!r} twice")
    if len(header) == 1 and re.search(r"[;\t,]", header[0]):
        raise TableError(f"{file}, line 1: one column only; .csv is separated by commas, .tsv by tabs")
    return header


def _csv_row(header: list[str], record: list[str], number: int) -> Row:
    if problem := _bytes_problem("".join(record)):
        return Row({}, number, problem=problem)
    if len(record) != len(header):
        problem = (
            f"wrong_fields: {len(record)} fields, but the header has {len(header)}; "
            "put cells that hold a separator or a line break in double quotes"
        )
        return Row({}, number, problem=problem)
    return Row(dict(zip(header, record, strict=True)), number)


def parquet_rows(file: str, data: bytes) -> list[Row]:
    try:
        table = pq.ParquetFile(io.BytesIO(data)).read()
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{file} is not a whole Parquet file: {error}") from None
    twice = next((name for name in table.column_names if table.column_names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"{file}: two columns are named {twice!r}")
    try:
        return [Row(cells, number, "row") for number, cells in enumerate(table.to_pylist(), 1)]
    except UnicodeDecodeError:
        raise TableError(f"{file}{not_utf8(table)}") from None


def not_utf8(table: pa.Table) -> str:
    """Where a Parquet file's text is no UTF-8, and what to do: the end of a message that starts with the file's name."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        for number, cell in enumerate(column, 1):
            try:
                cell.as_py()
            except UnicodeDecodeError as error:
                byte = f"byte 0x{error.object[error.start]:02x}"
                return f", row {number}, column {name!r}: {byte} is not UTF-8; write the text as UTF-8"
    return ": text is not UTF-8; write it as UTF-8"
