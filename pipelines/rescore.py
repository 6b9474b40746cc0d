"""Score every stored response with what the store lacks, keep a dated summary, and say what changed since the last one.

Trials of mugen_eval vote, read by the rules as they are now, or as the judge of the last run read them, which is not asked
again; of them a night knows the choice and whether it is right.

python -m pipelines.rescore                          exit status 0: nothing to look at; 3: drift; 1: the run failed
python -m pipelines.rescore scorers=paper +cluster=a6000x4
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from rich.console import Console

from operators import drift_report, nights
from operators.asked import names_in_results
from operators.base import Spec, Stage
from operators.drift import Outage, drift, other_scorers
from operators.extraction import Extract
from operators.inspection import contents
from operators.leaderboard import show
from operators.locators import shown
from operators.mugen import kept
from operators.schema import ITEM
from operators.store import Store, StoreError
from operators.weights import require
from pipelines import plan
from pipelines.aria_eval import METRIC_STAGES, nothing_tried
from pipelines.config import ConfigError, build, entry, plain
from pipelines.execution import resources
from pipelines.memory import check_memory
from pipelines.night_record import seen_of, show_drift, write_drift
from pipelines.night_rows import failing, night_rows, outages, summed
from pipelines.night_votes import READER, Named, Votes
from pipelines.phases import Journal
from pipelines.record import check_out, free_folder, write_record, write_summary
from pipelines.rescore_settings import Rescore
from pipelines.sweeps import with_own_folder

DRIFTED = 3  # exit status where something changed that someone should look at
KEPT = ("rows.parquet", "summary.parquet", "summary.md", "failures.csv", "drift.md", "drift.json", "run.json")


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows the names of the chosen options."""
    rescore(with_own_folder(config), HydraConfig.get().runtime.choices["scorers"])


@dataclass(frozen=True)
class Task:
    """What a night has to do: score the responses of the models `named`, and take the votes of those `voting`, both with
    their names in results, and compare with the night `last` of its series. `n_unknown` responses cannot be scored."""

    config: DictConfig
    settings: Rescore
    store: Store
    scorers: Mapping[str, Spec]
    named: Mapping[str, Mapping[str, str]]
    voting: Named
    n_unknown: int
    series: str
    last: nights.Night | None = None


def rescore(config: DictConfig, scorers_name: str) -> None:
    """One night. SystemExit with status 1 where too much failed, 3 where the drift report raises an alarm."""
    settings: Rescore = plain(config)
    series = checked(settings, settings.series or scorers_name)
    scorers = {name: build(getattr(settings.scorers, name), f"scorers.{name}") for name in METRIC_STAGES}
    store = Store(settings.store.root)
    named, voting = names_in_results(store), kept.systems(store)
    task = Task(config, settings, store, scorers, named, voting, tell_unknown(store, named, voting), series)
    stages = [Stage(name, spec, resources(getattr(settings.cluster, name))) for name, spec in scorers.items()]
    check_memory(stages, settings.cluster)
    if settings.dry_run:
        show_plan(task, stages)
        return

    # Looked up first: the night to compare with must be there before hours of scoring, and may not be this one.
    last = nights.load(store, series, settings.against) if settings.against else nights.last(store, series)
    for spec in scorers.values() if named else ():  # votes alone need no weights
        require(spec)
    check_out(settings.out)
    folder = Path(settings.out) if settings.out else free_folder(f"rescore-{series}")
    folder.mkdir(parents=True, exist_ok=True)
    one_night(replace(task, last=last), folder)


def one_night(task: Task, folder: Path) -> None:
    """Score, sum up and compare into `folder`, and keep it in the store. SystemExit as for `rescore`."""
    settings, store, last, journal = task.settings, task.store, task.last, Journal()
    # Before anything is read: a part that comes meanwhile is not one that this night has seen.
    seen = seen_of(store, task.named, task.voting)
    # Beside the results, because a system's folder for temporary files may be small, or in memory.
    with TemporaryDirectory(dir=folder, prefix=".scratch-") as scratch:
        rows, n_carried, again, votes = night_rows(
            settings, store, task.named, task.scorers, (task.series, last), folder, Path(scratch), journal, task.voting
        )  # fmt: skip
        out = outages(last, journal, again, settings.acknowledged)
        told = failing(settings.max_failure_rate, journal, again)
        since = {name: None for name in told if name in METRIC_STAGES} | {
            one.metric: one.since for one in out
        }
        counts = {"carried_over": n_carried, "votes": votes._asdict(), "not_scored": task.n_unknown}
        specs = {"extract": Extract(), **task.scorers, "read": READER}
        write_record(folder, task.config, specs, journal, {**seen, **counts, "out": since})
        record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
        now = nights.Night(nights.new_name(), nights.NIGHT_ROW.empty_table(), record)
        summary, failures, compared = summed(rows.last, rows.now, folder / "rows.parquet")
    write_summary(folder, summary, failures)
    found = drift(last, now, compared, out) if last else None
    failed = [why for name, why in told.items() if name not in settings.acknowledged]
    # A night of votes alone tries no metric.
    failed += nothing_tried(journal) if METRIC_STAGES[0] in journal.stages else []
    write_drift(folder, found, other_scorers(last, now) if last else [], failed)
    place = nights.save(store, task.series, now.name, folder, KEPT)
    show(summary, failures)
    alarming = show_drift(found)
    report_work(journal, len(rows.now), n_carried, votes, folder)
    print(f"kept as {shown(store.root)}/{place}")
    stop_if_failing(settings.max_failure_rate, failed, out)
    sys.exit(DRIFTED if alarming else 0)


