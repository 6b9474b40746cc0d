"""The phases that every run is made of: probe audio, generate, extract, score.

Each returns one row per row it was given, in the same order, with a reason wherever there is no result.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.audio import ProbeAudio
from operators.base import Spec, Stage
from operators.chat_api import UNAVAILABLE, ChatUnavailable
from operators.entries import InMemory, OnDisk
from operators.extraction import Extract
from operators.frames import with_columns
from operators.lalms.asking import Lalm
from operators.schema import CHAIN, CLIPS, METRICS, RESPONSE
from operators.spool import Spool, portions
from operators.store import Store
from operators.usage import number
from pipelines.config import Cluster
from pipelines.execution import resources, run
from pipelines.lookup import Lookup, Tally, encoded, find_or_compute, find_or_compute_apart
from pipelines.preflight import check_seconds

# Stored beside a response, for whoever reads the store.
KEPT_BESIDE = ("item_id", "benchmark", "trial")


@dataclass
class Journal:
    """Tallies by stage and wall seconds by phase: what run.json says of a run."""

    stages: dict[str, Tally] = field(default_factory=dict)
    wall_seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            self.wall_seconds[name] = self.wall_seconds.get(name, 0.0) + time.perf_counter() - started

    def add(self, stage: str, tally: Tally) -> None:
        """Count what a stage did with some rows; a stage may run over the rows of a run in several goes."""
        self.stages[stage] = self.stages[stage] + tally if stage in self.stages else tally

    def failing(self, limit: float) -> list[str]:
        """What to say of every stage that failed on more than the share `limit` of the rows it could try.

        A clip that cannot be heard is a fault of the input, not of a stage: it blocks what needs it (pipelines.failing
        counts it).
        """
        return [
            f"{name} failed on {tally.failed} of {tally.usable} usable rows"
            for name, tally in self.stages.items()
            if name != "audio" and tally.failure_rate > limit
        ]


def probe_audio(items: pa.Table, cluster: Cluster, journal: Journal, spec: Spec | None = None) -> pa.Table:
    """Decode every clip once: `items` with the CLIPS columns (hashes, seconds, audio_error)."""
    stage = Stage("audio", spec or ProbeAudio(), resources(cluster.audio))
    usable = pc.is_null(items["item_error"])
    with journal.phase("audio"):
        done = _all_rows(stage, with_columns(items, {"audio.todo": usable}), "audio")
    error = pc.coalesce(done["audio.error"], done["audio_error"])
    journal.stages["audio"] = _tally(done, "audio", error)
    return with_columns(done, {"audio_error": error}).select([*items.column_names, *CLIPS.names])


def extract(rows: pa.Table, cluster: Cluster, journal: Journal, spec: Spec | None = None) -> pa.Table:
    """Slots and answers of every response: `rows` with the CHAIN columns."""
    stage = Stage("extract", spec or Extract(), resources(cluster.extract))
    with journal.phase("extract"):
        done = _all_rows(
            stage, with_columns(rows, {"extract.todo": pc.is_valid(rows["response"])}), "extract"
        )
    journal.add("extract", _tally(done, "extract", done["extract.error"]))
    failed = pc.coalesce(done["row_error"], done["extract.error"])
    return with_columns(done, {"row_error": failed}).select([*rows.column_names, *CHAIN.names])


def _all_rows(stage: Stage, table: pa.Table, title: str) -> pa.Table:
    """Run one stage over a table and give the rows back in their first order."""
    numbered = with_columns(table, {"row": pa.array(np.arange(table.num_rows))})
    return pa.concat_tables(run([stage], numbered, title)).sort_by("row").drop_columns("row")


def _tally(done: pa.Table, stage: str, error: pa.ChunkedArray) -> Tally:
    tried = pc.sum(done[f"{stage}.todo"]).as_py() or 0
    failed = done.num_rows - error.null_count
    seconds = pc.sum(done[f"{stage}.seconds"]).as_py()
    untried = done.num_rows - tried
    return Tally(done.num_rows, untried, 0, tried, failed, seconds, encoded=encoded(done, stage))


def generate(
    rows: pa.Table,
    name: str,
    model: Spec,
    store: Store,
    cluster: Cluster,
    journal: Journal,
    stage: str = "generate",
) -> pa.Table:
    """One response of `model` per row (RESPONSE columns): from the store where it is there, else generated.

    `rows`: items with CLIPS columns and `trial`; where trials reorder clips or choices, they already are in that order.
    `stage`: what the journal calls it, where a run generates more than once.
    Raises ConfigError, before anything is generated, for clips beyond the model's limits, and ChatUnavailable where the
    model's server turned out to be unusable; what was answered until then is in the store.
    """
    return responses(ask_all(rows, model, store, cluster, journal, stage), rows, name)


def generate_together(
    asked: Mapping[str, tuple[Lalm, pa.Table]],
    name: str,
    store: Store,
    cluster: Cluster,
    journal: Journal,
    stage: str = "generate",
) -> dict[str, pa.Table]:
    """`generate` for each of `asked` by its key, in one job: models that differ in their prompts alone are loaded once."""
    for model, rows in asked.values():
        check_seconds(model, rows)
    needs = resources(cluster.generate)
    together = replace(needs, pool=needs.pool or stage)
    with journal.phase(stage):
        lookups = {
            key: _responses_of(Stage(f"{stage}.{key}", model, together), rows, store)
            for key, (model, rows) in asked.items()
        }
        pairs = [(lookups[key], rows) for key, (_, rows) in asked.items()]
        find_or_compute_apart(pairs, stage, carry=KEPT_BESIDE, whole="item_id")
    tally = sum((lookup.tally() for lookup in lookups.values()), Tally())
    journal.add(stage, tally)
    tell_left_out(stage, tally)
    stop_if_unavailable([reason for lookup in lookups.values() for reason in lookup.reasons().to_pylist()])
    return {key: responses(lookups[key], rows, name) for key, (_, rows) in asked.items()}


def ask_all(
    rows: pa.Table | Spool,
    model: Spec,
    store: Store,
    cluster: Cluster,
    journal: Journal,
    stage: str,
    entries: type[InMemory | OnDisk] = InMemory,
) -> Lookup:
    """What `generate` does up to its table. `entries`: where the responses lie (`pipelines.lookup.Lookup`)."""
    check_seconds(model, rows)
    with journal.phase(stage):
        lookup = _responses_of(Stage(stage, model, resources(cluster.generate)), rows, store, entries)
        find_or_compute([lookup], rows, stage, carry=KEPT_BESIDE, whole="item_id")
    journal.add(stage, lookup.tally())
    tell_left_out(stage, lookup.tally())
    stop_if_unavailable(lookup.reasons().to_pylist())
    return lookup


def _responses_of(
    step: Stage, rows: pa.Table | Spool, store: Store, entries: type[InMemory | OnDisk] = InMemory
) -> Lookup:
    blocked: list[str | None] = []
    for some in portions(rows):
        blocked += pc.coalesce(some["item_error"], some["audio_error"]).to_pylist()
    return Lookup(step, store.responses(step.spec), rows, blocked, "response_error", entries=entries)


def responses(lookup: Lookup, rows: pa.Table, name: str, part: slice = slice(None)) -> pa.Table:
    """The RESPONSE columns of `rows`: those of which `lookup` was made, or a part of them."""
    entries, reasons = lookup.results(part)
    columns = {column: entries[column] for column in ("response", "finish_reason", "usage")}
    columns["audio_seconds_used"] = [
        number(text, "audio_seconds_used") for text in entries["usage"].to_pylist()
    ]
    whose = {"item_id": rows["item_id"], "trial": rows["trial"]}
    whose["model"] = [name] * len(reasons)
    return pa.table({**whose, **columns, "response_error": reasons}, schema=RESPONSE)


def tell_left_out(stage: str, tally: Tally) -> None:
    """Say how many rows a spend limit left out: they are no failures, and would else stand among the reasons alone."""
    if tally.left_out:
        print(
            f"note: {stage}: {tally.left_out} of {tally.rows} rows were not asked, as the spend limit was reached; the "
            "same command with a higher limit asks only those",
            file=sys.stderr,
        )


def stop_if_unavailable(reasons: Sequence[str | None]) -> None:
    """A model that cannot be reached has no accuracy: no tables, one sentence, and a run that failed."""
    found = [reason for reason in reasons if reason and reason.startswith(UNAVAILABLE)]
    if found:
        raise ChatUnavailable(
            f"{found[0]}; {len(found)} of {len(reasons)} responses are missing, the others are in the store"
        )


def score(
    rows: pa.Table, scorers: Mapping[str, Spec], store: Store, cluster: Cluster, journal: Journal
) -> pa.Table:
    """`rows` with value, reason and details of every metric that `scorers` ({"m1".."m6": Spec}) holds."""
    lookups = {}
    with journal.phase("score"):
        for metric in METRICS:
            short = metric[:2]
            if short not in scorers:
                continue
            stage = Stage(short, scorers[short], resources(getattr(cluster, short)))
            columns = {"value": metric, "details": f"{metric}_details"}
            shelf = store.scores(metric, stage.spec)
            lookups[metric] = Lookup(
                stage, shelf, rows, blocked(stage.spec, rows), f"{metric}_reason", columns
            )
        find_or_compute(list(lookups.values()), rows, "score")
    scored = rows
    for metric, lookup in lookups.items():
        entries, reasons = lookup.results()
        journal.add(metric[:2], lookup.tally())
        columns = {
            metric: entries["value"],
            f"{metric}_reason": reasons,
            f"{metric}_details": entries["details"],
        }
        scored = with_columns(scored, columns)
    return scored


def blocked(spec: Spec, rows: pa.Table) -> list[str | None]:
    """Why a metric cannot be tried on a row: there is no response, or it needs a clip that cannot be heard."""
    if "audio_hashes" not in spec.reads:
        return rows["row_error"].to_pylist()
    return pc.coalesce(rows["row_error"], rows["audio_error"]).to_pylist()
