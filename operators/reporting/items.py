"""The rows of a run as an item browser needs them: columns to filter and sort by, and the rest in pieces on demand.

A page of 18,000 rows must show its first rows at once and answer a filter at once. So what the list needs stands in
columns of numbers, texts are kept once per item, and the long texts of a row (response, slots, details of the
metrics) come in blocks of ROWS_PER_BLOCK, which the page decompresses when a reader opens one of their rows. Where even
these are too many for one file, `Responses` leaves the last ones out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregate import MEASURES
from operators.frames import TEXT_ERROR
from operators.reporting.clips import Clips
from operators.schema import METRICS
from operators.text import encodable

ROWS_PER_BLOCK = 200
_UNREAD = 300  # characters of details that cannot be read
LABELS = {
    "m1_acoustic_grounding": "M1 acoustic grounding",
    "m2_inter_step_coherence": "M2 inter-step coherence",
    "m3_chain_coverage": "M3 chain coverage",
    "m4_step_causality": "M4 step causality",
    "m5_reasoning_progress": "M5 reasoning progress",
    "m6_audio_lexical_density": "M6 audio lexical density",
    "aria": "ARIA",
}
_SLOTS = ("perception", "analysis", "reasoning", "answer")
_ANSWER = ("answer_index", "answer_stage", "answer_reason", "answer_index_paper", "answer_stage_paper", "answer_reason_paper")  # fmt: skip
_DETAIL = (
    "response",
    *_SLOTS,
    "entities",
    *_ANSWER,
    "finish_reason",
    "usage",
    "audio_seconds_used",
    "response_error",
    "row_error",
    TEXT_ERROR,
)


def in_order(rows: pa.Table) -> pa.Table:
    """Rows of one item next to each other, items in their first order, models by name: neighbours share a block."""
    keys = pc.binary_join_element_wise(rows["benchmark"], rows["item_id"], "\0")
    first = {key: place for place, key in reversed(list(enumerate(keys.to_pylist())))}
    order = sorted(
        range(rows.num_rows),
        key=lambda row: (first[keys[row].as_py()], rows["model"][row].as_py(), rows["trial"][row].as_py()),
    )
    return rows.take(order)


def index(rows: pa.Table, clips: Clips, records: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Items, names of models, and the columns of the list; `rows` as `in_order` left them, of runs with these run.json."""
    items, item_of = _items(rows, clips)
    models = list(dict.fromkeys(rows["model"].to_pylist()))
    place = {model: number for number, model in enumerate(models)}
    measures = {name: rows[name].to_pylist() for name in MEASURES}
    outcomes = ["all", "right", "wrong", "none", "failed", "differ"]
    failed = pc.coalesce(rows["item_error"], rows["response_error"], rows["row_error"], rows["audio_error"])
    return {
        **{"kind": "aria", "block_prefix": "rows", "noun": "responses", "sets": [""], "outcomes": outcomes},
        **{"labels": LABELS, "headline": "aria", "bars": list(METRICS), "scored": scored(records)},
        "items": items,
        "models": models,
        "clips": clips.entries,
        "rows_per_block": ROWS_PER_BLOCK,
        "columns": {
            "item": item_of,
            "model": [place[model] for model in rows["model"].to_pylist()],
            "set": [0] * rows.num_rows,
            "trial": rows["trial"].to_pylist(),
            "correct": rows["correct"].to_pylist(),
            "answer": rows["answer_index"].to_pylist(),
            "answer_paper": rows["answer_index_paper"].to_pylist(),
            "reason": _reasons(failed.to_pylist(), rows["answer_reason"].to_pylist()),
            **measures,
        },
    }


def scored(records: Sequence[Mapping[str, Any]]) -> dict[str, str | None]:
    """How M4 took the information of a step and M5 a pair of slots; None where the runs do not say, or not alike."""
    found = {}
    for stage, field in (("m4", "form"), ("m5", "granularity")):
        said = {((record.get("specs") or {}).get(stage) or {}).get(field) for record in records}
        found[field] = said.pop() if len(said) == 1 else None
    return found


def _reasons(failed: Sequence[str | None], unanswered: Sequence[str | None]) -> list[str | None]:
    """In a word why a row has no result or no answer."""
    found = [one or other for one, other in zip(failed, unanswered, strict=True)]
    return [text and encodable(text.partition(":")[0].strip()) for text in found]


