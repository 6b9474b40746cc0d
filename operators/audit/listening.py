"""Human validation of an audit: a page for listeners, and what their exports say (section 4.3, appendix E).

Listeners judge in the pointwise format of the judges: one audio context, two replies. *Our reading*: a listener hears one
branch of an item, not both, or the contrast would be explicit; which one, on which side the replies stand, and the order
of the cases follow from the listener's name, and every rating says what it was. "Cannot tell" is a missing rating, not a
wrong one: it is counted, left out of accuracy, and missing for Krippendorff's alpha (nominal).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from operators.analysis.ratings import alpha
from operators.columns import RowError, number_of, short, text_of
from operators.fetching import AudioError, fetch
from operators.intervals import wilson_interval
from operators.pages.embed import page
from operators.reporting.clips import media_type
from operators.tables import Row, TableError, read_bytes, read_rows, shown

_INERT = re.compile(r"'+[=+\-@\t\r\n]")
LISTENERS = pa.schema(
    [
        ("listener", pa.string()),
        ("n_rated", pa.int64()),
        ("n_cannot_tell", pa.int64()),
        ("n_correct", pa.int64()),
        ("accuracy", pa.float64()),
        ("wilson_low", pa.float64()),
        ("wilson_high", pa.float64()),
        ("chose_first", pa.float64()),
        ("first_low", pa.float64()),
        ("first_high", pa.float64()),
        ("plays_mean", pa.float64()),
    ]
)


@dataclass(frozen=True)
class Rating:
    """One answer: the response chosen (0, 1; None: cannot tell) for a branch of an item, and how it was presented.

    plays: clips that were started before the answer; None where the export does not say.
    """

    listener: str
    item_id: str
    branch: int
    swapped: bool
    chosen: int | None
    plays: int | None


def listening_page(
    items: Sequence[Mapping[str, Any]], benchmark: str, title: str, both_branches: bool = False
) -> str:
    """One self-contained HTML text. items: AUDIT_ITEM rows without errors. Raises AudioError for a clip that is
    missing, or that no browser plays."""
    uris = list(dict.fromkeys(uri for item in items for uri in item["audio_uris"]))
    clips = {uri: _data_uri(uri) for uri in uris}
    names = {uri: f"c{number}" for number, uri in enumerate(uris)}
    told = [_told(item, names) for item in items]
    content = json.dumps([told, sorted(clips.values()), both_branches], sort_keys=True)
    data = {
        "id": hashlib.sha256(content.encode()).hexdigest()[:16],
        "title": title,
        "benchmark": benchmark,
        "both_branches": both_branches,
        "items": told,
    }
    return page(
        "listen", title, {"listening": data}, large={"clips": {names[uri]: clips[uri] for uri in uris}}
    )


def _told(item: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """What the page knows of an item: everything but the emotions."""
    return {
        "id": item["item_id"],
        "branches": [
            [
                {"speaker": turn["speaker"], "text": turn["text"], "clip": names[turn["audio_uri"]]}
                for turn in branch
            ]
            for branch in item["branches"]
        ],
        "responses": [
            {"text": reply["text"], "clip": names[reply["audio_uri"]]} for reply in item["responses"]
        ],
    }


def _data_uri(uri: str) -> str:
    data = fetch(uri)
    kind = media_type(data[:12])
    if kind is None:
        raise AudioError("not_playable", f"{shown(uri)} begins like no format that browsers play")
    return f"data:{kind};base64,{base64.b64encode(data).decode('ascii')}"


def read_exports(paths: Iterable[str]) -> list[Rating]:
    """The ratings of all files (.json or .csv as the page saves them). Raises TableError with file and row.

    A rating that stands in two files, because a listener saved twice, counts once; two different answers of a listener
    on one case are refused, and so are exports of different pages.
    """
    found: dict[tuple[str, str, int], Rating] = {}
    pages: dict[str, str] = {}
    for path in paths:
        for row in _rows(path):
            try:
                page_id, rating = text_of(row.get("page"), "page"), _rating(row)
            except RowError as error:
                raise TableError(f"{shown(path)}, {row.place}: {error}") from None
            pages.setdefault(page_id, shown(path))
            if len(pages) > 1:
                raise TableError(
                    f"{' and '.join(pages.values())} come from different pages; read them one by one"
                )
            key = rating.listener, rating.item_id, rating.branch
            if found.setdefault(key, rating) != rating:
                raise TableError(
                    f"{shown(path)}, {row.place}: {short(rating.listener)} answered item {short(rating.item_id)} twice, "
                    "differently; keep one of the two files"
                )
    if not found:
        raise TableError("the exports hold no rating")
    return list(found.values())


def _rows(path: str) -> list[Row]:
    if not path.lower().endswith(".json"):
        return [
            Row({name: _spoken(cell) for name, cell in row.items()}, row.number, row.unit, row.problem)
            for row in read_rows(path)
        ]
    try:
        export = json.loads(read_bytes(path).decode("utf-8-sig"))
    except ValueError as error:
        raise TableError(f"{shown(path)} is no whole JSON file: {error}") from None
    ratings = export.get("ratings") if isinstance(export, dict) else None
    if not isinstance(ratings, list) or not all(isinstance(one, dict) for one in ratings):
        raise TableError(f"{shown(path)} is no export of the listening page: it has no list of ratings")
    about = {name: export.get(name) for name in ("page", "listener")}
    return [Row({**about, **one}, number, "rating") for number, one in enumerate(ratings, 1)]


def _spoken(cell: Any) -> Any:
    """A cell of the page's CSV without the apostrophe that keeps a spreadsheet from running it as a formula."""
    return cell[1:] if isinstance(cell, str) and _INERT.match(cell) else cell


