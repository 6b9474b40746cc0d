"""What a second worker gives: the same rows scored as a run scores them with one actor and with two, a core each.

    python -m tests.bench.scaling [--metric m5] [--copies 3] [--repeats 3] [--json result.json]

Every turn begins with an empty store and looks its keys up there; its workers commit what they score, part by part, and a turn
in which a row is not stored once, by its worker, fails. Both take turns on one Ray session. `work s` lasts from the moment
the first block is begun until the last has arrived: starting actors and loading weights, which happen once however long a run
is, stand apart in `start s`. `busy` is the share of that time that the actors spent inside the metric, neither waiting nor
storing, `cpu s` the processor seconds of the metric, and `others` how many cores anything else used meanwhile, Ray included.

Two ratios come out. By the clock: rows per second, which counts only where `others` is near 0. By processor time, which says
something on a machine with other work too: 2 x (busy of two / busy of one) x (cpu s of one / cpu s of two), what two actors
would give on two cores of their own, as often idle as they were, and as slow side by side as they were.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from operators.base import Batch, Op, Resources, Spec, Stage
from operators.store import Store
from pipelines.commit import marked
from pipelines.config import Cluster
from pipelines.execution import run, session
from pipelines.lookup import Lookup
from tests.bench.rows import sample_rows
from tests.bench.throughput import METRICS, offline_scorers

TEXTS = ("perception", "analysis", "reasoning", "answer")
COLUMNS = "actors  rows  start s  work s  rows/s  busy  cpu s  others"


@dataclass(frozen=True)
class Accounted:
    """`spec`, with the processor seconds of each batch in place of the details of its first row."""

    version: ClassVar[int] = 1
    spec: Spec

    @property
    def reads(self) -> tuple[str, ...]:
        return self.spec.reads

    @property
    def writes(self) -> tuple[str, ...]:
        return self.spec.writes

    @property
    def details(self) -> str:
        return self.writes[-1]

    def build(self) -> Op:
        inner = self.spec.build()

        def op(batch: Batch) -> Batch:
            began = time.process_time()
            found = inner(batch)
            took = time.process_time() - began
            notes = np.full(len(found[self.details]), "0", dtype=object)
            notes[0] = repr(took)
            return {**found, self.details: notes}

        return op


@dataclass(frozen=True)
class Turn:
    """One pass over all rows, in seconds; see the module."""

    actors: int
    rows: int
    start: float
    work: float
    busy: float
    cpu: float
    others: float

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.work

    def __str__(self) -> str:
        return (
            f"{self.actors:>6}  {self.rows:>4}  {self.start:>7.1f}  {self.work:>6.1f}  {self.rows_per_second:>6.1f}"
            f"  {self.busy:>4.2f}  {self.cpu:>5.1f}  {self.others:>6.2f}"
        )


def by_clock(turns: Sequence[Turn]) -> float:
    """Rows per second of the fastest turn with two actors over those of the fastest with one."""
    one, two = (max(turn.rows_per_second for turn in turns if turn.actors == n) for n in (1, 2))
    return two / one


def by_processor(turns: Sequence[Turn]) -> float:
    """2 x busy_2 / busy_1 x cpu_1 / cpu_2, of the means over all turns."""
    (busy_1, cpu_1), (busy_2, cpu_2) = (
        np.mean([(turn.busy, turn.cpu) for turn in turns if turn.actors == n], axis=0) for n in (1, 2)
    )
    return float(2 * busy_2 / busy_1 * cpu_1 / cpu_2)


def copies_of_rows(copies: int) -> pa.Table:
    """The sample's 93 responses `copies` times, every text a little different, so that copies share none."""
    batch, tables = sample_rows(), []
    for copy in range(copies):
        columns = {name: column.tolist() for name, column in batch.items()}
        for name in TEXTS:
            columns[name] = [text and f"{text} This is take {copy + 1}." for text in columns[name]]
        tables.append(pa.table(columns))
    return pa.concat_tables(tables)


