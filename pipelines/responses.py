"""Joining what models said to the items they were asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.frames import with_columns


def join_items(items: pa.Table, responses: pa.Table) -> pa.Table:
    """Every response with its item, plus `gold_answer` (text of the right choice) and `row_error`.

    Where several items share an id (such rows carry an item_error), the k-th response under that id of a model and
    trial belongs to the k-th item. Raises KeyError for a response whose item is unknown.
    """
    places: dict[str, list[int]] = {}
    for row, name in enumerate(items["item_id"].to_pylist()):
        places.setdefault(name, []).append(row)
    met: dict[tuple, int] = {}
    rows = np.empty(responses.num_rows, dtype=np.int64)
    for row, key in enumerate(zip(*(responses[c].to_pylist() for c in ("item_id", "model", "trial")), strict=True)):
        candidates = places[key[0]]
        rows[row] = candidates[min(met.get(key, 0), len(candidates) - 1)]
        met[key] = met.get(key, 0) + 1
    joined = with_columns(items.take(rows), {name: responses[name] for name in responses.column_names})
    error = pc.coalesce(joined["item_error"], joined["response_error"])
    return with_columns(joined, {"gold_answer": _gold_answers(joined), "row_error": error})


def _gold_answers(rows: pa.Table) -> pa.Array:
    pairs = zip(rows["choices"].to_pylist(), rows["gold_index"].to_pylist(), strict=True)
    return pa.array([None if gold is None else choices[gold] for choices, gold in pairs], pa.string())
