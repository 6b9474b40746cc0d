"""The rows of a night: those of the last one that still hold, and the others scored; then what they say together.

Memory holds `rows_at_once` responses, or some ten thousand rows without their texts, however many the store has.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from operators import nights, parts
from operators.aggregate import finish_rows, moments, summary_of, together
from operators.asked import answered, with_answers
from operators.base import Spec
from operators.buckets import Buckets, portions
from operators.carrying import QUESTION, carry, identity, questions, untouched, whole
from operators.drift import Outage
from operators.extraction import Extract
from operators.failures import failure_reasons, reasons_together
from operators.fingerprint import fingerprint
from operators.locators import shown
from operators.moved import Comparison
from operators.schema import METRICS, result_schema
from operators.store import Store, StoreError
from pipelines.execution import session
from pipelines.lookup import Tally
from pipelines.night_votes import Named, Votes, standing, votes_of
from pipelines.phases import Journal, blocked, extract, score
from pipelines.rescore_settings import Rescore
from pipelines.responses import to_judge

WAITING = 16  # portions whose means are in memory until they are added up
# Per metric how many rows failed as in the night before, by reason.
Again = dict[str, Counter[str]]


class Rows(NamedTuple):
    """NIGHT_ROW by item: of the night to compare with, of this one, and those of the former that lacked a value, where
    its scorers are this night's."""

    last: Buckets
    now: Buckets
    failed: Buckets


def night_rows(
    settings: Rescore,
    store: Store,
    named: Mapping[str, Mapping[str, str]],
    scorers: Mapping[str, Spec],
    before: tuple[str, nights.Night | None],
    folder: Path,
    scratch: Path,
    journal: Journal,
    voting: Named = MappingProxyType({}),
) -> tuple[Rows, int, Again, Votes]:
    """The rows of all stored responses, how many of them were carried over, what failed now as in the night before, and how many
    of the rows are votes.

    `before`: the series and the night to compare with and to carry rows over from. `named`, `voting`: the models whose
    responses are scored, and those whose trials vote, with their names in results.

    Raises StoreError where there is no response at all.
    """
    series, last = before
    (folder / "results.parquet").unlink(missing_ok=True)  # of an earlier night in this folder
    rows = Rows(*(Buckets(scratch / name, nights.NIGHT_ROW) for name in Rows._fields))
    usable, stand = (Buckets(scratch / name, nights.NIGHT_ROW) for name in ("usable", "stand"))
    if last:
        same = same_scorers(last, scorers)
        carried = same and not settings.results
        kept = untouched(store, last.record.get("models", {})) if carried else set()
        for table in nights.stream(store, series, last.name):
            rows.last.add(table)
            if same:
                rows.failed.add(table.filter(~whole(table)))
            stand.add(standing(store, last, table))
            usable.add(table.filter(pc.is_in(table["fingerprint"], pa.array(sorted(kept), pa.string()))))
    todo = Buckets(scratch / "todo", QUESTION)
    carry(
        questions(store, named, scratch),
        usable,
        named,
        todo,
        rows.now,
    )
    n_carried, again = len(rows.now), {}
    for stage in scorers if n_carried else ():
        journal.add(stage, Tally(rows=n_carried, from_store=n_carried))
    if len(todo):
        again = score_all(settings, store, named, scorers, todo, rows, folder / "results.parquet", journal)
    with journal.phase("votes"):
        votes = votes_of(store, voting, stand, rows.now, scratch, settings.rows_at_once)
    if not len(rows.now):
        raise StoreError(f"the store {shown(store.root)} holds questions, and no response to any of them")
    return rows, n_carried, again, votes


def same_scorers(last: nights.Night, scorers: Mapping[str, Spec]) -> bool:
    """Whether `last` was scored as this night is."""
    specs = {"extract": Extract(), **scorers}
    return all(last.fingerprint(name) == fingerprint(spec) for name, spec in specs.items())


def score_all(
    settings: Rescore,
    store: Store,
    named: Mapping[str, Mapping[str, str]],
    scorers: Mapping[str, Spec],
    todo: Buckets,
    rows: Rows,
    path: Path,
    journal: Journal,
) -> Again:
    """Score the responses to the questions `todo`, some at a time, into `rows.now`; whole results go to `path` if wanted.

    Returns what failed as in the night before.
    """
    schema, n_unanswered, again = result_schema(), 0, {name: Counter() for name in scorers}
    whole = pq.ParquetWriter(path, schema, compression="zstd") if settings.results else nullcontext()
    with session(settings.cluster), whole as writer:
        for asked, failed in goes(todo, rows.failed, settings.rows_at_once):
            questioned = read_whole(store, asked, named)
            usable = answered(questioned)
            n_unanswered += questioned.num_rows - usable.num_rows
            if not usable.num_rows:
                continue
            ready = extract(to_judge(usable), settings.cluster, journal)
            results = finish_rows(score(ready, scorers, store, settings.cluster, journal))
            if writer:
                writer.write_table(results.select(schema.names).cast(schema))
            rows.now.add(results)
            for name, reasons in failed_again(results, failed, scorers).items():
                again[name] += reasons
    if n_unanswered:
        print(
            f"note: {n_unanswered} questions wait for a response of a run that stopped: run it again to have them counted",
            file=sys.stderr,
        )
    return again


