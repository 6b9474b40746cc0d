"""ARIA-Rubrics end to end: items -> audio -> chain of thought -> answer -> M1..M6 -> Parquet and a leaderboard.

python -m pipelines.aria_eval                       the embedded model on the built-in benchmark
python -m pipelines.aria_eval --help                every group and field
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from rich.console import Console

from operators.aggregate import finish_rows, summarise
from operators.audio import ProbeAudio
from operators.base import Spec, Stage
from operators.benchmarks.identity import notes_of
from operators.benchmarks.published import Published
from operators.extraction import Extract
from operators.failures import failure_reasons
from operators.lalms.recorded import Recorded, RecordedResponses
from operators.leaderboard import show
from operators.schema import ITEM, RESPONSE
from operators.store import Store
from operators.usage import in_words
from operators.weights import require
from pipelines import plan
from pipelines.config import AriaEval, ConfigError, build, entry, plain
from pipelines.execution import resources, session
from pipelines.failing import failing, told, unheard
from pipelines.judging import compare_judges, judge_failures, judge_stage, rate
from pipelines.memory import check_memory
from pipelines.naming import model_name
from pipelines.phases import Journal, extract, score
from pipelines.preflight import check_counts, check_ready, needs_of, sized
from pipelines.record import check_out, free_folder, write_predictions, write_record, write_tables
from pipelines.responses import gather, load_questions
from pipelines.sweeps import with_own_folder

METRIC_STAGES = ("m1", "m2", "m3", "m4", "m5", "m6")


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows the names of the chosen options."""
    chosen = HydraConfig.get().runtime.choices
    evaluate(with_own_folder(config), model_name(config), f"{chosen['benchmark']}-{chosen['model']}")


def evaluate(config: DictConfig, name: str, title: str) -> None:
    """One run of `config`: a generating model goes by `name`, and a folder for the tables by `title` where none is given.

    SystemExit where too much failed.
    """
    settings: AriaEval = plain(config)
    benchmark = build(settings.benchmark, "benchmark")
    model = build(settings.model, "model")
    scorers = {
        metric: build(getattr(settings.scorers, metric), f"scorers.{metric}") for metric in METRIC_STAGES
    }
    judges = {judge: build(node, f"judges.{judge}") for judge, node in settings.judges.items()}
    items = load_questions(benchmark, settings.dry_run)
    recorded = read_recorded(settings, benchmark, model, items, name)
    check_counts(model, needs_of(items), "choose another model, or model.limits.over_many=skip")
    model = sized(model, needs_of(items))
    planned = stages(settings, model, scorers, judges, items, recorded)
    check_memory((stage for stage, _ in planned), settings.cluster)
    if settings.dry_run:
        given = (*ITEM.names, *(RESPONSE.names if isinstance(model, Recorded) else ()))
        plan.show(planned, settings.cluster, settings.store.root, Console(), given)
        return

    check_out(settings.out)
    for spec in (model, *scorers.values()):
        require(spec)
    for spec in (model, *judges.values()):
        check_ready(spec)
    store, journal = Store(settings.store.root), Journal()
    with session(settings.cluster):
        responses = gather(items, recorded, name, model, store, settings.cluster, journal)
        rows = extract(responses, settings.cluster, journal)
        results = finish_rows(score(rows, scorers, store, settings.cluster, journal))
        ratings = rate(rows, judges, store, settings.cluster, journal)

    summary = summarise(results)
    failures = pa.concat_tables([failure_reasons(results), judge_failures(rows, ratings)])
    specs = {"audio": ProbeAudio(), "extract": Extract(), "generate": model, **scorers, **judges}
    notes = {"recorded": {source: found.describe() for source, (_, found) in recorded.items()}}
    folder = Path(settings.out) if settings.out else free_folder(title)
    write_tables(folder, results, summary, failures)
    if isinstance(benchmark, Published):
        write_predictions(folder, benchmark.predictions(results))
    write_record(folder, config, specs, journal, notes)
    show(summary, failures)
    if judges:
        compare_judges(folder, ratings, summary)
    report_store(journal, folder)
    print(f"as a page, with every response: python -m pipelines.report run={folder}")
    if note := unheard(results):
        print(f"note: {note}", file=sys.stderr)
    stop_if_failing(settings.max_failure_rate, journal, results)


