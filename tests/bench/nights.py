"""How a night of `pipelines.rescore` grows: with the rows stored (memory, time) and with the rows that changed (time).

    python -m tests.bench.nights --rows 10000,100000,1000000 --cold 10000,100000 --changed 0,1000,10000

Synthetic text, toy scorers that cost nothing, or `--delay` seconds a row and metric: what is measured is everything but scoring,
the worst case for a ratio. Every night is a process of its own; its peak is that of this process, Ray's not counted in. `scoring` is seconds inside the metrics, all workers together; `of cold` says, where the whole store was scored
before, how much of that work a night did, by scores and by seconds inside the metrics.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic.dataclasses import dataclass

from operators.aggregate import MEASURES, finish_rows
from operators.asked import digests
from operators.extraction import Extract
from operators.fingerprint import canonical, fingerprint
from operators.frames import with_columns
from operators.nights import NIGHT_ROW
from operators.schema import ASKED, METRICS, STORED_RESPONSE
from operators.store import Store
from pipelines.night_record import describe
from tests import toys
from tests.bench.watched import watched
from tests.pipelines.cli import ROOT, TOYS

PART = 10_000  # rows of a part
TEXT = "a dog barks twice and then a car passes while rain falls on the roof near people who talk"
WORDS = np.array(TEXT.split())
SCORERS = {f"m{n}": getattr(toys, f"M{n}")() for n in range(1, 7)}
SERIES = "toy"


@dataclass(frozen=True)
class Synthetic:
    """A model of the bench: it is only its name."""

    reads: ClassVar[tuple[str, ...]] = ("question",)
    writes: ClassVar[tuple[str, ...]] = ("response",)
    version: ClassVar[int] = 1
    name: str = "synthetic"


class Spent(NamedTuple):
    """seconds: of the wall clock. peak_mb: of the process itself. computed: scores. scoring: seconds inside the metrics. record:
    run.json."""

    seconds: float
    peak_mb: float
    computed: int
    scoring: float
    record: dict[str, Any]


def fill(root: Path, first: int, last: int) -> None:
    """Store the questions and responses of the numbers from `first` up to `last`, in parts."""
    store, model = Store(str(root)), Synthetic()
    for start in range(first, last, PART):
        asked, said = questions(range(start, min(start + PART, last)))
        store.asked(model).append(asked)
        store.responses(model).append(said)


def questions(numbers: range) -> tuple[pa.Table, pa.Table]:
    """ASKED and STORED_RESPONSE rows of these numbers; texts are drawn from a number's own seed."""
    n, keys = len(numbers), [_key("r", number) for number in numbers]
    draws = np.random.default_rng(numbers.start).integers(0, len(WORDS), size=(n, 40))
    said = [
        f"[PERCEPTION] {t[:60]} [ANALYSIS] {t[60:120]} [REASONING] {t[120:]} {k} [ANSWER] (A) dog"
        for t, k in ((" ".join(WORDS[row]), k) for row, k in zip(draws, numbers, strict=True))
    ]
    cells: dict[str, Any] = {
        "key": [_key("q", number) for number in numbers],
        "asked_at": [datetime(2026, 1, 1, tzinfo=UTC)] * n,
        "model": ["synthetic"] * n,
        "trial": [0] * n,
        "response_key": keys,
        "item_id": [f"item{number:08d}" for number in numbers],
        "benchmark": ["bench"] * n,
        "question": [f"What is heard in scene {number} of the recording?" for number in numbers],
        "choices": [["dog", "cat", "car", "rain"]] * n,
        "gold_index": [number % 2 for number in numbers],
        "audio_uris": [[f"{number}.wav"] for number in numbers],
        "audio_hashes": [[_key("a", number)] for number in numbers],
        "audio_seconds": [[10.0]] * n,
        "category": [f"category {number % 7}" for number in numbers],
    }
    columns = [pa.array(cells.get(f.name, [None] * n), f.type) for f in ASKED]
    asked = pa.table(columns, schema=ASKED)
    asked = with_columns(asked, {"content": pa.array(digests(asked), pa.string())})
    rows = {
        "key": keys,
        "response": said,
        **{name: cells[name] for name in ("item_id", "benchmark", "trial")},
    }
    return asked, pa.table(
        [pa.array(rows.get(f.name, [None] * n), f.type) for f in STORED_RESPONSE], STORED_RESPONSE.names
    )