def goes(todo: Buckets, failed: Buckets, at_once: int) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The questions in portions of at most `at_once`, each with the rows `failed` about its items."""
    for rows, known in portions(todo, failed, at_most=at_once, counted=todo):
        # One go, but where an item has more rows, or a bucket was not cut quite evenly.
        size = math.ceil(rows.num_rows / max(1, math.ceil(rows.num_rows / at_once)))
        yield from ((rows.slice(start, size), known) for start in range(0, rows.num_rows, size or 1))


def failed_again(results: pa.Table, failed: pa.Table, scorers: Mapping[str, Spec]) -> Again:
    """The rows that a metric could try (`results`) and that have no value, as in the night before (`failed`)."""
    places, again = pc.index_in(identity(results), identity(failed)), {}
    before = failed.take(places)
    for metric in METRICS:
        short = metric[:2]
        tried = pa.array([reason is None for reason in blocked(scorers[short], results)])
        null = pc.and_(pc.is_valid(places), pc.and_(pc.is_null(results[metric]), pc.is_null(before[metric])))
        why = results[f"{metric}_reason"].filter(pc.and_(tried, null)).to_pylist()
        again[short] = Counter((reason or "no reason").partition(":")[0] for reason in why)
    return again


def failing(limit: float, journal: Journal, again: Again) -> dict[str, str]:
    """{stage: what to say of it} for every one that failed on more than the share `limit` of the rows scored tonight.

    Neither a row carried over nor a score in the store was scored tonight; a row that failed as in the night before is
    tried again, and is no news: so an outage shows beside however many rows stand, and one lasting null alarms once.
    """
    told = {}
    for name, tally in journal.stages.items():
        known = sum(again.get(name, {}).values())
        failed, tried = tally.failed - known, tally.usable - tally.from_store - known
        if failed > limit * tried:
            told[name] = f"{name} failed on {failed} of {tried} rows scored tonight"
    return told


def outages(
    last: nights.Night | None, journal: Journal, again: Again, acknowledged: Collection[str]
) -> tuple[Outage, ...]:
    """The metrics that failed in the night before and have scored nothing tonight, though they tried.

    One row that cannot be scored is no outage, nor are rows of which the metric itself says why ("no_gold_answer"), as
    long as it has a value of any other: they may last for ever. That a scorer raised an error says nothing of the row.
    """
    standing, found = (last.record.get("out", {}) if last else {}), []
    for metric, since in standing.items():
        tally, reasons = journal.stages.get(metric, Tally()), again.get(metric, Counter())
        scored = tally.usable - tally.from_store - tally.failed
        raised = sum(count for reason, count in reasons.items() if reason[:1].isupper())
        alone = not tally.from_store and set(reasons) != {"no_gold_answer"}
        n_rows = sum(reasons.values())
        if not scored and n_rows > 1 and (raised == n_rows or alone):
            found.append(Outage(metric, since or last.name, n_rows, dict(reasons), metric in acknowledged))
    return tuple(found)


def read_whole(store: Store, asked: pa.Table, named: Mapping[str, Mapping[str, str]]) -> pa.Table:
    """The questions (QUESTION) with their texts and what the models said."""
    tables = []
    for one in pc.unique(asked["fingerprint"]).to_pylist():
        keys = asked.filter(pc.equal(asked["fingerprint"], one))["key"].to_pylist()
        tables.append(with_answers(store, one, named[one], store.shelf(f"asked/{one}").find(keys)))
    return pa.concat_tables(tables)


def summed(last: Buckets, now: Buckets, path: Path) -> tuple[pa.Table, pa.Table, Comparison]:
    """Summary and reasons for failures of the rows `now`, and how they compare with `last`; the rows go to `path`."""
    means, reasons, compared = [], [], Comparison()
    schema = nights.NIGHT_ROW
    with pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True) as writer:
        for then, today in portions(last, now):
            compared.add(then, today)
            if today.num_rows:
                writer.write_table(today, row_group_size=parts.ROWS_PER_GROUP)
                means.append(moments(today))
                reasons.append(failure_reasons(today))
            if len(means) == WAITING:
                means, reasons = [together(means)], [reasons_together(reasons)]
    return summary_of(means), reasons_together(reasons), compared