def report_work(journal: Journal, n_rows: int, n_carried: int, votes: Votes, folder: Path) -> None:
    """A few lines: what was computed, what was not even looked at, where the tables are."""
    computed = sum(tally.computed for name, tally in journal.stages.items() if name in METRIC_STAGES)
    stand = n_carried + votes.carried_over
    print(
        f"{n_rows} rows, {stand} of them as in the night before; computed {computed} scores; tables in {folder}"
    )
    if votes.rows:
        print(
            f"{votes.rows} of the rows are votes of MUGEN's trials, of which {votes.trials_read} were read anew"
        )
    if (folder / "results.parquet").exists():
        print(f"as a page, with every response: python -m pipelines.report run={folder}")


def tell_unknown(store: Store, named: Mapping[str, Any], voting: Mapping[str, Any]) -> int:
    """Stored responses whose questions nobody kept are counted and told. StoreError where there are no others."""
    others = [
        shelf
        for shelf in store.shelves("responses")
        if shelf.name.rsplit("/", 1)[-1] not in {*named, *voting}
    ]
    if count := sum(contents(shelf).rows for shelf in others):
        print(
            f"note: {count} stored responses of {len(others)} models are not scored: their questions were not kept, by an "
            f"older version or a run that stopped; the next run of aria_eval or mugen_eval with this store keeps them",
            file=sys.stderr,
        )
    if not (named or voting):
        raise StoreError(
            f"the store {shown(store.root)} holds no response that can be scored: run pipelines.aria_eval or mugen_eval with it first"
        )
    return count


def show_plan(task: Task, scorers: list[Stage]) -> None:
    """What would be looked at; how much of it the store lacks shows when the keys are computed."""
    store, cluster = task.store, task.settings.cluster
    rows = sum(contents(store.shelf(f"asked/{fingerprint}")).rows for fingerprint in task.named)
    chain = [Stage("extract", Extract(), resources(cluster.extract)), *scorers]
    stages = [(stage, rows) for stage in chain]
    trials = sum(contents(store.shelf(f"presented/{fingerprint}")).rows for fingerprint in task.voting)
    if trials:
        print(
            f"votes of {trials} trials of MUGEN, read where they or the rules changed, in this process; what a judge read is "
            "in the store"
        )
    plan.show(stages, cluster, task.settings.store.root, Console(), (*ITEM.names, "response", "audio_hashes"))


def checked(settings: Rescore, series: str) -> str:
    """The `series`, whose nights lie in one folder of this name. Raises ConfigError for another name, and for what is
    acknowledged and no metric."""
    if not re.fullmatch(r"(?!\.)[^/\\]+", series):
        raise ConfigError(
            f"config key series: a plain name without / and without a dot before it, not {series!r}"
        )
    if unknown := sorted(set(settings.acknowledged) - set(METRIC_STAGES)):
        known = ", ".join(METRIC_STAGES)
        raise ConfigError(f"config key acknowledged: {unknown[0]!r} is no metric; there are {known}")
    return series


def stop_if_failing(limit: float, failed: Sequence[str], out: Sequence[Outage]) -> None:
    """Exit with status 1 where a metric fails, tonight or since an earlier night, and nobody acknowledged it, or nothing
    could be tried."""
    told = [*failed, *(drift_report.outage_sentence(one) for one in out if not one.acknowledged)]
    if told:
        sys.exit(f"error: {'; '.join(told)} (max_failure_rate={limit:g}); reasons are in failures.csv")


if __name__ == "__main__":
    entry("rescore", main)
