"""What changed between two runs, by how much and why; refused where their scorers differ or are not recorded, unless forced.

python -m pipelines.compare last=runs/2026-11-29_03-00-00-rescore-offline now=runs/2026-11-30_03-00-00-rescore-offline
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig

from operators import drift_report
from operators.aggregate import finish_rows
from operators.drift import drift, other_scorers, unrecorded_scorers
from operators.fingerprint import differing
from operators.nights import Night
from operators.tables import TableError
from pipelines.config import ConfigError, entry, plain
from pipelines.record import check_out
from pipelines.rescore_settings import Compare


def main(config: DictConfig) -> None:
    """Compare two run folders. ConfigError where their scorers differ, or are unknown, and nothing forces it."""
    settings: Compare = plain(config)
    check_out(settings.out)
    last, now = (read_run(getattr(settings, name), name) for name in ("last", "now"))
    others = other_scorers(last, now)
    # What reads slots and answers stands before every metric and before accuracy.
    unlike = differing([night.record.get("fingerprints", {}) for night in (last, now)], ["extract"]) + others
    unknown = unrecorded_scorers(last, now)
    if (unlike or unknown) and not settings.force:
        raise ConfigError(refusal(last, now, unlike, unknown))
    found = drift(last, now)
    text = drift_report.to_markdown(found, others)
    if settings.out:
        folder = Path(settings.out)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "drift.md").write_text(text, encoding="utf-8")
        told = json.dumps(drift_report.to_json(found, others), indent=1, allow_nan=False)
        (folder / "drift.json").write_text(told + "\n", encoding="utf-8")
    print(text)


def refusal(last: Night, now: Night, others: list[str], unknown: list[str]) -> str:
    """Which metrics are not on one scale, or nobody knows whether they are, by their fingerprints, and what to do."""
    lines = [
        f"  {name.upper()}: {last.fingerprint(name) or 'not recorded'} and {now.fingerprint(name) or 'not recorded'}"
        for name in [*others, *unknown]
    ]
    told = all(night.fingerprint(name) for night in (last, now) for name in others)
    why = (
        "were scored by different scorers, so their numbers are not on one scale"
        if others and told
        else "do not both say which scorers they were scored by, so nobody knows whether their numbers are on one scale"
    )
    return "\n".join(
        [
            f"{last.name} and {now.name} {why}:",
            *lines,
            "Score both with the same scorers (pipelines.rescore does that for all stored responses), or set force=true",
        ]
    )


def read_run(folder: str | None, key: str) -> Night:
    """A run's results and record. Raises ConfigError for no folder, TableError for one without a run's files."""
    if not folder:
        raise ConfigError(f"set {key}=<folder of a run>, one that holds results.parquet and run.json")
    path = Path(folder)
    try:
        record = json.loads((path / "run.json").read_text(encoding="utf-8"))
        table = path / next((name for name in _TABLES if (path / name).exists()), _TABLES[0])
        names = pq.read_schema(table).names
        rows = pq.read_table(table, columns=[n for n in names if n not in _TEXTS])
    except FileNotFoundError as error:
        raise TableError(
            f"{folder} is not the folder of a finished run: it has no {Path(error.filename).name if error.filename else _TABLES[0]}"
        ) from error
    except (ValueError, pa.ArrowException) as error:
        raise TableError(f"{folder}: run.json or {' or '.join(_TABLES)} cannot be read: {error}") from error
    if not (isinstance(record, dict) and isinstance(record.get("fingerprints", {}), dict)):
        raise TableError(
            f"{path / 'run.json'} is not the record of a run: copy the whole folder of the run anew"
        )
    try:
        return Night(path.name or str(path), finish_rows(rows), record)
    except ValueError as error:
        raise TableError(f"{table}: {error}") from error


# The rows of a run; those of a night, without their texts.
_TABLES = ("results.parquet", "rows.parquet")
# What a comparison does not look at, and what fills most of a results.parquet.
_TEXTS = frozenset({"question", "response", "perception", "analysis", "reasoning", "answer", "usage"})

if __name__ == "__main__":
    entry("compare", main)
