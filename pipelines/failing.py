"""Whether a run has failed: by the share of its items that could not be used, and of rows that its stages failed on.

Both are held to `max_failure_rate`, where one is given. Left at null it lets half of a stage's rows fail, and any number of
items but all: what is wrong with single rows of a user's file is counted in the tables, but a run that could use nothing (a
wrong folder of audio, say) must not look like one that worked. Responses that exist already can be scored without their
clips, all but M1: then clips that cannot be heard are told, and fail a run only where a limit says so.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.phases import Journal

OF_STAGE = 0.5


def failing(limit: float | None, journal: Journal, rows: pa.Table) -> list[str]:
    """What to say of the items of `rows` (item_id, item_error, audio_error; response, where there are such), and of every
    stage, where more failed than `limit` allows."""
    return unusable(rows, limit) + journal.failing(OF_STAGE if limit is None else limit)


def unusable(rows: pa.Table, limit: float | None) -> list[str]:
    """What to say where more than the share `limit` of the items, for null all, cannot be used: how many, by reason, and the
    first one."""
    deaf = rows["audio_error"]
    if limit is None and "response" in rows.column_names:
        deaf = pc.if_else(pc.is_valid(rows["response"]), pa.scalar(None, pa.string()), deaf)
    bad, n_items = _faulty(rows, pc.coalesce(rows["item_error"], deaf))
    passed = len(bad) == n_items > 0 if limit is None else len(bad) > limit * n_items
    return (
        [f"{len(bad)} of {n_items} items have a fault or a clip that cannot be heard: {counted(bad)}"]
        if passed
        else []
    )


def unheard(rows: pa.Table) -> str | None:
    """A sentence on items most of which cannot be heard, which a run over existing responses outlives."""
    bad, n_items = _faulty(rows, rows["audio_error"])
    return (
        f"{len(bad)} of {n_items} items cannot be heard, so they have no M1 and no ARIA: {counted(bad)}"
        if 2 * len(bad) > n_items
        else None
    )


def _faulty(rows: pa.Table, errors: pa.ChunkedArray) -> tuple[list[str], int]:
    """The error of every item that has one in all of its rows, and the number of items."""
    fine: set[str] = set()
    found: dict[str, str] = {}
    for item, error in zip(rows["item_id"].to_pylist(), errors.to_pylist(), strict=True):
        if error is None:
            fine.add(item)
        else:
            found.setdefault(item, error)
    bad = [error for item, error in found.items() if item not in fine]
    return bad, len(fine | found.keys())


def counted(errors: list[str]) -> str:
    """The reasons among some errors, the most frequent first, and one of the errors in full."""
    reasons = Counter(error.partition(":")[0] for error in errors).most_common()
    return f"{', '.join(f'{reason} {count}' for reason, count in reasons)}; the first: {errors[0]}"


def told(limit: float | None) -> str:
    """The limit as an error message names it."""
    if limit is None:
        return f"max_failure_rate=null: {OF_STAGE:g} of a stage's rows, and not all of the items"
    return f"max_failure_rate={limit:g}"
