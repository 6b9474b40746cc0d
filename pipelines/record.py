"""What a run leaves behind: results.parquet, summary.parquet and .md, failures.csv and run.json in one folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig, OmegaConf

from operators.base import Spec
from operators.breakdown import breakdown
from operators.export import to_csv
from operators.fingerprint import canonical, fingerprint
from operators.leaderboard import to_markdown
from operators.locators import is_uri, shown
from operators.schema import result_schema
from operators.versions import installed
from pipelines.config import ConfigError
from pipelines.phases import Journal

PACKAGES = (
    "audio-reasoning-eval", "torch", "transformers", "sentence-transformers", "onnxruntime", "faster-whisper",
    "ray", "pyarrow", "numpy", "soundfile", "soxr", "hydra-core", "openai", "vllm",
)  # fmt: skip


def free_folder(name: str) -> Path:
    """A new folder runs/<time>-<name>, with a number where that is taken: members of a sweep may start together."""
    stamp = f"{datetime.now():%Y-%m-%d_%H-%M-%S}-{name}"
    number, folder = 0, Path("runs") / stamp
    while True:
        try:
            folder.mkdir(parents=True)
            return folder
        except FileExistsError:
            number += 1
            folder = Path("runs") / f"{stamp}-{number}"


def check_out(out: str | None) -> None:
    """See that the folder `out`, where one is given, can be made and written to: before hours of work, not after them.

    Leaves none behind: where a run fails there is no folder that looks like its result. Raises ConfigError.
    """
    if not out:
        return
    if is_uri(out):
        raise ConfigError(
            f"config key out: a folder of this machine is needed, not {shown(out)}; copy it there after the run"
        )
    made = [folder for folder in (Path(out), *Path(out).parents) if not folder.exists()]
    try:
        Path(out).mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
        for folder in made:
            folder.rmdir()
    except OSError as error:
        raise ConfigError(f"config key out: nothing can be written to {out} ({error.strerror})") from error


def write_tables(folder: Path, results: pa.Table, summary: pa.Table, failures: pa.Table) -> None:
    """Results in the declared column order and types, the summary beside them, failures for a quick look."""
    folder.mkdir(parents=True, exist_ok=True)
    schema = result_schema()
    pq.write_table(results.select(schema.names).cast(schema), folder / "results.parquet", compression="zstd")
    write_summary(folder, summary, failures)


def write_summary(folder: Path, summary: pa.Table, failures: pa.Table) -> None:
    """The means of a run as Parquet and Markdown, and what went wrong how often as CSV."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(summary, folder / "summary.parquet")
    (folder / "failures.csv").write_bytes(to_csv(failures))
    text = "\n".join(part for part in (to_markdown(summary), breakdown(summary)) if part)
    (folder / "summary.md").write_text(text, encoding="utf-8")


def write_predictions(folder: Path, files: Mapping[str, list[dict[str, Any]]]) -> None:
    """predictions/<name>.json: what a benchmark's official script reads. Names of models are untrusted: kept in the folder.

    As the other tables, those of an earlier run in this folder are written over.
    """
    target = folder / "predictions"
    target.mkdir(parents=True, exist_ok=True)
    written: set[str] = set()
    for name, rows in files.items():
        safe = _cut(re.sub(r"[^\w.-]+", "_", name)).strip(".") or "model"
        own, number = safe, 1
        while own.casefold() in written:  # disks may not tell capitals from small letters
            own, number = f"{safe}-{number}", number + 1
        written.add(own.casefold())
        text = json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        # Half of a surrogate pair, which JSON may hold and UTF-8 may not, is escaped as it was in the benchmark's file.
        (target / f"{own}.json").write_bytes(text.encode("utf-8", "backslashreplace"))


def _cut(name: str) -> str:
    """`name`, or its two ends where it is longer than the 255 bytes that disks take, less a number and an ending."""
    whole = name.encode()
    return name if len(whole) <= 200 else (whole[:120] + whole[-80:]).decode(errors="ignore")


def write_record(
    folder: Path, config: DictConfig, specs: Mapping[str, Spec], journal: Journal, notes: Mapping[str, Any]
) -> None:
    """run.json: what was asked (composed config), what exactly ran (fingerprints, versions), how long it took."""
    record = {
        "config": presentable(OmegaConf.to_container(config, resolve=True)),
        "fingerprints": {name: fingerprint(spec) for name, spec in specs.items()},
        "specs": {name: canonical(spec) for name, spec in specs.items()},
        "versions": installed(PACKAGES),
        "stages": {name: tally.as_dict() for name, tally in journal.stages.items()},
        "wall_seconds": journal.wall_seconds,
        **notes,
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def presentable(value: Any) -> Any:
    """Plain config data with every URI as it may be written down: no user names, passwords or signed queries."""
    if isinstance(value, dict):
        return {key: presentable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [presentable(item) for item in value]
    return shown(value) if isinstance(value, str) else value
