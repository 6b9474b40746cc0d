"""Find or compute: the store first, then Ray Data for what it lacks, each key once.

Successes are stored block by block as they arrive, so a crash costs the blocks in flight. Failures are not stored: they
become reasons in this run and are tried again by the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.base import Stage
from operators.fingerprint import row_keys
from operators.frames import to_batch, with_columns
from operators.store import Shelf
from pipelines.execution import run


@dataclass
class Tally:
    """What one stage did. `seconds`: time inside it, summed over its actors, without loading weights."""

    rows: int = 0
    unusable: int = 0
    from_store: int = 0
    computed: int = 0
    failed: int = 0
    seconds: float = 0.0

    def as_dict(self) -> dict[str, float | None]:
        return {**asdict(self), "rows_per_second": self.computed / self.seconds if self.seconds else None}

    @property
    def failure_rate(self) -> float:
        """Failed rows among those that could be tried."""
        usable = self.rows - self.unusable
        return self.failed / usable if usable else 0.0


class Lookup:
    """One stage's results by key, for the rows of a table.

    `blocked` says per row why it cannot be tried (None: it can). `columns` maps stored columns to the columns of a
    finished block, where the names differ; `reason` is the column in which the stage itself names a failed row.
    """

    def __init__(
        self,
        stage: Stage,
        shelf: Shelf,
        rows: pa.Table,
        blocked: Sequence[str | None],
        reason: str,
        columns: dict[str, str] | None = None,
    ) -> None:
        self.stage, self._shelf, self._reason, self._columns = stage, shelf, reason, columns or {}
        self._blocked = list(blocked)
        self._keys = self._row_keys(rows)
        stored = shelf.find([key for key in self._keys if key is not None])
        self._known = {entry["key"]: entry for entry in stored.to_pylist()}
        self._stored = set(self._known)
        self._failures: dict[str, str] = {}
        self._seconds = 0.0

    def _row_keys(self, rows: pa.Table) -> list[str | None]:
        usable = np.flatnonzero([reason is None for reason in self._blocked])
        keys: list[str | None] = [None] * rows.num_rows
        batch = to_batch(rows.take(usable), self.stage.spec.reads)
        for row, key in zip(usable, row_keys(self.stage.spec, batch), strict=True):
            keys[row] = key
        return keys

    def mark(self, rows: pa.Table) -> tuple[pa.Table, np.ndarray]:
        """`rows` with this stage's key and todo columns; todo is the first row of every key not yet known."""
        seen = set(self._known)
        todo = [key is not None and key not in seen and not seen.add(key) for key in self._keys]
        name = self.stage.name
        marks = {f"{name}.todo": pa.array(todo, pa.bool_()), f"{name}.key": pa.array(self._keys, pa.string())}
        return with_columns(rows, marks), np.asarray(todo, dtype=bool)

    def take(self, block: pa.Table) -> None:
        """Keep a finished block: successes go into the store, failures are remembered."""
        name, mine = self.stage.name, block.filter(block[f"{self.stage.name}.todo"])
        value = mine[self._columns.get("value", "response")]
        silent = pc.if_else(pc.is_null(value), "no_value: the stage gave neither a value nor a reason", None)
        why = pc.coalesce(mine[f"{name}.error"], mine[self._reason], silent)
        for key, reason in zip(mine[f"{name}.key"].to_pylist(), why.to_pylist(), strict=True):
            if reason is not None:
                self._failures[key] = reason
        columns = {"key": f"{name}.key", **self._columns}
        stored = {column: mine[columns.get(column, column)] for column in self._shelf.schema.names}
        good = pa.table(stored).filter(pc.is_null(why)).cast(self._shelf.schema)
        self._shelf.append(good)
        self._known.update((entry["key"], entry) for entry in good.to_pylist())
        self._seconds += pc.sum(mine[f"{name}.seconds"]).as_py() or 0.0

    def results(self) -> tuple[list[dict | None], list[str | None]]:
        """Per row the stored entry, or None and the reason why there is none."""
        entries = [self._known.get(key) for key in self._keys]
        reasons = [
            None
            if entry
            else (blocked or self._failures.get(key) or "not_computed: the run ended before this row")
            for entry, blocked, key in zip(entries, self._blocked, self._keys, strict=True)
        ]
        return entries, reasons

    def tally(self) -> Tally:
        keys = [key for key in self._keys if key is not None]
        failed = sum(key not in self._known for key in keys)
        computed = len(self._known) - len(self._stored) + len(self._failures)
        stored = sum(key in self._stored for key in keys)
        return Tally(len(self._keys), len(self._keys) - len(keys), stored, computed, failed, self._seconds)


def find_or_compute(lookups: list[Lookup], rows: pa.Table, title: str, carry: Sequence[str] = ()) -> None:
    """Compute on Ray Data what the `lookups` do not know; `carry` names columns that their shelves also store."""
    reads = {name for lookup in lookups for name in lookup.stage.spec.reads}
    table, wanted = rows.select(sorted(reads | set(carry))), np.zeros(rows.num_rows, dtype=bool)
    for lookup in lookups:
        table, todo = lookup.mark(table)
        wanted |= todo
    pending, together = by_clips(table.take(np.flatnonzero(wanted)))
    for block in run([lookup.stage for lookup in lookups], pending, title, together):
        for lookup in lookups:
            lookup.take(block)


def by_clips(table: pa.Table) -> tuple[pa.Table, str | None]:
    """Rows of the same clips, in whatever order, next to each other: one actor meets them and encodes each clip once.

    Gives the name of the column that such rows agree in too; None, and the table as it is, where no stage hears clips.
    """
    if "audio_hashes" not in table.column_names:
        return table, None
    heard = table["audio_hashes"].to_pylist()
    clips = ["".join(sorted(name or "" for name in hashes or ())) for hashes in heard]
    return with_columns(table, {"clips": pa.array(clips, pa.string())}).sort_by("clips"), "clips"
