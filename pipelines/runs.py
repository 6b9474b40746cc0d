"""Reading back what a run left: its folder by name, or the newest one, its rows and its record."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from omegaconf import ListConfig

from operators.asked import PLACE
from operators.fingerprint import differing
from operators.frames import TEXT_ERROR, finite, readable, told_of_text
from operators.printing import printable
from operators.schema import CHAIN, METRICS, result_schema
from operators.tables import TableError
from pipelines.config import ConfigError

RESULTS = "results.parquet"
SCORING = ("extract", *(metric[:2] for metric in METRICS))  # stages that must agree for numbers to compare
# Files that only one kind of folder has, and what to say of it where another was asked for.
_OTHERS = {
    RESULTS: "it is a run of pipelines.aria_eval or rescore, and another kind was asked for",
    "votes.parquet": "it is a run of pipelines.mugen_eval, which has no chains to score: pipelines.report shows it",
    "verdicts.parquet": "it is a run of pipelines.judge_audit, which has no chains to score: pipelines.report shows it",
    "drift.json": "it is a run of pipelines.rescore that kept no rows: run it again with results=true",
    "stress.parquet": "it is what pipelines.stress left: give the folder of the run that it was made from, see its run.json",
}
ESSENTIAL = ("item_id", "benchmark", "model", "trial", "response", *CHAIN.names, *METRICS)


def named(run: Any) -> list[str | None]:
    """The folders that a config's `run` names: [None], which stands for the newest, where it is null. Raises ConfigError."""
    if run is None:
        return [None]
    names = list(run) if isinstance(run, (list, ListConfig)) else [run]
    if not names or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"config key run: the folder of a run, or a list of folders, not {run!r}")
    if len({Path(name).resolve() for name in names}) < len(names):
        raise ConfigError("config key run: a folder stands there twice")
    return names


def find_run(folder: str | None, file: str = RESULTS) -> Path:
    """The folder of a run that holds `file`: the one given, or the newest in runs/. Raises TableError."""
    if folder is None:
        return newest_first(file)[0]
    place = Path(folder)
    if place.is_file():
        raise TableError(f"{folder} is a file; run= names the folder that it is in: run={place.parent}")
    if not place.is_dir():
        raise TableError(
            f"{folder}: there is no such folder (looked from {Path.cwd()}); run= names a run's folder"
        )
    if not (place / file).is_file():
        raise TableError(f"{folder} holds no {file}: {_instead(place)}")
    return place


def newest_first(file: str = RESULTS) -> list[Path]:
    """The folders of runs in runs/ that hold `file`. Raises TableError where there is none."""
    found = sorted(Path("runs").glob(f"*/{file}"), key=lambda path: path.stat().st_mtime, reverse=True)
    if not found:
        raise TableError(
            f"runs/ holds no run with {file}: run python -m pipelines.aria_eval, or set run=FOLDER"
        )
    return [path.parent for path in found]


def _instead(folder: Path) -> str:
    """What a folder is that is not the run asked for, and what to do."""
    for file, told in _OTHERS.items():
        if (folder / file).is_file():
            return told
    return "it is not the folder of a finished run"


def read_results(folder: Path) -> pa.Table:
    """The rows of a run in the result schema and TEXT_ERROR; a column that runs did not have yet when it was made is null.

    What a model wrote may be anything: text that is not UTF-8 is replaced and named by its row (`frames.readable`), and
    stops nobody from reading the others. Raises TableError for a damaged file or one of another make.
    """
    path = folder / RESULTS
    try:
        table, schema = pq.ParquetFile(path).read(), result_schema()
        if missing := [name for name in ESSENTIAL if name not in table.column_names]:
            raise TableError(
                f"{path} lacks the columns {', '.join(missing)}: it is not a run's table of results"
            )
        table = readable(with_missing_columns(table, schema).select(schema.names))
        table = table.cast(schema.append(table.schema.field(TEXT_ERROR)))
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{path} cannot be read: {error}") from None
    _refuse_broken_groups(path, table)
    return finite(table)


def _refuse_broken_groups(path: Path, table: pa.Table) -> None:
    """`groups` is read wherever results are broken down."""
    for text in pc.unique(table["groups"]).to_pylist():
        try:
            named = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            named = None
        if not isinstance(named, dict) or not all(isinstance(one, str | None) for one in named.values()):
            row = table["groups"].to_pylist().index(text) + 1
            raise TableError(
                f"{path}, row {row}, column 'groups': {printable(text)!r} is no JSON object of texts, such as "
                '{"difficulty": "hard"}; score the run again'
            )


