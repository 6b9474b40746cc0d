"""The phases of a MUGEN run: refuse, fan out, generate, read options.

Fan-out comes before generation and a fanned-out row carries no audio: clips are decoded and hashed once per item.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from operators.answers import Extraction
from operators.base import Spec
from operators.entries import OnDisk
from operators.frames import with_columns
from operators.judges.option_judge import JudgeError, OptionJudge
from operators.mugen import judged
from operators.mugen.kept import Presenting, keep_presented
from operators.mugen.options import Asked, verdict_lost
from operators.mugen.presentation import (
    TRIAL_ROW,
    GenerationSet,
    instruction,
    map_back,
    same_clip_twice,
    scalable,
    trial_rows,
)  # fmt: skip
from operators.mugen.votes import TRIALS
from operators.prompts import Prompt
from operators.store import Store
from pipelines import phases
from pipelines.config import Cluster, ConfigError
from pipelines.lookup import Lookup
from pipelines.phases import Journal

PORTION = 512  # trials that are read, written and forgotten together
READ_AT_ONCE = 256  # responses between two writes of a judge's verdicts: what an interruption costs


def refuse_unheard(clips: pa.Table) -> pa.Table:
    """Items that cannot be asked get an `item_error`: a clip is missing or broken, or two candidates decode to one sound.

    *Our reading*: such an item is no fault of the model, so it is left out of accuracy, by name, and counted.
    """
    errors = [
        item["item_error"] or item["audio_error"] or same_clip_twice(item) for item in clips.to_pylist()
    ]
    return with_columns(clips, {"item_error": pa.array(errors, pa.string())})


def usable(items: pa.Table) -> list[dict[str, Any]]:
    """The items that can be judged."""
    return [item for item in items.to_pylist() if item["item_error"] is None]


def fan_out(
    items: Sequence[dict[str, Any]],
    sets: Mapping[GenerationSet, int],
    counts: Sequence[int | None],
    seed: int,
) -> pa.Table:
    """One row per set, number of candidates, item and trial (TRIAL_ROW), the question as the set's prompt puts it."""
    parts = []
    for drawn, n_trials in sets.items():
        together = max(1, PORTION // n_trials)  # items whose rows are Python objects at one time
        for n in counts:
            for start in range(0, len(items), together):
                rows = _presented(items[start : start + together], drawn, n_trials, n, seed)
                parts.append(pa.Table.from_pylist(rows, schema=TRIAL_ROW))
    return pa.concat_tables([TRIAL_ROW.empty_table(), *parts])


def _presented(
    items: Sequence[dict[str, Any]], drawn: GenerationSet, n_trials: int, n: int | None, seed: int
) -> list[dict[str, Any]]:
    prompt, rows = Prompt(drawn.prompt), []
    kind = {"prompt": drawn.prompt, "permuted": drawn.permute, "voting": drawn.voting}
    for item in items:
        if n is None or scalable(item, n):
            options = n or len(item["audio_uris"]) - item["n_reference"]
            asked = instruction(prompt, item["question"], item["n_reference"], options)
            presented = trial_rows({**item, "question": asked}, n_trials, seed, drawn.permute, n)
            rows += [row | kind for row in presented]
    return rows


def generate_trials(
    rows: pa.Table,
    how: Presenting,
    stage: str,
    name: str,
    model: Spec,
    store: Store,
    cluster: Cluster,
    journal: Journal,
) -> Iterator[dict[str, Any]]:
    """The fanned-out rows with what the model said, which lies on disk until then. The store keeps what was asked, so that
    `pipelines.rescore` can read it anew."""
    lookup = phases.ask_all(rows, model, store, cluster, journal, stage, OnDisk)
    named = with_columns(rows, {"model": pa.repeat(name, rows.num_rows)})
    keep_presented(store, model, named, lookup.reasons(), lookup.keys, how)
    return _with_responses(rows.select([c for c in rows.column_names if c in TRIALS.names]), lookup, name)


def _with_responses(rows: pa.Table, lookup: Lookup, name: str) -> Iterator[dict[str, Any]]:
    for start in range(0, rows.num_rows, PORTION):
        part = slice(start, start + PORTION)
        said = phases.responses(lookup, rows, name, part)
        columns = ("model", "response", "finish_reason", "usage", "response_error")
        yield from with_columns(rows[part], {column: said[column] for column in columns}).to_pylist()


def read_and_keep(
    rows: Iterable[dict[str, Any]], reader: Any, items: pa.Table, store: Store, path: Path
) -> pa.Table:
    """`read_options` of all `rows`, written to `path` as they come. Returned without the responses, which votes and tables
    do not need: memory holds no more than PORTION of them."""
    kept, rows = [], iter(rows)
    with pq.ParquetWriter(path, TRIALS, compression="zstd") as writer:
        while some := list(islice(rows, PORTION)):
            table = read_options(some, reader, items, store)
            writer.write_table(table)
            kept.append(table.drop_columns("response"))
    return pa.concat_tables([TRIALS.empty_table().drop_columns("response"), *kept])


def read_options(rows: Sequence[dict[str, Any]], reader: Any, items: pa.Table, store: Store) -> pa.Table:
    """Trials with the option each response selects, mapped back to the original candidates (TRIALS).

    `items` gives what the rows lack: task, ranking, and the question as the benchmark asks it.
    """
    whole = {
        item["item_id"]: item for item in items.select(["item_id", "task", "ranking", "question"]).to_pylist()
    }
    asked = [
        Asked(whole[row["item_id"]]["question"], len(row["audio_order"]), row["response"]) for row in rows
    ]
    distinct = list(dict.fromkeys(asked))
    found = dict(zip(distinct, _read(distinct, reader, store), strict=True))
    done = [
        {**row, **whole[row["item_id"]], **_read_row(row, found[one])}
        for row, one in zip(rows, asked, strict=True)
    ]
    return pa.Table.from_pylist(done, schema=TRIALS)


def _read_row(row: Mapping[str, Any], found: Extraction) -> dict[str, Any]:
    choice = map_back(row["audio_order"], found.index)
    return {
        "gold_position": row["audio_order"].index(row["gold_index"]),
        "option_position": found.index,
        "option_stage": found.stage,
        "option_reason": found.reason,
        "choice_index": choice,
        "correct": None if verdict_lost(found.reason) else choice == row["gold_index"],
    }


def _read(asked: Sequence[Asked], reader: Any, store: Store) -> list[Extraction]:
    """A judge's verdicts come from the store where it has them: asking again costs money."""
    if not isinstance(reader, OptionJudge):
        return reader.read(asked)
    shelf = store.scores(judged.READINGS, reader)
    known = dict(zip(asked, judged.find(shelf, asked), strict=True))
    missing = [one for one, found in known.items() if found is None]
    for start in range(0, len(missing), READ_AT_ONCE):
        some = missing[start : start + READ_AT_ONCE]
        try:
            fresh = reader.read(some)
        except JudgeError as error:
            judged.keep(shelf, some, error.finished)
            raise ConfigError(f"reader: {error}") from error
        judged.keep(shelf, some, fresh)
        known |= zip(some, fresh, strict=True)
    return [known[one] for one in asked]
