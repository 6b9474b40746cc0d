"""What models are asked and what they said: gathered, kept in the store, and joined to the items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.asked import keep_asked, keep_recorded
from operators.base import Spec
from operators.benchmarks.published import Published
from operators.fingerprint import row_keys
from operators.frames import to_batch, with_columns
from operators.lalms.recorded import Recorded, RecordedResponses
from operators.store import Store
from pipelines.config import Cluster, ConfigError
from pipelines.phases import Journal, generate, probe_audio
from pipelines.preflight import check_seconds


def load_questions(benchmark: Any, to_plan: bool = False) -> pa.Table:
    """The items of a benchmark of multiple-choice questions (ITEM). Raises ConfigError for another one.

    `to_plan`: their number and clips are all that is wanted, so archives of audio beside them are left packed.
    """
    if to_plan and isinstance(benchmark, Published):
        benchmark = dataclasses.replace(benchmark, archives=())
    items = benchmark.load()
    if "choices" not in items.column_names:
        raise ConfigError(
            f"benchmark {type(benchmark).__name__} holds counterfactual items, not questions: "
            "audit a judge on it with pipelines.judge_audit, or choose another benchmark"
        )
    return items


def gather(
    items: pa.Table,
    recorded: Mapping[str, tuple[Recorded, RecordedResponses]],
    name: str,
    model: Any,
    store: Store,
    cluster: Cluster,
    journal: Journal,
) -> pa.Table:
    """Every response with its item (`join_items`): the recorded ones, and those that `model` gives under `name`.

    The store keeps what was asked and said, so that `pipelines.rescore` finds both without the benchmark's files.
    """
    clips = probe_audio(items, cluster, journal)
    responses = [found.table for _, found in recorded.values()]
    for source, found in recorded.values():
        keep_recorded(store, source, join_items(clips, found.table))
    if not isinstance(model, Recorded):
        once = {
            "trial": pa.array([0] * clips.num_rows, pa.int64()),
            "model": pa.array([name] * clips.num_rows, pa.string()),
        }
        asked = with_columns(clips, once)
        responses.append(ask(asked, name, model, store, cluster, journal))
    return join_items(clips, pa.concat_tables(responses))


def ask(rows: pa.Table, name: str, model: Any, store: Store, cluster: Cluster, journal: Journal) -> pa.Table:
    """`generate`, with the questions kept before and the failures after it.

    So a question without a response and without a failure is one that a run did not come to.
    """
    check_seconds(model, rows)
    keys = response_keys(model, rows)
    keep_asked(store, model, rows, keys)
    said = generate(rows, name, model, store, cluster, journal)
    tried = pa.array([key is not None for key in keys])
    failures = pc.if_else(tried, said["response_error"], pa.scalar(None, pa.string()))
    keep_asked(store, model, with_columns(rows, {"response_error": failures}), keys)
    return said


def response_keys(model: Spec, rows: pa.Table) -> list[str | None]:
    """Under which key the response to each row is stored; None for a row that cannot be asked."""
    usable = np.flatnonzero(pc.is_null(pc.coalesce(rows["item_error"], rows["audio_error"])).to_numpy())
    keys: list[str | None] = [None] * rows.num_rows
    batch = to_batch(rows.take(usable), model.reads)
    for row, key in zip(usable, row_keys(model, batch), strict=True):
        keys[row] = key
    return keys


def join_items(items: pa.Table, responses: pa.Table) -> pa.Table:
    """Every response with its item, plus `gold_answer` (text of the right choice) and `row_error`.

    Item ids are unique. Raises KeyError for a response whose item is unknown.
    """
    places = {name: row for row, name in enumerate(items["item_id"].to_pylist())}
    rows = np.array([places[name] for name in responses["item_id"].to_pylist()], dtype=np.int64)
    joined = with_columns(items.take(rows), {name: responses[name] for name in responses.column_names})
    return to_judge(joined)


def to_judge(rows: pa.Table) -> pa.Table:
    """Items with their responses, plus `gold_answer` (text of the right choice) and `row_error`."""
    error = pc.coalesce(rows["item_error"], rows["response_error"])
    return with_columns(rows, {"gold_answer": gold_answers(rows), "row_error": error})


def gold_answers(rows: pa.Table) -> pa.Array:
    """The text of each row's right choice; null where there is none."""
    pairs = zip(rows["choices"].to_pylist(), rows["gold_index"].to_pylist(), strict=True)
    return pa.array([None if gold is None else choices[gold] for choices, gold in pairs], pa.string())
