"""ARIA-Rubrics end to end: items -> audio -> chain of thought -> answer -> M1..M6 -> Parquet and a leaderboard.

python -m pipelines.aria_eval                       the embedded model on the built-in benchmark
python -m pipelines.aria_eval --help                every group and field
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from operators.extraction import Extract
from rich.console import Console

from operators.aggregate import failure_reasons, finish_rows, summarise
from operators.audio import ProbeAudio
from operators.base import Spec, Stage
from operators.frames import with_columns
from operators.lalms.recorded import Recorded, RecordedResponses
from operators.leaderboard import show
from operators.store import Store
from operators.weights import require
from pipelines import plan
from pipelines.config import AriaEval, build, entry, plain
from pipelines.execution import resources, session
from pipelines.phases import Journal, extract, generate, probe_audio, score
from pipelines.record import write_record, write_tables
from pipelines.responses import join_items

METRIC_STAGES = ("m1", "m2", "m3", "m4", "m5", "m6")


def main(config: DictConfig) -> None:
    settings: AriaEval = plain(config)
    benchmark = build(settings.benchmark, "benchmark")
    model = build(settings.model, "model")
    scorers = {name: build(getattr(settings.scorers, name), f"scorers.{name}") for name in METRIC_STAGES}
    items = benchmark.load()
    recorded = read_recorded(settings, benchmark, model, items)
    if settings.dry_run:
        plan.show(
            stages(settings, model, scorers, items, recorded),
            settings.cluster,
            settings.store.root,
            Console(),
        )
        return

    for spec in (model, *scorers.values()):
        require(spec)
    store, journal = Store(settings.store.root), Journal()
    with session(settings.cluster):
        clips = probe_audio(items, settings.cluster, journal)
        responses = [found.table for found in recorded.values()]
        if not isinstance(model, Recorded):
            name = HydraConfig.get().runtime.choices["model"]
            once = with_columns(clips, {"trial": pa.array([0] * clips.num_rows, pa.int64())})
            responses.append(generate(once, name, model, store, settings.cluster, journal))
        rows = extract(join_items(clips, pa.concat_tables(responses)), settings.cluster, journal)
        results = finish_rows(score(rows, scorers, store, settings.cluster, journal))

    summary, failures = summarise(results), failure_reasons(results)
    folder = Path(HydraConfig.get().runtime.output_dir)
    specs = {"audio": ProbeAudio(), "extract": Extract(), "generate": model, **scorers}
    notes = {"recorded": {name: found.describe() for name, found in recorded.items()}}
    write_tables(folder, results, summary, failures)
    write_record(folder, config, specs, journal, notes)
    show(summary, failures)
    report_store(journal, folder)
    stop_if_failing(settings.max_failure_rate, journal)


def read_recorded(
    settings: AriaEval, benchmark: Any, model: Any, items: pa.Table
) -> dict[str, RecordedResponses]:
    """Responses that exist already: the user's own file, and the response sets a benchmark ships for comparison."""
    sources = {"model": model} if isinstance(model, Recorded) else {}
    if settings.yardsticks:
        sources |= {
            name: Recorded(path=str(path), name=name) for name, path in benchmark.yardsticks().items()
        }
    found = {name: source.responses(items) for name, source in sources.items()}
    notes = json.loads((items.schema.metadata or {}).get(b"notes", b"[]"))
    for note in [*notes, *(warning for responses in found.values() for warning in responses.warnings())]:
        print(f"note: {note}", file=sys.stderr)
    return found


def stages(
    settings: AriaEval, model: Any, scorers: Mapping[str, Spec], items: pa.Table, recorded: Mapping
) -> list[tuple[Stage, int]]:
    """The stages of this run with the rows each would look at."""
    cluster, n_items = settings.cluster, items.num_rows
    rows = sum(found.table.num_rows for found in recorded.values())
    chain = [(Stage("audio", ProbeAudio(), resources(cluster.audio)), n_items)]
    if not isinstance(model, Recorded):
        chain.append((Stage("generate", model, resources(cluster.generate)), n_items))
        rows += n_items
    chain.append((Stage("extract", Extract(), resources(cluster.extract)), rows))
    return chain + [(Stage(m, scorers[m], resources(getattr(cluster, m))), rows) for m in METRIC_STAGES]


def report_store(journal: Journal, folder: Path) -> None:
    """One line: what was computed, what was found, where the tables are."""
    kept = [tally for name, tally in journal.stages.items() if name not in ("audio", "extract")]
    computed, found = sum(tally.computed for tally in kept), sum(tally.from_store for tally in kept)
    print(f"computed {computed} responses and scores, found {found} in the store; tables in {folder}")


def stop_if_failing(limit: float, journal: Journal) -> None:
    """Exit with status 1 where a stage failed on too many of the rows it could try, or nothing could be tried."""
    failing = [
        f"{name} failed on {tally.failed} of {tally.rows - tally.unusable} usable rows"
        for name, tally in journal.stages.items()
        if tally.failure_rate > limit
    ]
    if all(journal.stages[name].rows == journal.stages[name].unusable for name in METRIC_STAGES):
        failing.append("no row could be scored")
    if failing:
        sys.exit(f"error: {'; '.join(failing)} (max_failure_rate={limit:g}); reasons are in failures.csv")


if __name__ == "__main__":
    entry("aria_eval", main)
