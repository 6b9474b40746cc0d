"""Stages on Ray Data: the only module that imports ray.

Neighbouring stages with the same pool share one actor, which runs them one after the other; every other stage gets an
actor pool of its own, and blocks stream from pool to pool. A boolean column `<stage>.todo` limits a stage to the rows
that need it. Each stage adds its declared columns, `<stage>.error` (why a row failed in it) and `<stage>.seconds`.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from operators.base import Op, Resources, Stage, apply_by_row
from operators.frames import to_batch, to_column, with_columns
from operators.schema import CHAIN, CLIPS, METRICS, RESPONSE, score_columns

# The declared type of every column that a stage may write.
TYPES = {f.name: f.type for part in (CLIPS, RESPONSE, CHAIN, *map(score_columns, METRICS)) for f in part}


class ResourceError(RuntimeError):
    """The cluster is too small for the pools of a run."""


class Pool:
    """What one Ray actor does: the ops of its stages, built when first needed, kept for the life of the actor."""

    def __init__(self, stages: list[Stage]) -> None:
        self._stages = stages
        self._ops: dict[str, Op] = {}

    def __call__(self, table: pa.Table) -> pa.Table:
        for stage in self._stages:
            table = self._run(stage, table)
        return table

    def _run(self, stage: Stage, table: pa.Table) -> pa.Table:
        started = time.perf_counter()
        todo = _todo(stage, table)
        columns, errors = {}, [None] * table.num_rows
        if len(todo):
            op = self._op(stage)
            started = time.perf_counter()
            rows = to_batch(table.take(todo), stage.spec.reads)
            columns, failures = apply_by_row(stage.spec, op, rows)
            for row, failure in zip(todo, failures, strict=True):
                errors[row] = failure
        spent = np.zeros(table.num_rows)
        spent[todo] = (time.perf_counter() - started) / max(1, len(todo))
        written = {name: _spread(name, columns.get(name), todo, errors) for name in stage.spec.writes}
        written[f"{stage.name}.error"] = pa.array(errors, pa.string())
        written[f"{stage.name}.seconds"] = pa.array(spent)
        return with_columns(table, written)

    def _op(self, stage: Stage) -> Op:
        if stage.name not in self._ops:
            self._ops[stage.name] = stage.spec.build()
        return self._ops[stage.name]


def _todo(stage: Stage, table: pa.Table) -> np.ndarray:
    name = f"{stage.name}.todo"
    if name not in table.column_names:
        return np.arange(table.num_rows)
    return np.flatnonzero(table.column(name).to_numpy(zero_copy_only=False).astype(bool))


def _spread(name: str, values: np.ndarray | None, todo: np.ndarray, errors: list[str | None]) -> pa.Array:
    """Results for the rows `todo` as a whole column: null elsewhere and where the row failed."""
    cells = np.full(len(errors), None, dtype=object)
    for row, value in zip(todo, () if values is None else values, strict=values is not None):
        if errors[row] is None:
            cells[row] = value
    return to_column(cells, TYPES[name])


@contextmanager
def session(cluster: object) -> Iterator[None]:
    """A Ray session for one run: a small local one, or the cluster at `cluster.address`. One that is open is used."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Ray Data's own way of starting actors makes Ray's core print an error line per pool, about nothing of ours.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    import ray

    if ray.is_initialized():
        yield
        return
    local = (
        {}
        if cluster.address
        else {
            "num_cpus": cluster.num_cpus,
            "num_gpus": cluster.num_gpus,
            "object_store_memory": max(cluster.object_store_mb, 100) * 2**20,
            "include_dashboard": False,
        }
    )
    with _without_native_chatter():
        ray.init(
            address=cluster.address or "local", log_to_driver=False, logging_level=logging.ERROR, **local
        )
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # Ray shows one bar per operator; a run shows one per phase
    context.max_errored_blocks = 0  # an exception in a stage stops the run: nothing is dropped silently
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _without_native_chatter() -> Iterator[None]:
    """Silence what native code prints to standard error while Ray starts; failures come as exceptions."""
    saved = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def run(stages: list[Stage], table: pa.Table, title: str, together: str | None = None) -> Iterator[pa.Table]:
    """Stream `table` through `stages` and yield finished blocks as they come, in any order, under a progress bar.

    `together` names a column whose equal neighbours stay in one block, so that what they share (a clip) is worked on
    once whatever the number of actors. Needs an open `session`.
    """
    import ray

    if table.num_rows == 0:
        return
    resources = [stage.resources for stage in stages]
    rows = min(r.batch_size for r in resources)
    _check_room(stages, -(-table.num_rows // 8))
    blocks = list(cut(table, _block_rows(table.num_rows, rows, max(r.actors for r in resources)), together))
    dataset = ray.data.from_arrow(blocks)
    for chain in _pools(stages):
        dataset = _through(dataset, chain, len(blocks))
    with tqdm(total=table.num_rows, desc=f"{title:<10}", unit="row", smoothing=0) as bar:
        for block in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            bar.update(block.num_rows)
            yield block


def _pools(stages: list[Stage]) -> list[list[Stage]]:
    """Neighbouring stages of one named pool together, every other stage alone."""
    keyed = groupby(enumerate(stages), key=lambda pair: pair[1].resources.pool or pair[0])
    return [[stage for _, stage in members] for _, members in keyed]


def _share(chain: list[Stage], blocks: int) -> tuple[int, float, float]:
    """Actors, CPUs and GPUs per actor of a pool, as its neediest stage asks."""
    import ray

    needs = [stage.resources for stage in chain]
    everything = ray.cluster_resources().get("CPU", 1.0)
    actors = max(1, min(max(r.actors for r in needs), blocks))
    return actors, min(max(r.cpus for r in needs) or everything, everything), max(r.gpus for r in needs)


def _check_room(stages: list[Stage], blocks: int) -> None:
    """Refuse what Ray would wait for without end: pools that together need more than the cluster has."""
    import ray

    has = ray.cluster_resources()
    shares = [_share(chain, blocks) for chain in _pools(stages)]
    for kind, place in (("CPU", 1), ("GPU", 2)):
        needed = sum(share[0] * share[place] for share in shares)
        if needed > has.get(kind, 0.0) + 1e-9:
            names = ", ".join(stage.name for stage in stages)
            raise ResourceError(
                f"stages {names} together need {needed:g} {kind}s and the cluster has {has.get(kind, 0.0):g}: lower "
                f"their cpus, gpus or actors in the cluster config, or give them one `pool`"
            )


def _through(dataset: object, chain: list[Stage], blocks: int) -> object:
    import ray

    actors, cpus, gpus = _share(chain, blocks)
    threads = str(max(1, int(cpus)))
    return dataset.map_batches(
        Pool,
        fn_constructor_args=(chain,),
        batch_size=None,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=cpus,
        num_gpus=gpus,
        runtime_env={"env_vars": {"OMP_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "false"}},
    )


def _block_rows(rows: int, most: int, actors: int) -> int:
    """Rows per block: at most `most`, and small enough for a dozen blocks per actor (a bar that moves, even work),
    but not under eight: a block costs some 50 ms."""
    return max(1, min(most, max(8, -(-rows // (12 * actors)))))


def cut(table: pa.Table, rows: int, together: str | None) -> Iterator[pa.Table]:
    """Slices of `rows` rows (the last may be shorter), longer where that keeps equal neighbours in `together` in one.

    At most four times as long: a benchmark about one single clip must not become one single block.
    """
    values = table.column(together).to_pylist() if together else range(table.num_rows)
    start = 0
    for end in range(1, table.num_rows + 1):
        size = end - start
        if end == table.num_rows or size >= 4 * rows or (size >= rows and values[end] != values[end - 1]):
            yield table.slice(start, size)
            start = end


def resources(config: object) -> Resources:
    """A cluster config's entry for one stage as Resources."""
    return Resources(config.cpus, config.gpus, config.actors, config.batch_size, config.pool)
