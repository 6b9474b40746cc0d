"""What the bench scores: the sample benchmark's questions with the response sets that it ships.

Three systems answer every question, as in a real run: clips come back three times, entities often, slot texts
seldom.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

import numpy as np

from operators.audio import ProbeAudio
from operators.base import Batch
from operators.benchmarks.sample import YARDSTICKS, Sample
from operators.cot import parse_slots

GROUP = len(YARDSTICKS)  # responses to one question
T = TypeVar("T")


def sample_rows(limit: int | None = None) -> Batch:
    """Every column that a metric reads, one row per response, the responses to one question side by side.

    At most `limit` rows, of questions from all over the benchmark.
    """
    benchmark = Sample()
    items = {item["item_id"]: item for item in benchmark.load().to_pylist()}
    said: dict[str, list[str]] = {name: [] for name in items}
    for path in benchmark.yardsticks().values():
        for line in path.read_text(encoding="utf-8").splitlines():
            response = json.loads(line)
            said[response["id"]].append(response["response"])
    rows = [_row(items[name], response) for name, responses in said.items() for response in responses]
    batch = in_columns([row for group in in_any_order(rows, GROUP) for row in group][:limit])
    probed = ProbeAudio().build()({"audio_uris": batch["audio_uris"]})
    return {**batch, "audio_hashes": probed["audio_hashes"]}


def in_any_order(rows: list[T], group: int) -> list[list[T]]:
    """`rows` as groups of neighbours, shuffled (always alike), so that the first few stand for all."""
    groups = [rows[start : start + group] for start in range(0, len(rows), group)]
    return [groups[index] for index in np.random.default_rng(0).permutation(len(groups))]


def by_row(batch: Batch) -> list[dict[str, Any]]:
    """The batch as one dictionary per row."""
    return [dict(zip(batch, cells, strict=True)) for cells in zip(*batch.values(), strict=True)]


def _row(item: dict[str, Any], response: str) -> dict[str, Any]:
    slots = parse_slots(response)
    return {
        **{name: getattr(slots, name) for name in ("perception", "analysis", "reasoning", "answer")},
        "entities": list(slots.entities),
        "question": item["question"],
        "choices": item["choices"],
        "gold_answer": item["choices"][item["gold_index"]],
        "audio_uris": item["audio_uris"],
    }


def in_columns(rows: list[dict[str, Any]]) -> Batch:
    """The rows as one batch."""
    columns: Batch = {name: np.empty(len(rows), dtype=object) for name in rows[0]}
    for index, row in enumerate(rows):
        for name, cell in row.items():
            columns[name][index] = cell
    return columns