def read_recorded(
    settings: AriaEval, benchmark: Any, model: Any, items: pa.Table, name: str
) -> dict[str, tuple[Recorded, RecordedResponses]]:
    """Responses that exist already: the user's own file, and the response sets a benchmark ships for comparison."""
    sources = {"model": model} if isinstance(model, Recorded) else {}
    if settings.yardsticks:
        sources |= {
            name: Recorded(path=str(path), name=name) for name, path in benchmark.yardsticks().items()
        }
    found = {source: (recorded, recorded.responses(items)) for source, recorded in sources.items()}
    check_names([responses for _, responses in found.values()], [] if isinstance(model, Recorded) else [name])
    for note in [
        *notes_of(items),
        *(warning for _, responses in found.values() for warning in responses.warnings()),
    ]:
        print(f"note: {note}", file=sys.stderr)
    return found


def check_names(found: Iterable[RecordedResponses], taken: list[str]) -> None:
    """Two sources under one name would be averaged as one model."""
    seen = set(taken)
    for responses in found:
        models = set(responses.table["model"].to_pylist())
        if models & seen:
            raise ConfigError(
                f"{responses.file}: the name {sorted(models & seen)[0]!r} is taken in this run; set model.name, "
                f"or yardsticks=false"
            )
        seen |= models


def stages(
    settings: AriaEval,
    model: Any,
    scorers: Mapping[str, Spec],
    judges: Mapping[str, Spec],
    items: pa.Table,
    recorded: Mapping,
) -> list[tuple[Stage, int]]:
    """The stages of this run with the rows each would look at."""
    cluster, n_items = settings.cluster, items.num_rows
    rows = sum(found.table.num_rows for _, found in recorded.values())
    chain = [(Stage("audio", ProbeAudio(), resources(cluster.audio)), n_items)]
    if not isinstance(model, Recorded):
        chain.append((Stage("generate", model, resources(cluster.generate)), n_items))
        rows += n_items
    chain.append((Stage("extract", Extract(), resources(cluster.extract)), rows))
    chain += [(Stage(m, scorers[m], resources(getattr(cluster, m))), rows) for m in METRIC_STAGES]
    return chain + [(judge_stage(name, judge, cluster), rows) for name, judge in judges.items()]


def report_store(journal: Journal, folder: Path) -> None:
    """One line: what was computed, what was found, where the tables are."""
    kept = [tally for name, tally in journal.stages.items() if name not in ("audio", "extract")]
    computed, found = sum(tally.computed for tally in kept), sum(tally.from_store for tally in kept)
    print(f"computed {computed} responses and scores, found {found} in the store; tables in {folder}")
    if "generate" in journal.stages and (took := in_words(journal.stages["generate"].usage)):
        print(f"new responses took {took}")


def stop_if_failing(limit: float | None, journal: Journal, rows: pa.Table) -> None:
    """Exit with status 1 where too many items could not be used, a stage failed on too many of the rows it could try, or
    nothing could be tried."""
    found = failing(limit, journal, rows) + nothing_tried(journal)
    if found:
        sys.exit(f"error: {'; '.join(found)} ({told(limit)}); reasons are in failures.csv")


def nothing_tried(journal: Journal) -> list[str]:
    """What to say where no metric could try any row."""
    unusable = all(journal.stages[name].rows == journal.stages[name].unusable for name in METRIC_STAGES)
    return ["no row could be scored"] if unusable else []


if __name__ == "__main__":
    entry("aria_eval", main)
