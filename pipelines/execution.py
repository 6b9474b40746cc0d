"""Stages on Ray Data: the only module that imports ray.

Neighbouring stages with the same pool share one actor, which runs them one after the other; every other stage gets an
actor pool of its own, and blocks stream from pool to pool.

A worker that dies is replaced and its block tried again, RETRIES times. Rows that kill every worker that touches them
are then found one by one and given up with a reason, so that they cost themselves and not the run.

A node that dies takes its workers along. Where the others have room, Ray starts them there; where not, it would wait for
the node without end: the job is ended, and what is missing goes to as many workers as the nodes that are left can hold.

Several actors of one stage share a ledger, so that a clip, text or pair that two of them meet is encoded by one.
"""

from __future__ import annotations

import copy
import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import numpy as np
import pyarrow as pa
from tqdm import tqdm

from operators.base import Resources, Stage
from operators.frames import with_columns
from operators.spool import Spool, parts
from operators.store import StoreError
from pipelines import room
from pipelines.blocks import block_rows, cut, pack, unpack
from pipelines.commit import Commit, Committer, Desk, in_folder
from pipelines.ledger import Account
from pipelines.pool import Pool, given_up
from pipelines.room import Share
from pipelines.watch import NodesDied, Watch, have_died

RETRIES = 2
ROW = "execution.row"


class WorkersDied(RuntimeError):
    """Workers died on the same block more often than it is tried."""


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
    try:
        with _without_native_chatter():
            ray.init(
                address=cluster.address or "local", log_to_driver=False, logging_level=logging.ERROR, **local
            )
    except (ConnectionError, ValueError, ray.exceptions.AuthenticationError) as error:
        if not cluster.address:
            raise
        raise room.ResourceError(_no_cluster(cluster.address, error)) from error
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False  # Ray shows one bar per operator; a run shows one per phase
    context.max_errored_blocks = 0  # an exception in a stage stops the run: nothing is dropped silently
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    try:
        yield
    finally:
        ray.shutdown()


def _no_cluster(address: str, error: Exception) -> str:
    """Why there is no Ray at `address`, and what to do."""
    told = str(error).strip().partition("\n")[0].rstrip(".")
    token = (
        "" if "oken" not in told else "; RAY_AUTH_TOKEN must be that of the nodes, and RAY_AUTH_MODE=token"
    )
    return (
        f"config key cluster.address: no Ray at {address!r}: {told}{token}. Start its nodes first (cluster/README.md), or "
        "leave the key out to work on this machine alone"
    )


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


@dataclass(frozen=True)
class _Work:
    """What is to be done to a table, however often a job has to be started for it."""

    stages: list[Stage]
    whole: str | None
    commits: Sequence[Commit]
    mark: str


def run(
    stages: list[Stage],
    table: pa.Table | Spool,
    title: str,
    whole: str | None = None,
    commits: Sequence[Commit] = (),
    mark: str = "",
) -> Iterator[pa.Table]:
    """Stream `table` through `stages` and yield finished blocks as they come, in any order, under a progress bar.

    No block has rows of two portions of a spool. `whole` names a column whose equal neighbours are never parted: one actor meets them one after the other, so that a
    model can keep what their prompts share. What the memos of a stage compute is computed once in a run, whatever the
    number of actors, as long as none dies for good. `commits` are made by the workers that see `mark` in the store
    (pipelines.commit). Needs an open `session`.
    """
    if table.num_rows == 0:
        return
    missing = np.ones(table.num_rows, dtype=bool)
    with tqdm(total=table.num_rows, desc=f"{title:<10}", unit="row", smoothing=0) as bar:
        work = _Work(stages, whole, commits, mark)
        for block in _surviving(work, _Numbered(table), table.num_rows, missing):
            missing[block[ROW].to_numpy()] = False
            bar.update(block.num_rows)
            yield block.drop_columns(ROW)


@dataclass(frozen=True)
class _Numbered:
    """The portions of a table with the numbers of its rows, as often as they are wanted."""

    table: pa.Table | Spool

    def __iter__(self) -> Iterator[pa.Table]:
        for part, some in parts(self.table):
            yield with_columns(some, {ROW: pa.array(np.arange(part.start, part.stop))})


