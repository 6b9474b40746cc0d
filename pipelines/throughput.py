"""How long a plan would take, from the rows per second that earlier runs left in their run.json."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from operators.base import Stage
from operators.tables import TableError
from pipelines.runs import read_record

LEAST_ROWS = 8  # fewer say more about starting than about working


@dataclass(frozen=True)
class Rate:
    """Rows per second inside a stage, of one actor, and the folder of the run that measured it."""

    rows_per_second: float
    run: str

    def seconds(self, stage: Stage, rows: int) -> float:
        """Of `rows` rows in all actors of `stage`, without loading weights."""
        return rows / (self.rows_per_second * stage.resources.actors)


def measured(runs: Path, cluster: str) -> dict[str, Rate]:
    """{fingerprint of a stage's Spec: rate in the newest run on the cluster of this name}.

    A rate of other hardware, or of another Spec, says nothing: there is none then.
    """
    found = {}
    for path in sorted(runs.glob("*/run.json"), key=lambda path: path.stat().st_mtime):
        for fingerprint, rate in _rates(path.parent, cluster):
            found[fingerprint] = Rate(rate, path.parent.name)
    return found


def _rates(folder: Path, cluster: str) -> Iterator[tuple[str, float]]:
    try:
        record = read_record(folder)
    except TableError:
        return
    stages, fingerprints = _part(record, "stages"), _part(record, "fingerprints")
    if _part(record, "config", "cluster").get("name") != cluster:
        return
    for name, fingerprint in fingerprints.items():
        tally = _part(stages, name)
        rate, rows = tally.get("rows_per_second"), tally.get("computed")
        if isinstance(rate, float) and isinstance(rows, int) and rate > 0 and rows >= LEAST_ROWS:
            yield fingerprint, rate


def _part(record: dict[str, Any], *keys: str) -> dict[str, Any]:
    """The object under `keys` in a file that anybody may have written; {} where there is none."""
    for key in keys:
        record = record.get(key)
        if not isinstance(record, dict):
            return {}
    return record


def lasting(seconds: float) -> str:
    """A duration for a person."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