def _items(rows: pa.Table, clips: Clips) -> tuple[list[dict[str, Any]], list[int]]:
    wanted = (
        "item_id",
        "benchmark",
        "question",
        "choices",
        "gold_index",
        "category",
        "groups",
        "item_error",
        "audio_error",
    )
    table = rows.select([*wanted, "audio_uris", "audio_hashes", "audio_seconds"])
    keys = list(zip(rows["benchmark"].to_pylist(), rows["item_id"].to_pylist(), strict=True))
    place: dict[tuple, int] = {}
    firsts = [row for row, key in enumerate(keys) if place.setdefault(key, len(place)) == len(place) - 1
              and (row == 0 or keys[row - 1] != key)]  # fmt: skip
    items = [
        {**{name: item[name] for name in wanted}, "clips": clips.of_item(item)}
        for item in table.take(firsts).to_pylist()
    ]
    return items, [place[key] for key in keys]


def blocks(rows: pa.Table) -> dict[str, list[dict[str, Any]]]:
    """{"rows-0": what the page shows of the first ROWS_PER_BLOCK rows, ...}."""
    columns = [*_DETAIL, *(f"{name}{part}" for name in METRICS for part in ("_reason", "_details"))]
    found = {}
    for start in range(0, rows.num_rows, ROWS_PER_BLOCK):
        part = (
            rows.select([name for name in columns if name in rows.column_names])
            .slice(start, ROWS_PER_BLOCK)
            .to_pylist()
        )
        found[f"rows-{start // ROWS_PER_BLOCK}"] = [_detail(row) for row in part]
    return found


class Responses:
    """Lets responses into a page until they are `total` characters. A row past it keeps all else, and how long its
    response is: `response_left_out`. The rest of a page's rows may be in the hundreds of thousands."""

    def __init__(self, total: int) -> None:
        self.n_left_out = 0
        self._left = total

    def fitted(self, blocks: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
        """The blocks, with the responses (and their slots) that fit, in order."""
        return {name: [self._row(row) for row in rows] for name, rows in blocks.items()}

    def told(self) -> str:
        """One sentence on what is left out; "" for nothing."""
        if not self.n_left_out:
            return ""
        return f"{self.n_left_out:,} responses are too many for the page and stand in the run's tables alone"

    def _row(self, row: dict[str, Any]) -> dict[str, Any]:
        long = len(row.get("response") or "")
        if long <= self._left:
            self._left -= long
            return row
        self._left = 0
        self.n_left_out += 1
        kept = {name: value for name, value in row.items() if name not in ("response", *_SLOTS)}
        return kept | {"response_left_out": long}


def _detail(row: dict[str, Any]) -> dict[str, Any]:
    kept = {name: row[name] for name in _DETAIL if row.get(name) not in (None, "", [])}
    metrics = {}
    for name in METRICS:
        (details, unread), reason = _parsed(row[f"{name}_details"]), row[f"{name}_reason"]
        metrics[name] = {
            **({"reason": reason} if reason else {}),
            **({"details": details} if details else {}),
            **({"unread": unread} if unread else {}),
        }
    return kept | {"metrics": {name: found for name, found in metrics.items() if found}}


def _parsed(text: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """Details as the metric wrote them, and their text where that is no JSON object of finite numbers: what can be read of
    it stays, with null for a number that is not finite."""
    if not text:
        return None, None
    odd: list[str] = []

    def finite(number: str) -> float | None:
        if math.isfinite(value := float(number)):
            return value
        return odd.append(number)

    try:
        value = json.loads(text, parse_float=finite, parse_constant=odd.append)
    except (ValueError, RecursionError):
        return None, text[:_UNREAD]
    readable = isinstance(value, dict)
    return (value if readable else None), (text[:_UNREAD] if odd or not readable else None)


def told_of_details(blocks: Mapping[str, Sequence[dict[str, Any]]]) -> str:
    """One sentence on how many details of metrics could not be read; "" for none."""
    n = sum(
        "unread" in metric for rows in blocks.values() for row in rows for metric in row["metrics"].values()
    )
    return f"{n:,} details of metrics are no JSON of finite numbers and stand as they are" if n else ""