def _beside_driver(made: type, *arguments: object, tries: int) -> object:
    """An actor on the driver's own node: on one that dies, it would take the work of all the others down with it."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    options = {"num_cpus": 0, "max_restarts": -1, "max_task_retries": tries, "scheduling_strategy": here}
    return ray.remote(**options)(made).remote(*arguments)


class _Far:
    """Calls a method of the desk of one job from a worker."""

    def __init__(self, work: _Work) -> None:
        # What it wrote before it died is not written again: whoever stores the rows instead looks first.
        self._desk = _beside_driver(Desk, work.commits, work.mark, tries=0)

    def __call__(self, method: str, *arguments: object) -> object:
        import ray

        try:
            return ray.get(getattr(self._desk, method).remote(*arguments))
        except ray.exceptions.RayError as error:
            raise StoreError(f"the desk beside the driver: {error}") from error


class _Ledgers:
    """The account of one job in a small actor of its own, and what a worker needs to take part in it."""

    def __init__(self) -> None:
        # One that dies alone starts anew and knows nothing: work is then repeated, and no row is lost.
        self.account = _beside_driver(Account, tries=-1)

    def drop_claims(self, worker: str) -> None:
        import ray

        ray.get(self.account.drop.remote(worker))

    def __call__(self, stage: str) -> _Ledger:
        return _Ledger(self.account, _worker_id(), stage)


class _Ledger:
    """A stage's view of the account from one worker (an operators.batching.Ledger)."""

    def __init__(self, account: object, worker: str, stage: str) -> None:
        self._account, self._worker, self._stage = account, worker, stage

    def claim(self, memo: str, keys: list) -> tuple[dict, list]:
        import ray

        found, mine = ray.get(self._account.claim.remote(self._worker, f"{self._stage}.{memo}", keys))
        return copy.deepcopy(found), mine  # for the reason that the account has

    def settle(self, memo: str, results: dict, given_back: list) -> None:
        import ray

        ray.get(self._account.settle.remote(f"{self._stage}.{memo}", results, given_back))


def _worker_id() -> str:
    """The same for a worker and for the one that Ray starts in its place after it died."""
    import ray

    return ray.get_runtime_context().get_actor_id()


class _Worker(Pool):
    """A Pool in an actor. One that died in the middle of a block left claims that nobody else could settle."""

    def __init__(self, work: _Work, stages: list[Stage], ledgers: _Ledgers | None, far: _Far | None) -> None:
        import ray

        # OMP_NUM_THREADS is Ray's doing: what the environment says, or else the cpus of the worker. An environment of our own
        # would keep Ray from giving us a process that stands ready.
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        if ledgers:
            ledgers.drop_claims(_worker_id())
        replaces = ray.get_runtime_context().was_current_actor_reconstructed
        super().__init__(stages, ledgers, Committer(work.commits, work.mark, replaces, far))

    def __call__(self, packed: pa.Table) -> pa.Table:
        return pa.concat_tables([pack(super(_Worker, self).__call__(block)) for block in unpack(packed)])


def _surviving(
    work: _Work, tables: Iterable[pa.Table], n_rows: int, missing: np.ndarray
) -> Iterator[pa.Table]:
    """All blocks of `tables`, whatever dies. `missing` [rows] is kept by the caller: what has not been yielded yet."""
    try:
        yield from _stream(work, tables, n_rows)
        return
    except (WorkersDied, NodesDied) as error:
        to_blame = isinstance(error, WorkersDied)  # the error itself is left behind: it holds the job
    rest = pa.concat_tables(some.take(np.flatnonzero(missing[some[ROW].to_numpy()])) for some in tables)
    for commit in work.commits:
        rest = commit.without_stored(rest)
    if to_blame and rest.num_rows == 1:
        reason = f"worker_died: no worker survives this row ({RETRIES + 1} tries); see Ray's logs"
        yield given_up(work.stages, rest, reason)
        return
    # Halves of what is missing, down to single rows: only a row that kills alone is to blame.
    middle = rest.num_rows // 2 if to_blame else rest.num_rows
    for part in (rest.slice(0, middle), rest.slice(middle)):
        if part.num_rows:
            yield from _surviving(work, [part], part.num_rows, missing)