def with_missing_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """`table` with every column of `schema`; one that runs did not have yet when it was made is null."""
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return table


def rows_of_runs(folders: Sequence[Path]) -> pa.Table:
    """The rows of all runs. A row that two runs share (a yardstick) counts once, wherever its clips lay.

    Raises TableError for a run without rows, for two rows of one model, item and trial that differ (they would be
    averaged as one model), and for two questions of one benchmark and id (they would be one item).
    """
    seen: dict[tuple, tuple[Path, dict[str, Any]]] = {}
    asked: dict[tuple, tuple[Path, tuple]] = {}
    tables = []
    for folder in folders:
        table, kept = read_results(folder), []
        if not table.num_rows:
            raise TableError(f"{folder}: the run has no rows")
        for place, row in enumerate(table.drop_columns(["audio_uris"]).to_pylist()):
            key = tuple(row[name] for name in PLACE)
            _refuse_another_question(asked, row, folder)
            first, known = seen.setdefault(key, (folder, row))
            if known is row:
                kept.append(place)
            elif known != row:
                raise TableError(
                    f"{first} and {folder} hold different rows under one name ({', '.join(map(repr, key))}); give one "
                    "of the models another name (model.name=...) and run it again"
                )
        tables.append(table.take(pa.array(kept, pa.int64())))
    return pa.concat_tables(tables)


def say_unreadable(rows: pa.Table) -> None:
    """A note on standard error where rows hold text that is not UTF-8."""
    if told := told_of_text([rows]):
        print(f"note: {told}", file=sys.stderr)


def _refuse_another_question(
    asked: dict[tuple, tuple[Path, tuple]], row: Mapping[str, Any], folder: Path
) -> None:
    """Clips are compared where both runs decoded them."""
    where = row["benchmark"], row["item_id"]
    question = row["question"], tuple(row["choices"] or ()), row["gold_index"]
    clips = tuple(row["audio_hashes"] or ())
    clips = clips if clips and None not in clips else None
    first, (*known, heard) = asked.setdefault(where, (folder, (*question, clips)))
    if tuple(known) != question or (None not in (heard, clips) and heard != clips):
        raise TableError(
            f"{first} and {folder} ask different questions under one name ({', '.join(map(repr, where))}): another "
            "question, other choices or clips; give one of the benchmarks another name (benchmark.name=...) and run it again"
        )
    if heard is None and clips is not None:
        asked[where] = first, (*known, clips)


def read_record(folder: Path) -> dict[str, Any]:
    """run.json of a run, or {} where it is gone. It says what was run and is never executed."""
    path = folder / "run.json"
    if not path.is_file():
        return {}
    try:
        record = json.loads(path.read_text(encoding="utf-8"), parse_float=_finite_or_text, parse_constant=str)
    except (ValueError, RecursionError) as error:
        raise TableError(f"{path} is no whole JSON file: {error}") from None
    return record if isinstance(record, dict) else {}


def _finite_or_text(number: str) -> float | str:
    """1e999 is no number that any other file may hold; it stays what was written."""
    return value if math.isfinite(value := float(number)) else number


def recorded_fingerprints(record: Mapping[str, Any]) -> Mapping[str, str]:
    """{stage: fingerprint} of a run.json; {} where it names none."""
    return record.get("fingerprints") or {}


def unlike_scorers(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The stages whose scorers differ between runs, given by their run.json; all, where several runs record none."""
    prints = [recorded_fingerprints(record) for record in records]
    if len(prints) > 1 and not any(prints):
        return list(SCORING)
    return differing(prints, SCORING)


def refuse_other_scorers(records: Mapping[str, Mapping[str, Any]], key: str) -> None:
    """Raises ConfigError where runs, given as {name: run.json}, were scored by different scorers, or none says by which:
    their means are not known to be on one scale, and say nothing about models or benchmarks. `key`: the config key that
    allows it all the same."""
    prints = {name: recorded_fingerprints(record) for name, record in records.items()}
    told = [
        f"  {stage}: "
        + ", ".join(f"{name} {found.get(stage) or 'not recorded'}" for name, found in prints.items())
        for stage in unlike_scorers(list(records.values()))
    ]
    if told:
        raise ConfigError(
            "\n".join(["the runs were scored by different scorers, or do not say by which, so their numbers do not compare:",
                       *told,
                       f"Score one again with the other's scorers, or set {key}=true to see them together all the same"])
        )  # fmt: skip
