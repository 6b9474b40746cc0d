"""How long an evaluation and a night would take on more cards, and which stage holds them up.

python -m pipelines.simulate run=runs/YOURS 'gpus=[4,32,256]'      a bound from measured rows per second (pipelines.scaling)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich import box
from rich.console import Console
from rich.table import Table

from operators.base import Resources
from operators.printing import MIN_WIDTH
from operators.tables import TableError
from pipelines.aria_eval import METRIC_STAGES
from pipelines.config import ConfigError, entry, plain
from pipelines.execution import resources
from pipelines.runs import find_run, newest_first, read_record
from pipelines.scaling import Driver, Phase, bottleneck, phase, times, together
from pipelines.simulate_settings import Simulate
from pipelines.throughput import lasting

PHASES = {"audio": ("audio",), "generate": ("generate",), "extract": ("extract",), "score": METRIC_STAGES}
STAGES = tuple(stage for stages in PHASES.values() for stage in stages)


def main(config: DictConfig) -> None:
    """Read the rates, simulate each size, print the tables."""
    settings: Simulate = plain(config)
    if not settings.gpus or min(*settings.gpus, settings.items, settings.models) < 1:
        raise ConfigError(
            "config keys gpus, items and models: at least one of each, or there is nothing to simulate"
        )
    folder, record, rates = rates_of_run(settings)
    one_box = {stage: resources(getattr(settings.cluster, stage)) for stage in STAGES}
    cards, driver = settings.cluster.num_gpus, Driver(**asdict(settings.driver))
    if not cards:
        raise ConfigError("config key cluster.num_gpus: the cluster's config names no cards to have more of")
    without_card = not_on_a_card(record, one_box, settings.rates)
    told = Console(width=MIN_WIDTH + 20, highlight=False)
    told.print(f"rates of {folder}; * measured without a card: put your own run's in their place")
    told.print(rates_table(one_box, rates, settings.gpus, cards, without_card))
    found = {}
    for gpus in settings.gpus:
        stages = {stage: times(need, gpus / cards) for stage, need in one_box.items()}
        found[gpus] = works(stages, rates, driver, settings.items, settings.models)
    told.print(works_table(found))
    told.print(use_table(found))
    if settings.json:
        figures = {
            str(gpus): {name: [asdict(one) for one in phases] for name, phases in works.items()}
            for gpus, works in found.items()
        }
        Path(settings.json).write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")


def rates_of_run(settings: Simulate) -> tuple[Path, dict[str, Any], dict[str, float]]:
    """The run asked for, or the newest one that measured every stage: its folder, record and rates."""
    named = [find_run(settings.run, "run.json")] if settings.run else newest_first("run.json")
    for folder in named:
        record = read_record(folder)
        try:
            return folder, record, stage_rates(record, settings.rates, folder)
        except TableError:
            if len(named) == 1:
                raise
    raise TableError(
        f"none of the {len(named)} runs under runs/ computed every stage ({', '.join(STAGES)}): name one with run=FOLDER, or "
        "set what it lacks with +rates.STAGE=<rows per second of one actor>"
    )


def stage_rates(record: Mapping[str, Any], given: Mapping[str, float], folder: Path) -> dict[str, float]:
    """Rows per second of one actor of every stage: given, else measured by the run."""
    if unknown := sorted(set(given) - set(STAGES)):
        raise ConfigError(f"config key rates.{unknown[0]}: the stages are {', '.join(STAGES)}")
    measured = record.get("stages")
    measured = measured if isinstance(measured, dict) else {}
    rates = {}
    for stage in STAGES:
        tally = measured.get(stage)
        rate = given.get(stage, tally.get("rows_per_second") if isinstance(tally, dict) else None)
        if not isinstance(rate, (int, float)) or rate <= 0:
            raise TableError(
                f"{folder}/run.json says no rows per second of {stage}: name a run that computed it, or set "
                f"+rates.{stage}=<rows per second of one actor>"
            )
        rates[stage] = float(rate)
    return rates


def not_on_a_card(
    record: Mapping[str, Any], stages: Mapping[str, Resources], given: Mapping[str, float]
) -> set[str]:
    """Stages that would have a card, and whose rate comes from a run in which they had none."""
    cluster = record.get("config", {}).get("cluster", {})
    return {
        stage
        for stage, need in stages.items()
        if need.gpus and stage not in given and not cluster.get(stage, {}).get("gpus")
    }


def works(
    stages: Mapping[str, Resources], rates: Mapping[str, float], driver: Driver, items: int, models: int
) -> dict[str, list[Phase]]:
    """The phases of one model's run, and of nights over all stored responses with six new scorers, and with one.

    A night without anything new starts no stage: it reads the store (`tests.bench.nights` measures it).
    """

    def done(name: str, rows: int, only: tuple[str, ...] = ()) -> Phase:
        names = only or PHASES[name]
        return phase(name, rows, {stage: stages[stage] for stage in names}, rates, driver)

    stored = items * models
    return {
        f"{models} models x {items} items": [done(name, items) for name in PHASES] * models,
        f"night, all {stored} anew": [done("extract", stored), done("score", stored)],
        "night, M3 anew": [done("extract", stored), done("score", stored, ("m3",))],
    }


def rates_table(
    one_box: Mapping[str, Resources],
    rates: Mapping[str, float],
    sizes: list[int],
    cards: int,
    without_card: set[str],
) -> Table:
    """Rows per second of one actor, and of all actors of each size."""
    table = Table(box=box.SIMPLE_HEAD, title="Rows per second of each stage")
    for heading in ("Stage", "Actor", *(f"{gpus} GPUs" for gpus in sizes)):
        table.add_column(heading, justify="left" if heading == "Stage" else "right")
    for stage, rate in rates.items():
        mark = "*" if stage in without_card else ""
        sums = [together({stage: times(one_box[stage], gpus / cards)}, rates)[stage] for gpus in sizes]
        table.add_row(stage, f"{rate:.3g}{mark}", *(f"{value:.4g}" for value in sums))
    return table


def works_table(found: Mapping[int, Mapping[str, list[Phase]]]) -> Table:
    """How long each piece of work takes on each size, and what takes most of it."""
    table = Table(box=box.SIMPLE_HEAD, title="Time and bottleneck")
    for heading in ("Work", "GPUs", "Time", "Rows/s", "Bottleneck", "of time"):
        table.add_column(heading, justify="left" if heading in ("Work", "Bottleneck") else "right")
    for name in next(iter(found.values())):
        for gpus, by_work in found.items():
            phases = by_work[name]
            seconds = sum(one.seconds for one in phases)
            rows = sum(one.rows for one in phases if one.name == "score")
            part, share = bottleneck(phases)
            cells = (str(gpus), lasting(seconds), f"{rows / seconds:.3g}", part, f"{share:.0%}")
            table.add_row(name, *cells, end_section=gpus == list(found)[-1])
    return table


def use_table(found: Mapping[int, Mapping[str, list[Phase]]]) -> Table:
    """How much of its phase each stage works, when all models are evaluated."""
    table = Table(box=box.SIMPLE_HEAD, title="Share of its phase that a stage's actors work, evaluation")
    table.add_column("GPUs", justify="right")
    for stage in STAGES:
        table.add_column(stage, justify="right")
    for gpus, by_work in found.items():
        use = {stage: share for one in next(iter(by_work.values())) for stage, share in one.use.items()}
        table.add_row(str(gpus), *(f"{use[stage]:.0%}" for stage in STAGES))
    return table


if __name__ == "__main__":
    entry("simulate", main)
