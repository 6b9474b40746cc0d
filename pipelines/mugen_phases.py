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
from operators.spool import Spool, parts
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
) -> Spool:
    """One row per item, set, number of candidates and trial (TRIAL_ROW), the question as the set's prompt puts it, in portions
    of whole items. Items of the same clips come together, at the place of the first of them."""
    spool, portion = Spool(), []
    for item in _by_first(items):
        for drawn, n_trials in sets.items():
            for n in counts:
                portion += _presented(item, drawn, n_trials, n, seed)
        if len(portion) >= PORTION:
            spool.add(pa.Table.from_pylist(portion, schema=TRIAL_ROW))
            portion = []
    spool.add(pa.Table.from_pylist(portion, schema=TRIAL_ROW))
    return spool


def _by_first(items: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    first: dict[Any, int] = {}
    clips = [tuple(sorted(name or "" for name in item.get("audio_hashes") or ())) for item in items]
    places = [first.setdefault(heard or row, len(first)) for row, heard in enumerate(clips)]
    return [items[row] for row in sorted(range(len(items)), key=places.__getitem__)]


def _presented(
    item: dict[str, Any], drawn: GenerationSet, n_trials: int, n: int | None, seed: int
) -> list[dict[str, Any]]:
    if n is not None and not scalable(item, n):
        return []
    options = n or len(item["audio_uris"]) - item["n_reference"]
    asked = instruction(Prompt(drawn.prompt), item["question"], item["n_reference"], options)
    kind = {"prompt": drawn.prompt, "permuted": drawn.permute, "voting": drawn.voting}
    presented = trial_rows({**item, "question": asked}, n_trials, seed, drawn.permute, n)
    return [row | kind for row in presented]


def generate_trials(
    rows: Spool,
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
    keep_presented(store, model, _asked(rows, lookup, name), how)
    return _with_responses(rows, lookup, name)


def _asked(rows: Spool, lookup: Lookup, name: str) -> Iterator[pa.Table]:
    for part, some in parts(rows):
        told = {"response_error": lookup.reasons(part), "response_key": lookup.keys[part]}
        yield with_columns(some, {"model": pa.repeat(name, some.num_rows), **told})


def _with_responses(rows: Spool, lookup: Lookup, name: str) -> Iterator[dict[str, Any]]:
    for part, some in parts(rows):
        said = phases.responses(lookup, some, name, part)
        columns = ("model", "response", "finish_reason", "usage", "response_error")
        kept = some.select([column for column in some.column_names if column in TRIALS.names])
        yield from with_columns(kept, {column: said[column] for column in columns}).to_pylist()


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
            # What Arrow has freed it keeps for itself, more with every portion.
            pa.default_memory_pool().release_unused()
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
