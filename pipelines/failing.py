"""Whether a run has failed: by the share of its items that could not be used, and of rows that its stages failed on.

Both are held to `max_failure_rate`. Left at null it lets half of a stage's rows fail, and nine tenths of the items: what is
wrong with single clips or rows of a user's file is counted in the tables, but a run that could use next to nothing (a wrong
folder of audio, say) must not look like one that worked.
"""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.phases import Journal

OF_STAGE, OF_ITEMS = 0.5, 0.9


def failing(limit: float | None, journal: Journal, rows: pa.Table) -> list[str]:
    """What to say of the items of `rows` (item_id, item_error, audio_error), and of every stage, where more failed than
    `limit` allows."""
    of_stage, of_items = (OF_STAGE, OF_ITEMS) if limit is None else (limit, limit)
    return unusable(rows, of_items) + journal.failing(of_stage)


def unusable(rows: pa.Table, limit: float) -> list[str]:
    """What to say where more than the share `limit` of the items cannot be used: how many, by reason, and the first one."""
    errors = pc.coalesce(rows["item_error"], rows["audio_error"]).to_pylist()
    items = dict(zip(rows["item_id"].to_pylist(), errors, strict=True))
    bad = [error for error in items.values() if error]
    if len(bad) <= limit * len(items):
        return []
    reasons = Counter(error.partition(":")[0] for error in bad).most_common()
    counted = ", ".join(f"{reason} {count}" for reason, count in reasons)
    return [
        f"{len(bad)} of {len(items)} items have a fault or a clip that cannot be heard: {counted}; the first: {bad[0]}"
    ]


def told(limit: float | None) -> str:
    """The limit as an error message names it."""
    if limit is None:
        return f"max_failure_rate=null: {OF_STAGE:g} of a stage's rows, {OF_ITEMS:g} of the items"
    return f"max_failure_rate={limit:g}"
