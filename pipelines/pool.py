"""What one worker does: stages one after the other on a block of rows. Needs no ray.

A boolean column `<stage>.todo` limits a stage to the rows that need it. Each stage adds its declared columns,
`<stage>.error` (why a row failed in it), `<stage>.seconds` (its share of the time, without loading weights) and
`<stage>.encoded` (on one row of the block: how many distinct clips, texts ... it encoded for the block, as JSON). What a
stage did can be committed before the next one starts (pipelines/commit.py).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping

import numpy as np
import pyarrow as pa

from operators.base import Op, Spec, Stage, apply_by_row
from operators.batching import Ledger, Units
from operators.frames import to_batch, to_column, with_columns
from operators.lalms.asking import Lalm, Ready
from operators.schema import CHAIN, CLIPS, METRICS, RESPONSE, score_columns
from pipelines.commit import Committer

# The declared type of every column that a stage may write.
TYPES = {
    f.name: f.type
    for part in (CLIPS, RESPONSE, CHAIN, *map(score_columns, (*METRICS, "judge_score")))
    for f in part
}


class Pool:
    """The ops of some stages, built when first needed, kept for the life of the worker.

    Models that differ in their prompts alone are loaded once and share their memos. `ledger` gives the ledger of a stage that
    runs in several workers, `committer` writes results into the store.
    """

    def __init__(
        self,
        stages: list[Stage],
        ledger: Callable[[str], Ledger] | None = None,
        committer: Committer | None = None,
    ) -> None:
        self._stages, self._committer = stages, committer
        self._loader = {stage.name: _loader(stage, stages) for stage in stages}
        units = {name: Units(ledger(name) if ledger else None) for name in {*self._loader.values()}}
        self._units = {name: units[loader] for name, loader in self._loader.items()}
        self._ops: dict[str, Op] = {}
        self._ready: dict[str, Ready] = {}

    def __call__(self, table: pa.Table) -> pa.Table:
        keeps = self._committer
        written: set[str] = set()
        for stage in self._stages:
            table = self._run(stage, keeps.before(stage, table) if keeps else table, written)
            table = keeps.after(stage, table) if keeps else table
            written |= {*stage.spec.writes}
        return table

    def _run(self, stage: Stage, table: pa.Table, written: Collection[str]) -> pa.Table:
        todo = _todo(stage, table)
        columns, errors, spent = {}, [None] * table.num_rows, np.zeros(table.num_rows)
        if len(todo):
            op = self._op(stage)
            started = time.perf_counter()
            columns, failures = apply_by_row(stage.spec, op, to_batch(table.take(todo), stage.spec.reads))
            spent[todo] = (time.perf_counter() - started) / len(todo)
            for row, failure in zip(todo, failures, strict=True):
                errors[row] = failure
        encoded = self._units[stage.name].report()
        return _written(stage, table, columns, todo, errors, spent, encoded, written)

    def _op(self, stage: Stage) -> Op:
        if stage.name not in self._ops:
            with self._units[stage.name].at_hand():
                self._ops[stage.name] = self._built(stage)
        return self._ops[stage.name]

    def _built(self, stage: Stage) -> Op:
        if not _shares(stage.spec):
            return stage.spec.build()
        loader = self._loader[stage.name]
        if loader not in self._ready:
            self._ready[loader] = stage.spec.wordless.ready()
        return stage.spec.on(self._ready[loader])


def _loader(stage: Stage, stages: list[Stage]) -> str:
    """The name of the first of `stages` that loads what `stage` does."""
    if not _shares(stage.spec):
        return stage.name
    same = stage.spec.wordless
    return next(one.name for one in stages if _shares(one.spec) and one.spec.wordless == same)


def _shares(spec: Spec) -> bool:
    """Whether `spec` is a model that says what it loads; one that builds itself shares nothing."""
    return isinstance(spec, Lalm) and type(spec).build is Lalm.build


def given_up(stages: list[Stage], table: pa.Table, reason: str) -> pa.Table:
    """What a pool would return for rows that no worker survives: no results, `reason` wherever a stage had to run."""
    for stage in stages:
        todo = _todo(stage, table)
        errors = [reason if row in todo else None for row in range(table.num_rows)]
        table = _written(stage, table, {}, todo, errors, np.zeros(table.num_rows), {}, ())
    return table


def _todo(stage: Stage, table: pa.Table) -> np.ndarray:
    name = f"{stage.name}.todo"
    if name not in table.column_names:
        return np.arange(table.num_rows)
    return np.flatnonzero(table.column(name).to_numpy(zero_copy_only=False).astype(bool))


def _written(
    stage: Stage,
    table: pa.Table,
    columns: dict[str, np.ndarray],
    todo: np.ndarray,
    errors: list[str | None],
    spent: np.ndarray,
    encoded: Mapping[str, int],
    before: Collection[str],
) -> pa.Table:
    """`table` with a stage's columns: results in the rows `todo`, null where a row failed. Elsewhere null, or what another
    stage wrote there, where it has written the same columns (`before`) for rows of its own."""
    written: dict[str, pa.Array] = {}
    for name in stage.spec.writes:
        cells = np.full(table.num_rows, None, dtype=object)
        if name in before:
            cells[:] = table[name].to_pylist()
            cells[todo] = None
        for row, value in zip(todo, columns.get(name, ()), strict=name in columns):
            if errors[row] is None:
                cells[row] = value
        written[name] = to_column(cells, TYPES[name])
    written[f"{stage.name}.error"] = pa.array(errors, pa.string())
    written[f"{stage.name}.seconds"] = pa.array(spent)
    counts = [
        json.dumps(encoded) if row == min(todo, default=None) else None for row in range(table.num_rows)
    ]
    written[f"{stage.name}.encoded"] = pa.array(counts, pa.string())
    return with_columns(table, written)
