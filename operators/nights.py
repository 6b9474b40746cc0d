"""A summary of all stored responses as they were scored at one time: what a drift report compares.

Kept in the store itself, so that whoever runs the next one finds it: <root>/nightly/<series>/<time>/ holds rows.parquet
(this schema), summary.parquet, summary.md, drift.md, drift.json and run.json, which is written last: a night without it
did not finish and is not compared with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from operators.aggregate import MEASURES
from operators.asked import PLACE
from operators.frames import with_columns
from operators.schema import METRICS, result_schema
from operators.store import Store, StoreError

_KEPT = ("model", "benchmark", "category", "groups", "item_id", "trial", "gold_index", "item_error", "audio_error",
         "response_error", "row_error", "answer_index", "answer_reason", "answer_index_paper",
         *MEASURES, *(f"{metric}_reason" for metric in METRICS), "correct", "correct_paper")  # fmt: skip

# A row of a night: a result without its texts, and which model and which state of the item it belongs to.
NIGHT_ROW = pa.schema(
    [
        *(result_schema().field(name) for name in _KEPT),
        pa.field("fingerprint", pa.string()),
        pa.field("content", pa.string()),
    ]
)
_OTHER = "Compare with another night: against=<name>"


@dataclass(frozen=True)
class Night:
    """name: its time. rows: NIGHT_ROW; of a night in a store nothing, for they may be more than memory holds (`stream`).
    record: its run.json (`fingerprints`, `specs`, `models`)."""

    name: str
    rows: pa.Table
    record: Mapping[str, Any]

    def fingerprint(self, stage: str) -> str | None:
        """Of the Spec of "m1".."m6" or "extract"; None where it is not recorded."""
        return self.record.get("fingerprints", {}).get(stage)

    def spec(self, stage: str) -> Any:
        return self.record.get("specs", {}).get(stage)

    def model(self, name: str, benchmark: str) -> Mapping[str, Any]:
        """`fingerprint` and `spec` of the model that goes by `name` in this night."""
        return self.votes(name, benchmark) or self.record.get("models", {}).get(name, {})

    def votes(self, name: str, benchmark: str) -> Mapping[str, Any] | None:
        """The same of a model whose trials voted; None where `benchmark` does not name votes (operators.mugen.kept)."""
        told = self.record.get("voted", [])
        return next((one for one in told if (one["model"], one["benchmark"]) == (name, benchmark)), None)


def new_name() -> str:
    """The name of a night that ends now; names sort by time."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H-%M-%S-%fZ")


def finished(store: Store, series: str) -> list[str]:
    """The names of the nights of a series that finished, oldest first."""
    names = store.folders(f"nightly/{series}")
    return [name for name in names if store.read_json(f"nightly/{series}/{name}/run.json")]


def load(store: Store, series: str, name: str) -> Night:
    """A night of the store. Raises StoreError where there is none of that name, or its rows cannot be read."""
    place = f"nightly/{series}/{name}"
    record = store.read_json(f"{place}/run.json")
    if record is None:
        have = ", ".join(finished(store, series)) or "none"
        raise StoreError(f"no night {name!r} in series {series!r}; there is {have}")
    with _rows_file(store, place) as file:
        if missing := {*PLACE, *METRICS} - set(file.schema_arrow.names):
            raise StoreError(f"{place}/rows.parquet lacks {sorted(missing)}: {_OTHER}")
    return Night(name, NIGHT_ROW.empty_table(), record)


def stream(store: Store, series: str, name: str) -> Iterator[pa.Table]:
    """The rows of a night (NIGHT_ROW), some thousands at a time; what an older version did not keep is null."""
    with _rows_file(store, f"nightly/{series}/{name}") as file:
        for group in range(file.num_row_groups):
            # One at a time: asked for all of them, the reader holds what it has read of the file until its end.
            table = file.read_row_group(group)
            absent = {
                f.name: pa.nulls(len(table), f.type) for f in NIGHT_ROW if f.name not in table.column_names
            }
            yield with_columns(table, absent).select(NIGHT_ROW.names).cast(NIGHT_ROW)


@contextmanager
def _rows_file(store: Store, place: str) -> Iterator[pq.ParquetFile]:
    """The rows of the night at `place`, read piece by piece, wherever they lie. Raises StoreError where that fails."""
    name = f"{place}/rows.parquet"
    try:
        with store.reaching(name), store.filesystem.open(store.place(name), "rb") as source:
            yield pq.ParquetFile(source, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise StoreError(f"{name} cannot be read: {error}. {_OTHER}") from error


def last(store: Store, series: str) -> Night | None:
    """The night before this one; None before the first."""
    for name in reversed(store.folders(f"nightly/{series}")):
        if store.read_json(f"nightly/{series}/{name}/run.json"):
            return load(store, series, name)
    return None


def save(store: Store, series: str, name: str, folder: Path, names: tuple[str, ...]) -> str:
    """Copy the files `names` of a run's folder into the store, in that order; where they lie there."""
    place = f"nightly/{series}/{name}"
    for file in names:
        store.write_file(f"{place}/{file}", folder / file)
    return place
