"""The four abstractions of the system: Batch, Spec, Resources, Stage - and the two functions that use them.

A *Spec* is a frozen description of one step: which columns it reads, which it writes, everything that bears on its
result. `build()` loads weights and returns the function that does the work. A *Stage* says where a Spec runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

import numpy as np

Batch = dict[str, np.ndarray]
Op = Callable[[Batch], Batch]

# What a step may raise for one bad row. Anything else (a missing module, no memory, a wrong type in our own code)
# is a fault of the run, not of the row, and stops it.
ROW_ERRORS = (ValueError, RuntimeError, ArithmeticError, LookupError, OSError)


class ColumnError(ValueError):
    """A stage reads a column that nothing before it writes, or writes other columns than it declares."""


class Spec(Protocol):
    """One step of a pipeline: frozen, picklable, and everything that bears on its result."""

    reads: ClassVar[tuple[str, ...]]
    writes: ClassVar[tuple[str, ...]]
    version: ClassVar[int]

    def build(self) -> Op:
        """Load what the step needs and return the function from a batch to its `writes` columns."""


@dataclass(frozen=True)
class Resources:
    """Where and how wide a stage runs. Never part of a fingerprint.

    Stages with the same `pool` share one process, one after the other: right for a small machine, where starting six
    processes costs more than the work.
    """

    cpus: float = 1.0
    gpus: float = 0.0
    actors: int = 1
    batch_size: int = 256
    pool: str | None = None


@dataclass(frozen=True)
class Stage:
    """A named Spec and its resources, of which a Spec takes no more than its `takes_at_most` says, where it has one.

    That is for what a cluster config cannot know: what asks a server over the network gains nothing from a GPU, and
    keeps its pace and its spending in one place only as one worker.
    """

    name: str
    spec: Spec
    resources: Resources = Resources()

    def __post_init__(self) -> None:
        most = getattr(self.spec, "takes_at_most", {})
        fewer = {name: min(most[name], getattr(self.resources, name)) for name in most}
        object.__setattr__(self, "resources", replace(self.resources, **fewer))


def apply(spec: Spec, op: Op, batch: Batch) -> Batch:
    """Run `op` on the columns that `spec` reads and return a new batch with its `writes` added.

    Raises ColumnError when a column is missing or the op returns other columns, or other lengths, than declared.
    """
    missing = [name for name in spec.reads if name not in batch]
    if missing:
        raise ColumnError(
            f"{type(spec).__name__} reads {missing}, which the batch lacks; it has {sorted(batch)}"
        )
    rows = len(next(iter(batch.values()))) if batch else 0
    result = op({name: batch[name] for name in spec.reads})
    if set(result) != set(spec.writes):
        raise ColumnError(f"{type(spec).__name__} declares {sorted(spec.writes)} but wrote {sorted(result)}")
    wrong = {name: len(column) for name, column in result.items() if len(column) != rows}
    if wrong:
        raise ColumnError(f"{type(spec).__name__} got {rows} rows and wrote other lengths: {wrong}")
    return {**batch, **result}


def check_columns(stages: Iterable[Stage], available: Iterable[str]) -> set[str]:
    """Walk a chain of stages before anything starts; return the columns at its end or raise ColumnError."""
    columns = set(available)
    for stage in stages:
        missing = sorted(set(stage.spec.reads) - columns)
        if missing:
            raise ColumnError(f"stage {stage.name!r} reads {missing}, which no stage before it writes")
        columns |= set(stage.spec.writes)
    return columns


def apply_by_row(spec: Spec, op: Op, batch: Batch) -> tuple[Batch, list[str | None]]:
    """Like `apply`, but a row that raises one of ROW_ERRORS does not take its batch-mates down.

    The batch is halved around the failure until the bad rows stand alone. Returns the `writes` of the rows (undefined
    where a row failed) and, per row, None or "<Error type>: message".
    """
    rows = len(next(iter(batch.values()))) if batch else 0
    try:
        done = apply(spec, op, batch)
        return {name: done[name] for name in spec.writes}, [None] * rows
    except ColumnError:
        raise
    except ROW_ERRORS as error:
        if rows == 1:
            blank = np.full(1, None, dtype=object)
            text = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            return dict.fromkeys(spec.writes, blank), [text]
    half = rows // 2
    left, left_errors = apply_by_row(spec, op, {name: column[:half] for name, column in batch.items()})
    right, right_errors = apply_by_row(spec, op, {name: column[half:] for name, column in batch.items()})
    joined = {name: _join(left[name], right[name]) for name in spec.writes}
    return joined, left_errors + right_errors


def _join(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    if left.dtype == right.dtype:
        return np.concatenate([left, right])
    return np.concatenate([left.astype(object), right.astype(object)])
