"""Manipulations that must not pay: the chains of a run rewritten, scored again, and compared with what they were.

python -m pipelines.stress                          every manipulation on the newest run
python -m pipelines.stress 'run=[runs/a,runs/b]'    the models of several runs in one table
python -m pipelines.stress --help                   every field
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from omegaconf import DictConfig
from rich.console import Console

from operators.aggregate import finish_rows
from operators.base import Spec, Stage
from operators.export import to_csv, write_all
from operators.extraction import Extract
from operators.failures import failure_reasons
from operators.fingerprint import fingerprint
from operators.frames import with_columns
from operators.printing import markdown_cell
from operators.schema import CLIPS, ITEM, RESPONSE, result_schema
from operators.store import Store
from operators.stress import compare, few, manipulated, sentences, silent_clip
from operators.stress_report import show
from operators.weights import require
from pipelines import plan
from pipelines.aria_eval import METRIC_STAGES, report_store, stop_if_failing
from pipelines.config import build, entry, plain
from pipelines.execution import resources, session
from pipelines.memory import check_memory
from pipelines.phases import Journal, extract, score
from pipelines.record import check_out, free_folder, write_record
from pipelines.responses import gold_answers
from pipelines.runs import find_run, named, read_record, recorded_fingerprints, rows_of_runs, say_unreadable
from pipelines.stress_settings import Stress, chosen_manipulations, chosen_rows


def main(config: DictConfig) -> None:
    """One stress test of `config`. SystemExit where too much failed."""
    settings: Stress = plain(config)
    names = chosen_manipulations(settings)
    runs = [find_run(name) for name in named(settings.run)]
    results = chosen_rows(settings, rows_of_runs(runs))
    say_unreadable(results)
    scorers = {m: build(getattr(settings.scorers, m), f"scorers.{m}") for m in METRIC_STAGES}
    planned = stages(settings, scorers, results.num_rows * (1 + len(names)))
    check_memory((stage for stage, _ in planned), settings.cluster)
    if settings.dry_run:
        given = (*ITEM.names, *CLIPS.names, *RESPONSE.names)
        plan.show(planned, settings.cluster, settings.store.root, Console(), given)
        return

    check_out(settings.out)
    for spec in scorers.values():
        require(spec)
    for note in (note for run in runs for note in other_scorers(run, scorers)):
        print(f"note: {note}", file=sys.stderr)
    store, journal = Store(settings.store.root), Journal()
    with session(settings.cluster):
        rows = ready(manipulated(results, names, silent_clip(), settings.seed))
        chains = extract(rows, settings.cluster, journal)
        scored = finish_rows(score(chains, scorers, store, settings.cluster, journal))

    changes = compare(scored, settings.n_resamples, settings.seed)
    several = "" if len(runs) == 1 else f"-and-{len(runs) - 1}-more"
    folder = Path(settings.out) if settings.out else free_folder(f"stress-{runs[0].name}{several}")
    write(folder, scored, changes)
    notes = {
        "run": str(runs[0]) if len(runs) == 1 else list(map(str, runs)),
        "models": settings.models,
        "manipulations": list(names),
    }
    write_record(folder, config, {"extract": Extract(), **scorers}, journal, notes)
    show(changes)
    report_store(journal, folder)
    stop_if_failing(settings.max_failure_rate, journal, results)


def stages(settings: Stress, scorers: Mapping[str, Spec], rows: int) -> list[tuple[Stage, int]]:
    """The stages of this test with the rows each would look at."""
    specs = {"extract": Extract(), **scorers}
    return [(Stage(m, spec, resources(getattr(settings.cluster, m))), rows) for m, spec in specs.items()]


def ready(rows: pa.Table) -> pa.Table:
    """Rewritten rows with the columns that scoring reads beside them."""
    error = pc.coalesce(rows["item_error"], rows["response_error"])
    return with_columns(rows, {"gold_answer": gold_answers(rows), "row_error": error})


def other_scorers(run: Path, scorers: Mapping[str, Spec]) -> list[str]:
    """What to say where the run was scored by others than these: the comparison holds, under these, and so it does of
    several runs that were scored unlike one another, since the rows as they were are scored again too."""
    recorded = recorded_fingerprints(read_record(run))
    differ = [m for m, spec in scorers.items() if recorded.get(m) not in (None, fingerprint(spec))]
    told = "so that its own table differs from the column 'before': set scorers= as in its run.json"
    return [f"{run} was scored by another {', '.join(differ)}, {told}"] if differ else []


def write(folder: Path, scored: pa.Table, changes: pa.Table) -> None:
    """The scored rows, the table of changes in four forms, what it says in sentences, and what went wrong how often."""
    write_all(folder, "stress", changes)
    marks = [pa.field("manipulation", pa.string()), pa.field("changed", pa.bool_())]
    schema = pa.schema([*marks, *result_schema()])
    rows = scored.select(schema.names).cast(schema)
    pq.write_table(rows, folder / "stress_rows.parquet", compression="zstd")
    told = pc.binary_join_element_wise(scored["manipulation"], scored["model"], ": ")
    (folder / "failures.csv").write_bytes(to_csv(failure_reasons(with_columns(scored, {"model": told}))))
    lines: Sequence[str] = [*sentences(changes), *filter(None, [few(changes.to_pylist())])]
    said = "".join(f"- {markdown_cell(line, limit=1000)}\n" for line in lines)
    (folder / "stress_findings.md").write_text(said, encoding="utf-8")


if __name__ == "__main__":
    entry("stress", main, lists=("run",))
