"""Counterfactual audit of an audio judge: items -> clips -> calls in drawn orders -> verdicts -> states -> a page in words.

python -m pipelines.judge_audit                                       the embedded cascade on the built-in audit
python -m pipelines.judge_audit benchmark=positional_emotion benchmark.path=my_audit.jsonl model=...
python -m pipelines.judge_audit model=recorded model.path=runs/<earlier>/verdicts.parquet
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig
from rich.console import Console

from operators.audio import ProbeAudio
from operators.audit.controls import BLUFFS
from operators.audit.outcomes import INSTANCE, VERDICT, instances
from operators.audit.presentation import CALL, planned_calls
from operators.audit.recorded import read_verdicts
from operators.audit.report import show
from operators.audit.tables import tables
from operators.base import Stage
from operators.chat_api import SPENT
from operators.lalms.recorded import Recorded
from operators.store import Store
from operators.weights import require
from pipelines import plan
from pipelines.at_hand import probe_at_hand
from pipelines.audit_phases import Court, bluff_all, counts, judge_all, refuse_unheard, usable
from pipelines.audit_record import write_audit
from pipelines.audit_settings import AuditPlan, JudgeAudit, read_plan
from pipelines.config import entry, plain
from pipelines.execution import resources, session
from pipelines.failing import OF_STAGE, failing, told
from pipelines.memory import check_memory
from pipelines.naming import model_name
from pipelines.phases import Journal, probe_audio
from pipelines.preflight import check_ready
from pipelines.record import check_out, free_folder
from pipelines.sweeps import with_own_folder


def main(config: DictConfig) -> None:
    """What Hydra calls: only it knows the names of the chosen options."""
    chosen = HydraConfig.get().runtime.choices
    audit(with_own_folder(config), model_name(config), f"{chosen['benchmark']}-{chosen['model']}")


def audit(config: DictConfig, name: str, title: str) -> None:
    """One run of `config`: a generating judge goes by `name`, and a folder for the tables by `title` where none is given.

    SystemExit where too much failed.
    """
    settings: JudgeAudit = plain(config)
    planned = read_plan(settings)
    check_memory([Stage("generate", planned.judge, resources(settings.cluster.generate))], settings.cluster)
    if settings.dry_run:
        available = (*CALL.names, *planned.items.column_names)
        plan.show(stages(planned, settings), settings.cluster, settings.store.root, Console(), available)
        return

    check_out(settings.out)
    tell(json.loads((planned.items.schema.metadata or {}).get(b"notes", b"[]")))
    journal = Journal()
    if isinstance(planned.judge, Recorded):
        items, verdicts = recorded(planned, settings, journal)
    else:
        require(planned.judge)
        check_ready(planned.judge)
        store = Store(settings.store.root)
        with session(settings.cluster):
            items = refuse_unheard(probe_audio(planned.items, settings.cluster, journal))
            court = Court(name, planned.judge, settings.attempts, store, settings.cluster, journal)
            verdicts = judge_all(usable(items), planned.designs, court)
    verdicts += bluff_all(usable(items), planned.designs[0], planned.bluffs)
    with journal.phase("tables"):
        cells = instances(verdicts)
        found = tables(verdicts, cells, settings.n_resamples)
    refused = {item["item_id"]: item["item_error"] for item in items.to_pylist() if item["item_error"]}
    rows = {
        "verdicts": pa.Table.from_pylist(verdicts, schema=VERDICT),
        "instances": pa.Table.from_pylist(cells, schema=INSTANCE),
    }
    specs = {"audio": ProbeAudio(), "generate": planned.judge}
    notes = {"refused": refused, **counts(verdicts)}
    folder = Path(settings.out) if settings.out else free_folder(title)
    write_audit(folder, items, {**rows, **found}, config, specs, journal, notes)
    show(found)
    tell(f"{item_id}: {error}" for item_id, error in refused.items())
    print(f"{store_line(journal)}tables and audit.html in {folder}")
    stop_if_failing(settings.max_failure_rate, journal, items, rows["verdicts"])


def recorded(
    planned: AuditPlan, settings: JudgeAudit, journal: Journal
) -> tuple[pa.Table, list[dict[str, Any]]]:
    """The items, refused as a run that generates refuses them as far as their clips are at hand, and the verdicts of a
    file, under the probes and cues of the run."""
    heard, design = probe_at_hand(planned.items, journal), planned.designs[0]
    items = refuse_unheard(heard.items)
    found = read_verdicts(planned.judge, items, design.probes, design.cues, settings.seed)
    tell([*heard.notes, *found.notes])
    return items, found.rows


def stages(planned: AuditPlan, settings: JudgeAudit) -> list[tuple[Stage, int]]:
    """The stages of this run with the rows each would look at; none for recorded verdicts, which need no Ray."""
    if isinstance(planned.judge, Recorded):
        return []
    cluster, items = settings.cluster, usable(planned.items)
    calls = sum(len(planned_calls(item, design)) for design in planned.designs for item in items)
    return [
        (Stage("audio", ProbeAudio(), resources(cluster.audio)), planned.items.num_rows),
        (Stage("generate", planned.judge, resources(cluster.generate)), calls),
    ]


def tell(notes: Any) -> None:
    """What the user should hear, beside the tables."""
    for note in notes:
        print(f"note: {note}", file=sys.stderr)


def store_line(journal: Journal) -> str:
    """What was computed and what was found; nothing for recorded verdicts."""
    tally = journal.stages.get("generate")
    return (
        "" if tally is None else f"computed {tally.computed} replies, found {tally.from_store} in the store; "
    )


def stop_if_failing(limit: float | None, journal: Journal, items: pa.Table, verdicts: pa.Table) -> None:
    """Exit with status 1 where too many items could not be used, generation failed on too many calls, or too many verdicts
    could not be read."""
    found = failing(limit, journal, items)
    asked = verdicts.filter(pc.invert(pc.is_in(verdicts["control"], pa.array(BLUFFS))))
    unpaid = pc.starts_with(
        pc.fill_null(asked["response_error"], ""), SPENT
    )  # not asked, so no failure of the judge
    asked = asked.filter(pc.invert(unpaid))
    null = asked["pred"].null_count
    if not asked.num_rows:
        found.append("no item could be asked")
    elif null > (OF_STAGE if limit is None else limit) * asked.num_rows:
        found.append(f"{null} of {asked.num_rows} calls have no readable verdict")
    if found:
        sys.exit(f"error: {'; '.join(found)} ({told(limit)}); reasons are in verdicts.parquet")


if __name__ == "__main__":
    entry("judge_audit", main)