def _rating(row: Mapping[str, Any]) -> Rating:
    listener, item_id = (
        text_of(row.get("listener"), "listener").strip(),
        text_of(row.get("item_id"), "item_id"),
    )
    if not listener or not item_id:
        raise RowError("missing_name: listener and item_id must be there")
    swapped = row.get("swapped")
    if swapped not in (True, False, "true", "false"):
        raise RowError(f"bad_swapped: true or false is expected, not {short(swapped)}")
    if "chosen" not in row:
        raise RowError("no_chosen: give the files that the listening page saves")
    chosen, plays = row["chosen"], row.get("plays")
    return Rating(
        listener=listener,
        item_id=item_id,
        branch=_binary(row.get("branch"), "branch"),
        swapped=swapped in (True, "true"),
        chosen=None if chosen in (None, "") else _binary(chosen, "chosen"),
        plays=None if plays in (None, "") else number_of(plays, "plays"),
    )


def _binary(cell: Any, part: str) -> int:
    value = number_of(cell, part)
    if value > 1:
        raise RowError(f"bad_{part}: 0 or 1 is expected, not {short(cell)}")
    return value


def listeners(ratings: Sequence[Rating]) -> pa.Table:
    """LISTENERS: one row per listener, in order of appearance. `chose_first`: share of reply A among the choices."""
    rows = []
    for name in dict.fromkeys(one.listener for one in ratings):
        mine = [one for one in ratings if one.listener == name]
        told = [one for one in mine if one.chosen is not None]
        right = sum(one.chosen == one.branch for one in told)
        first = sum(one.chosen == int(one.swapped) for one in told)
        low, high = wilson_interval(right, len(told))
        first_ends = wilson_interval(first, len(told))
        plays = [one.plays for one in mine if one.plays is not None]
        rows.append(
            {
                "listener": name,
                "n_rated": len(told),
                "n_cannot_tell": len(mine) - len(told),
                "n_correct": right,
                "accuracy": right / len(told) if told else None,
                "wilson_low": low if told else None,
                "wilson_high": high if told else None,
                "chose_first": first / len(told) if told else None,
                "first_low": first_ends[0] if told else None,
                "first_high": first_ends[1] if told else None,
                "plays_mean": sum(plays) / len(plays) if plays else None,
            }
        )
    return pa.Table.from_pylist(rows, schema=LISTENERS)


def agreement(ratings: Sequence[Rating]) -> float:
    """Krippendorff's alpha (nominal) of the responses that listeners chose, cases being (item, branch); NaN where no two
    listeners answered the same case."""
    names = list(dict.fromkeys(one.listener for one in ratings))
    cases = list(dict.fromkeys((one.item_id, one.branch) for one in ratings))
    matrix = np.full((len(names), len(cases)), np.nan)
    for one in ratings:
        if one.chosen is not None:
            matrix[names.index(one.listener), cases.index((one.item_id, one.branch))] = one.chosen
    return alpha(matrix, "nominal")