def looked_up(stage: Stage, rows: pa.Table, root: str) -> Lookup:
    """The rows of `stage` in a store at `root`, which has none of them yet."""
    value, reason, details = stage.spec.writes
    columns = {"value": value, "details": details}
    return Lookup(stage, Store(root).scores(value, stage.spec), rows, [None] * rows.num_rows, reason, columns)


def finished(lookup: Lookup, table: pa.Table, title: str) -> Iterator[pa.Table]:
    """The blocks of a run over the rows of `table`, which `lookup` marked, committed by their workers."""
    with marked(lookup.commit.shelf.store) as mark:
        for block in run([lookup.stage], table, title, None, [lookup.commit], mark):
            lookup.take(block)
            yield block


def check(lookup: Lookup) -> None:
    """SystemExit where a row that has a score is not stored once, by its worker."""
    tally, shelf = lookup.tally(), lookup.commit.shelf
    found = sum(pq.ParquetFile(path).metadata.num_rows for path in shelf.parts())
    if lookup.n_stored_here or found != tally.computed - tally.failed:
        sys.exit(f"{found} rows are stored of {tally}, {lookup.n_stored_here} of them by the driver")


def timed(blocks: Iterable[pa.Table], name: str, details: str, actors: int, rows: int) -> Turn:
    """Run through the `blocks` of the stage `name`, whose Spec is Accounted."""
    began, inside, cpu, start = time.perf_counter(), 0.0, 0.0, None
    for block in blocks:
        spent = sum(block[f"{name}.seconds"].to_pylist())
        used = sum(map(float, block[details].drop_null().to_pylist()))
        if start is None:
            first = time.perf_counter()
            start, machine, after_first = first - spent - began, machine_cpu(), -used
        inside, cpu, after_first = inside + spent, cpu + used, after_first + used
    ended = time.perf_counter()
    others = (machine_cpu() - machine - after_first) / (ended - first)
    work = ended - began - start
    return Turn(actors, rows, start, work, inside / (actors * work), cpu, others)


def machine_cpu() -> float:
    """Processor seconds of everything on this machine."""
    times = psutil.cpu_times()
    return times.user + times.nice + times.system


def main(arguments: Sequence[str] | None = None) -> list[Turn]:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--metric", choices=METRICS, default="m5")
    parser.add_argument("--copies", type=int, default=3, help="of the sample's 93 rows (default 3)")
    parser.add_argument("--repeats", type=int, default=3, help="turns of each (default 3)")
    parser.add_argument("--json", type=Path, help="write every figure here")
    given = parser.parse_args(arguments)
    # Ray's workers would give way to everything else on the machine, which says nothing about a second worker.
    os.environ.setdefault("RAY_worker_niceness", "0")
    spec, rows = Accounted(offline_scorers([given.metric])[given.metric]), copies_of_rows(given.copies)
    turns = []
    print(COLUMNS)
    with session(Cluster(num_cpus=2)):
        for number in range(2 * given.repeats):
            actors = 1 + number % 2
            stage = Stage(given.metric, spec, Resources(cpus=1, actors=actors, batch_size=256))
            with tempfile.TemporaryDirectory() as root:
                lookup = looked_up(stage, rows, root)
                todo = lookup.todo()
                table = lookup.mark(rows.select(spec.reads), todo)
                table = table.filter(pa.array(todo))  # of equal rows one is scored
                blocks = finished(lookup, table, f"{actors} at work")
                turns.append(timed(blocks, given.metric, spec.details, actors, table.num_rows))
                check(lookup)
            print(turns[-1], flush=True)
    print(f"{given.metric}, 2 actors to 1: {by_clock(turns):.2f} by the clock, ", end="")
    print(f"{by_processor(turns):.2f} by processor time")
    if given.json:
        given.json.write_text(json.dumps([asdict(one) for one in turns], indent=1) + "\n", encoding="utf-8")
    return turns


if __name__ == "__main__":
    main()