def _stream(work: _Work, tables: Iterable[pa.Table], n_rows: int) -> Iterator[pa.Table]:
    """One Ray Data job over `tables`, with an account of its own: workers of a job that died claim nothing in the next."""
    import ray

    needs = [stage.resources for stage in work.stages]
    size = block_rows(n_rows, min(r.batch_size for r in needs), max(r.actors for r in needs))
    blocks = [pack(block) for table in tables for block in cut(table, size, work.whole)]
    nodes = _alive()
    pools = _pools(work.stages, len(blocks), nodes)
    job = uuid4().hex
    dismiss = partial(_dismiss, job)
    context = ray.data.DataContext.get_current()
    context.custom_execution_callback_classes = [partial(Watch, pools, nodes, _alive, dismiss)]
    dataset = ray.data.from_blocks(blocks)
    del blocks  # they are Ray's now
    ledgers = _Ledgers() if any(share.actors > 1 for share in pools) else None  # one has memory of its own
    far = _Far(work) if len(nodes) > 1 and any(in_folder(one.shelf.store) for one in work.commits) else None
    for share in pools:
        dataset = _through(dataset, work, share, (ledgers, far), job)
    try:
        for packed in dataset.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0):
            yield from unpack(packed)
    except NodesDied:
        dismiss()
        raise
    except ray.exceptions.RayError as error:
        dismiss()
        if have_died(nodes, _alive):
            raise NodesDied(str(error)) from error
        if isinstance(error, ray.exceptions.RayActorError | ray.exceptions.WorkerCrashedError):
            raise WorkersDied(str(error)) from error
        raise


def _pools(stages: list[Stage], blocks: int, nodes: dict[str, dict]) -> list[Share]:
    """The pools of a job, refused if the cluster is too small for them; one that has lost nodes does with fewer workers."""
    import ray

    left = room.of(nodes)
    pools = room.shares(stages, blocks, left)
    if len(nodes) == len(ray.nodes()):
        room.check(pools, left)
        return pools
    fewer = room.shrunk(pools, left)
    room.check(fewer, left)
    for line in room.lacking(pools, fewer):
        tqdm.write(line, sys.stderr)
    return fewer


def _named(job: str) -> dict[str, str]:
    return {"name": f"{job}.{uuid4().hex}"}


def _dismiss(job: str) -> None:
    """Kill the workers of a job. Ray Data only lets go of them: what they hold would be theirs for as long as it is sought."""
    import ray

    for name in ray.util.list_named_actors():
        if name.startswith(job):
            with suppress(ValueError):  # dead meanwhile
                ray.kill(ray.get_actor(name))


def _alive() -> dict[str, dict]:
    """The nodes of the cluster by id, but those known to be dead."""
    import ray

    return {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}


def _through(dataset: object, work: _Work, share: Share, beside: tuple, job: str) -> object:
    """`dataset` through the workers of `share`. beside: the ledgers and the desk of the job, each None where it has none."""
    import ray

    ledgers, far = beside
    with warnings.catch_warnings():
        # Ray 2.60 has no other way to bound restarts than the one it deprecates; constraints.txt keeps us on 2.60.
        warnings.simplefilter("ignore", ray.util.annotations.RayDeprecationWarning)
        return dataset.map_batches(
            _Worker,
            fn_constructor_args=(work, list(share.chain), ledgers if share.actors > 1 else None, far),
            batch_size=1,  # a packed block; with a GPU Ray insists on a number
            batch_format="pyarrow",
            zero_copy_batch=True,
            compute=ray.data.ActorPoolStrategy(size=share.actors),
            num_cpus=share.cpus,
            num_gpus=share.gpus,
            ray_remote_args_fn=partial(_named, job),
            max_restarts=RETRIES,
            max_task_retries=RETRIES,
        )


def resources(config: object) -> Resources:
    """A cluster config's entry for one stage as Resources."""
    return Resources(config.cpus, config.gpus, config.actors, config.batch_size, config.pool)
