"""What a run would do, without Ray, weights or torch: `dry_run=true`."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from operators.base import Stage, check_columns
from operators.fingerprint import fingerprint
from operators.schema import ITEM
from operators.weights import WeightsError
from pipelines.config import Cluster


def show(stages: Iterable[tuple[Stage, int]], cluster: Cluster, store: str, console: Console) -> None:
    """Check that every stage finds its columns, then print stages, columns, resources and row counts.

    Rows are what a run would look at; the store may already hold some of them.
    """
    stages = list(stages)
    derived = {"gold_answer", "trial", "model"}  # columns that a run adds between its stages
    check_columns([stage for stage, _ in stages], {*ITEM.names, *derived})
    table = Table(title=f"cluster {cluster.name}, store {store}", title_justify="left", show_lines=False)
    for name in ("stage", "rows", "what", "reads", "writes", "resources", "fingerprint"):
        table.add_column(name, justify="right" if name == "rows" else "left", overflow="fold")
    for stage, rows in stages:
        table.add_row(
            stage.name, f"{rows}", type(stage.spec).__name__, escape(", ".join(stage.spec.reads)),
            escape(", ".join(stage.spec.writes)), _resources(stage), _fingerprint(stage),
        )  # fmt: skip
    console.print(table)
    console.print("dry run: nothing was started, loaded or written")


def _resources(stage: Stage) -> str:
    need = stage.resources
    cpus = "all CPUs" if need.cpus == 0 else f"{need.cpus:g} CPU"
    gpus = f", {need.gpus:g} GPU" if need.gpus else ""
    shared = f", pool {need.pool}" if need.pool else ""
    return f"{need.actors} x ({cpus}{gpus}), batch {need.batch_size}{shared}"


def _fingerprint(stage: Stage) -> str:
    try:
        return fingerprint(stage.spec)
    except WeightsError as error:
        return f"none yet: {error}"
