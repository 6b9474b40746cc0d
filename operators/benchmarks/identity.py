"""Items have unique ids: what happens to rows of a user's table that share one.

A row that repeats an earlier one, part for part, counts once. Rows that differ under one id are all refused, each
under a name of its own: nothing says which of them a response with that id answers.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.columns import short


def settled_table(
    file: str, items: Sequence[Mapping[str, Any]], limit: int | None, schema: pa.Schema
) -> pa.Table:
    """The first `limit` of `items` with unique ids, as a table.

    items: parts by name, with the `place` that each row has in `file`: it goes into the error, and into the id where
    ids clash. The schema's metadata `notes` is a JSON list of sentences for the user.
    """
    settled, n_repeats = settle_ids(items)
    notes = [f"{file}: {n_repeats} rows repeat an earlier row and count once"] if n_repeats else []
    return pa.Table.from_pylist(settled[:limit], schema=schema.with_metadata({"notes": json.dumps(notes)}))


def notes_of(items: pa.Table) -> list[str]:
    """What a benchmark tells the user about its own file."""
    return json.loads((items.schema.metadata or {}).get(b"notes", b"[]"))


def settle_ids(items: Sequence[Mapping[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Items with unique ids and final errors, without `place`, and how many rows were repeats of an earlier one."""
    distinct: dict[str, dict[tuple, Mapping[str, Any]]] = {}
    for item in items:
        cells = (cell for name, cell in item.items() if name != "place")
        content = tuple(tuple(cell) if isinstance(cell, list) else cell for cell in cells)
        distinct.setdefault(item["item_id"], {}).setdefault(content, item)
    kept = {id(item) for twins in distinct.values() for item in twins.values()}
    twins = {item_id: list(same.values()) for item_id, same in distinct.items()}
    settled, taken = [], set(distinct)
    for item in items:
        if id(item) in kept:
            settled.append(_settled(item, twins[item["item_id"]], taken))
            taken.add(settled[-1]["item_id"])
    return settled, len(items) - len(settled)


def _settled(
    item: Mapping[str, Any], twins: Sequence[Mapping[str, Any]], taken: Collection[str]
) -> dict[str, Any]:
    """`item` without its place, which goes into the error, and into the id where `twins` differ under it.

    Again and again where an id like that is `taken`, as a row may be called so by its file.
    """
    settled = {name: cell for name, cell in item.items() if name != "place"}
    place, error = item["place"], item["item_error"]
    if len(twins) > 1:
        places = ", ".join(twin["place"] for twin in twins[:5]) + (" ..." if len(twins) > 5 else "")
        error = f"duplicate_id: {short(item['item_id'])} names different rows: {places}; give each its own id"
        name = f"{item['item_id']} [{place}]"
        while name in taken:
            name += f" [{place}]"
        settled |= {"item_id": name, "gold_index": None}
    return settled | {"item_error": f"{error} ({place})" if error else None}
