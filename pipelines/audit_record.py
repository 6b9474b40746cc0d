"""What an audit leaves behind: verdicts, instances and tables as Parquet and CSV, the verdict page, run.json."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig

from operators.audit.page import audit_page
from operators.base import Spec
from operators.export import write_all
from pipelines.phases import Journal
from pipelines.record import write_record

TABLES = ("accuracy", "states", "rates")


def write_audit(
    folder: Path,
    items: pa.Table,
    tables: Mapping[str, pa.Table],
    config: DictConfig,
    specs: Mapping[str, Spec],
    journal: Journal,
    notes: Mapping[str, Any],
) -> None:
    """<name>.parquet for every table, those that people read in other forms too, audit.html and run.json."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("verdicts", "instances"):
        pq.write_table(tables[name], folder / f"{name}.parquet", compression="zstd")
    pq.write_table(items, folder / "items.parquet", compression="zstd")
    for name in TABLES:
        write_all(folder, name, tables[name])
    verdicts, cells = tables["verdicts"].to_pylist(), tables["instances"].to_pylist()
    judges = list(dict.fromkeys(row["model"] for row in verdicts if row["control"] == "none"))
    benchmark = ", ".join(dict.fromkeys(items["benchmark"].to_pylist()))
    title = f"Audit of {', '.join(judges) or 'no judge'} on {benchmark}"
    text = audit_page(title, items, verdicts, cells, {name: tables[name] for name in TABLES})
    (folder / "audit.html").write_text(text, encoding="utf-8")
    write_record(folder, config, specs, journal, notes)
