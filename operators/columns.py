"""Which column of a user's table plays which part, and what its cells say."""

from __future__ import annotations

import difflib
import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from operators.tables import Row, TableError
from operators.text import encodable

Known = Mapping[str, Sequence[str]]

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 80


class RowError(ValueError):
    """One row cannot be used; its mates can. The text is "reason: detail"."""


def columns_of(rows: Iterable[Row]) -> list[str]:
    """The names of all columns that any row has, in order of appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def plain(name: str) -> str:
    """A column's name as it is compared: "Raw Output" and "raw-output" are "raw_output"."""
    return name.strip().casefold().replace("-", "_").replace(" ", "_")


def find_columns(
    file: str, rows: Iterable[Row], known: Known, given: Mapping[str, str | None], option: str
) -> dict[str, str]:
    """Which of the file's columns plays each part: {part: column}, without the parts that the file lacks.

    `known` lists the other names under which a part is accepted, compared by `plain`; `given`
    ({part: column}) decides where the user said so, through the config key `option`.<part>. Raises TableError
    when a given column is absent, and when two columns claim one part with different content: that is never
    guessed.
    """
    present = columns_of(rows)
    absent = [f"{option}.{part}={name}" for part, name in given.items() if name and name not in present]
    if absent:
        raise TableError(f"{file} has no column for {absent[0]}; its columns are {', '.join(present)}")
    found = {part: name for part, name in given.items() if name}
    for part in [part for part in known if part not in found]:
        free = [name for name in present if name not in given.values()]
        claims = [name for name in free if plain(name) in (part, *known[part])]
        differ = [name for name in claims[1:] if any(row.get(name) != row.get(claims[0]) for row in rows)]
        if differ:
            raise TableError(
                f"{file}: columns {claims[0]!r} and {differ[0]!r} could both be {part!r}, and differ; "
                f"say which with {option}.{part}={claims[0]} or {option}.{part}={differ[0]}"
            )
        if claims:
            found[part] = claims[0]
    return found


def missing_columns(
    file: str, rows: Iterable[Row], known: Known, missing: Sequence[str], option: str, example: str
) -> TableError:
    """The error for absent columns: what is missing, what was perhaps meant, what is expected, an example."""
    present = columns_of(rows)
    absent = ", ".join(map(repr, missing))
    # "question" is the question, however close to "question_id".
    free = [name for name in present if plain(name) not in {*known, *chain(*known.values())}]
    lines = [f"{file}: no column for {absent}; its columns are {', '.join(map(repr, present)) or '(none)'}"]
    for part in missing:
        others = f" (also read from {', '.join(known[part])})" if known[part] else ""
        names = (part, *known[part])
        near = [name for name in free if difflib.get_close_matches(plain(name), names, 1, 0.75)]
        hint = f": did you mean {near[0]!r}? Rename it, or set '{option}.{part}={near[0]}'" if near else ""
        lines.append(f"  {part}{others}{hint}")
    lines.append(f"A column of any other name can be given as {option}.<part>=<column>.")
    return TableError("\n".join([*lines, example]))


def is_null(cell: Any) -> bool:
    """Whether a cell says nothing: null, or the NaN that data frames put for it."""
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def text_of(cell: Any, part: str) -> str:
    """A cell as text; "" for null. Numbers are written out, 7.0 as 7. Other types: RowError bad_<part>."""
    if is_null(cell):
        return ""
    if isinstance(cell, str):
        return encodable(cell)
    if isinstance(cell, bool) or not isinstance(cell, (int, float)):
        raise RowError(f"bad_{part}: a text is expected, not {short(cell)}")
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def number_of(cell: Any, part: str) -> int:
    """A cell as a whole number from 0 up, also when it is text. Raises RowError bad_<part>."""
    digits = text_of(cell, part).strip()
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        raise RowError(f"bad_{part}: a whole number from 0 up is expected, not {short(cell)}")
    return int(digits)


def real_of(cell: Any, part: str) -> float:
    """A cell as a finite number, also when it is text, in percent where it ends in a percent sign; NaN for an empty one.

    Raises RowError bad_<part>.
    """
    text = text_of(cell, part).strip() if not isinstance(cell, float) else repr(cell)
    if is_null(cell) or not text:
        return math.nan
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.inf
    if not math.isfinite(value):
        raise RowError(f"bad_{part}: a number is expected, not {short(cell)}")
    return value


def short(cell: Any) -> str:
    """A cell for an error message, on one line and not too long, however deep or long it is."""
    text = _SHORT.repr(cell)
    return text if len(text) <= 120 else f"{text[:117]}..."
