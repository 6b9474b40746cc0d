"""Joining what models said to the items they were asked."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.frames import with_columns
from pipelines.config import ConfigError


def load_questions(benchmark: Any) -> pa.Table:
    """The items of a benchmark of multiple-choice questions (ITEM). Raises ConfigError for another one."""
    items = benchmark.load()
    if "choices" not in items.column_names:
        raise ConfigError(
            f"benchmark {type(benchmark).__name__} holds counterfactual items, not questions: "
            "audit a judge on it with pipelines.judge_audit, or choose another benchmark"
        )
    return items


def join_items(items: pa.Table, responses: pa.Table) -> pa.Table:
    """Every response with its item, plus `gold_answer` (text of the right choice) and `row_error`.

    Item ids are unique. Raises KeyError for a response whose item is unknown.
    """
    places = {name: row for row, name in enumerate(items["item_id"].to_pylist())}
    rows = np.array([places[name] for name in responses["item_id"].to_pylist()], dtype=np.int64)
    joined = with_columns(items.take(rows), {name: responses[name] for name in responses.column_names})
    error = pc.coalesce(joined["item_error"], joined["response_error"])
    return with_columns(joined, {"gold_answer": gold_answers(joined), "row_error": error})


def gold_answers(rows: pa.Table) -> pa.Array:
    """The text of each row's right choice; null where there is none."""
    pairs = zip(rows["choices"].to_pylist(), rows["gold_index"].to_pylist(), strict=True)
    return pa.array([None if gold is None else choices[gold] for choices, gold in pairs], pa.string())
