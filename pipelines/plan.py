"""What a run would do, without Ray, weights or torch: `dry_run=true`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from operators.base import Stage, check_columns
from operators.fingerprint import fingerprint
from operators.locators import shown
from operators.schema import ITEM
from operators.weights import WeightsError
from pipelines.config import Cluster
from pipelines.memory import in_words
from pipelines.throughput import Rate, lasting, measured

# Columns that a run adds between its stages.
DERIVED = frozenset({"gold_answer", "trial", "model"})


def show(
    stages: Iterable[tuple[Stage, int]],
    cluster: Cluster,
    store: str,
    console: Console,
    available: Iterable[str] = ITEM.names,
) -> None:
    """Check that every stage finds its columns, then print stages, rows, resources, columns and fingerprints.

    Rows are what a run would look at; the store may already hold some of them. `available`: the columns of a row before
    the first stage. Times come from earlier runs in runs/ on a cluster of this name. Raises ColumnError.
    """
    stages, rates = list(stages), measured(Path("runs"), cluster.name)
    check_columns([stage for stage, _ in stages], {*available, *DERIVED})
    console.print(Text(f"cluster {cluster.name}{_hardware(cluster)}; store {shown(store)}", style="bold"))
    for stage, rows in stages:
        head = f"{stage.name:<9} {type(stage.spec).__name__:<22} {rows:>7} rows   {_resources(stage)}"
        console.print(Text(head, style="bold"), soft_wrap=True)
        body = Table.grid(padding=(0, 1))
        body.add_row("reads", Text(", ".join(stage.spec.reads)))
        body.add_row("writes", Text(", ".join(stage.spec.writes)))
        body.add_row("identity", Text(_fingerprint(stage)))
        if memory := in_words([stage], cluster):
            body.add_row("memory", Text(memory))
        body.add_row("time", Text(_time(stage, rows, rates.get(_fingerprint(stage)))))
        console.print(Padding(body, (0, 0, 0, 10)))
    console.print(Text(_total(stages, rates)), soft_wrap=True)
    console.print("dry run: nothing was started, loaded or written")


def _hardware(cluster: Cluster) -> str:
    known = [(cluster.num_cpus, "CPUs"), (cluster.num_gpus, "GPUs")]
    return "".join(f", {count} {kind}" for count, kind in known if count is not None)


def _resources(stage: Stage) -> str:
    need = stage.resources
    cpus = "all CPUs" if need.cpus == 0 else f"{need.cpus:g} CPU"
    gpus = f" + {need.gpus:g} GPU" if need.gpus else ""
    shared = f", in pool {need.pool}" if need.pool else ""
    return f"{need.actors} x {cpus}{gpus}, batch {need.batch_size}{shared}"


def _fingerprint(stage: Stage) -> str:
    try:
        return fingerprint(stage.spec)
    except WeightsError as error:
        return f"none yet: {error}"


def _time(stage: Stage, rows: int, rate: Rate | None) -> str:
    if rate is None:
        return "no estimate: no earlier run on this cluster measured it"
    took = lasting(rate.seconds(stage, rows))
    return f"about {took}, from {rate.rows_per_second:.3g} rows/s of one actor in runs/{rate.run}"


def _total(stages: list[tuple[Stage, int]], rates: dict[str, Rate]) -> str:
    """All stages one after the other, the longest that a run could take: stages of one phase overlap where they share
    nothing."""
    known = [(stage, rows, rates.get(_fingerprint(stage))) for stage, rows in stages]
    unknown = [stage.name for stage, _, rate in known if rate is None]
    seconds = sum(rate.seconds(stage, rows) for stage, rows, rate in known if rate)
    without = f"; without {', '.join(unknown)}, which no run measured" if unknown else ""
    if len(unknown) == len(known):
        return "estimated time: none, no earlier run on this cluster measured any of these stages"
    return (
        f"estimated time: {lasting(seconds)} if the store holds none of it, beside loading weights{without}"
    )