def _key(kind: str, number: int) -> str:
    return hashlib.sha256(f"{kind}{number}".encode()).hexdigest()[:32]


def seed_night(root: Path, name: str = "2026-01-01") -> None:
    """A finished night over everything stored, as one that scored it all would have left it."""
    store, model = Store(str(root)), Synthetic()
    folder = root / "nightly" / SERIES / name
    folder.mkdir(parents=True)
    with pq.ParquetWriter(folder / "rows.parquet", NIGHT_ROW, compression="zstd") as writer:
        for asked in store.asked(model).stream(ASKED.names):
            writer.write_table(_scored(asked))
    specs = {"extract": Extract(), **SCORERS}
    record = {
        "fingerprints": {key: fingerprint(spec) for key, spec in specs.items()},
        "specs": {key: canonical(spec) for key, spec in specs.items()},
        "models": {"synthetic": describe(store, fingerprint(model))},
    }
    (folder / "run.json").write_text(json.dumps(record))


def _scored(asked: pa.Table) -> pa.Table:
    values = np.random.default_rng(len(asked)).random(len(asked))
    blank = {f.name: pa.nulls(len(asked), f.type) for f in NIGHT_ROW if f.name not in asked.column_names}
    scores = {name: pa.array(values) for name in (*METRICS, *MEASURES)}
    zeros = {
        name: pa.array(np.zeros(len(asked), np.int64)) for name in ("answer_index", "answer_index_paper")
    }
    whose = {"fingerprint": pa.repeat(fingerprint(Synthetic()), len(asked))}
    return (
        finish_rows(with_columns(asked, {**blank, **scores, **zeros, **whose}))
        .select(NIGHT_ROW.names)
        .cast(NIGHT_ROW)
    )


def night(root: Path, out: Path, *overrides: str) -> Spent:
    """One night in a process of its own."""
    where = [f"store.root={root}", f"out={out}", "cluster.num_cpus=2", *overrides]
    command = [sys.executable, "-m", "pipelines.rescore", *TOYS, *where]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    started = time.perf_counter()
    with open(f"{out}.log", "wb") as log:
        used = watched(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    seconds = time.perf_counter() - started
    if used.status not in (0, 3):
        sys.exit(Path(f"{out}.log").read_text())
    record = json.loads((out / "run.json").read_text())
    tallies = [tally for name, tally in record["stages"].items() if name in SCORERS]
    computed, scoring = (sum(tally[name] for tally in tallies) for name in ("computed", "seconds"))
    return Spent(seconds, used.peak_mb, computed, scoring, record)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default="10000,100000")
    parser.add_argument("--cold", default="10000")
    parser.add_argument("--changed", default="0,1000,10000")
    parser.add_argument("--delay", type=float, default=0.0)
    parser.add_argument("--folder", type=Path, default=Path("nights-bench"))
    chosen = parser.parse_args(arguments)
    cold, changed = ([int(n) for n in text.split(",") if n] for text in (chosen.cold, chosen.changed))
    os.environ["TOY_DELAY"] = str(chosen.delay)
    print(f"{'rows':>9} {'changed':>9} {'scores':>9} {'seconds':>8} {'peak MB':>8} {'scoring':>8}  of cold")
    for rows in map(int, chosen.rows.split(",")):
        root, whole = chosen.folder / str(rows) / "store", None
        fill(root, 0, rows)
        if rows in cold:
            whole = night(root, root.parent / "cold")
            show(rows, rows, whole, whole)
            shutil.rmtree(root / "nightly")
        seed_night(root)
        stored = rows
        for number, more in enumerate(changed):
            fill(root, stored, stored + more)
            stored += more
            show(stored, more, night(root, root.parent / f"warm{number}", "max_failure_rate=1"), whole)
        shutil.rmtree(root.parent)


def show(rows: int, changed: int, spent: Spent, whole: Spent | None) -> None:
    line = f"{rows:>9} {changed:>9} {spent.computed:>9} {spent.seconds:>8.1f} {spent.peak_mb:>8.0f} {spent.scoring:>8.1f}"
    if whole:
        line += f"  {spent.computed / whole.computed:.2%} of scores, {spent.scoring / whole.scoring:.2%} of seconds"
    print(line, flush=True)


if __name__ == "__main__":
    main()
