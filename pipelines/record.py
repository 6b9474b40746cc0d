"""What a run leaves behind: results.parquet, summary.parquet, failures.csv and run.json in one folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from omegaconf import DictConfig, OmegaConf

from operators.base import Spec
from operators.fingerprint import canonical, fingerprint
from operators.schema import result_schema
from pipelines.phases import Journal

PACKAGES = (
    "audio-reasoning-eval", "torch", "transformers", "sentence-transformers", "onnxruntime", "faster-whisper",
    "ray", "pyarrow", "numpy", "soundfile", "soxr", "hydra-core",
)  # fmt: skip


def free_folder(name: str) -> Path:
    """runs/<time>-<name>, with a number where that is taken: the members of a sweep may start in one second."""
    stamp = f"{datetime.now():%Y-%m-%d_%H-%M-%S}-{name}"
    numbered = (Path("runs") / (stamp + (f"-{number}" if number else "")) for number in range(1000))
    return next(folder for folder in numbered if not folder.exists())


def write_tables(folder: Path, results: pa.Table, summary: pa.Table, failures: pa.Table) -> None:
    """Results in the declared column order and types, the summary beside them, failures for a quick look."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = result_schema()
    pq.write_table(results.select(schema.names).cast(schema), folder / "results.parquet", compression="zstd")
    pq.write_table(summary, folder / "summary.parquet")
    pyarrow.csv.write_csv(failures, folder / "failures.csv")


def write_record(
    folder: Path, config: DictConfig, specs: Mapping[str, Spec], journal: Journal, notes: Mapping[str, Any]
) -> None:
    """run.json: what was asked (composed config), what exactly ran (fingerprints, versions), how long it took."""
    record = {
        "config": OmegaConf.to_container(config, resolve=True),
        "fingerprints": {name: fingerprint(spec) for name, spec in specs.items()},
        "specs": {name: canonical(spec) for name, spec in specs.items()},
        "versions": versions(),
        "stages": {name: tally.as_dict() for name, tally in journal.stages.items()},
        "wall_seconds": journal.wall_seconds,
        **notes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Installed versions of the packages that bear on results."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
