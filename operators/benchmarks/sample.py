"""The built-in benchmark: 31 questions over sound, speech and music, their clips, and three response sets.

The clips were rendered by `render_sample.py`, and the tagger and the recogniser of the offline backbones hear
each for what it is (a test asserts it), so a model that misses it cannot blame the audio.

The yardsticks are responses of three kinds, one to every question, written as examples before any of them was
scored. ARIA-Rubrics, Section 3.4, describes the kinds; its Section 4 puts the lower two into real chains:

- `careful`: names what is in the clip, each step follows from the one before, and the answer is right.
- `scaffolding`: the four slots, filled with invented entities, generalities and leaps; sometimes right.
- `decoration`: text, with or without tags, that has no bearing on the answer; often right all the same.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.schema import ITEM
from operators.tables import TableError

FOLDER = Path(__file__).parents[1] / "data" / "sample"
YARDSTICKS = ("careful", "scaffolding", "decoration")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Sample:
    """The questions that ship with the project, or some of them.

    name: the benchmark's name in results.
    limit: keep the first so many items (of those that `ids` names, where it is given).
    ids: keep the items with these ids, in the benchmark's order.
    """

    name: str = "sample"
    limit: int | None = Field(None, ge=1)
    ids: tuple[str, ...] | None = None

    def load(self) -> pa.Table:
        """One row per question in the ITEM schema. Raises TableError when `ids` is empty or names an unknown
        item."""
        records = read_records()
        known = [record["id"] for record in records]
        if self.ids is not None and not self.ids:
            raise TableError("benchmark.ids=[] keeps no item; leave it out for all of them")
        if unknown := sorted(set(self.ids or ()) - set(known)):
            raise TableError(f"benchmark.ids: no sample item is called {unknown}; there are {known}")
        kept = [record for record in records if self.ids is None or record["id"] in self.ids]
        return pa.Table.from_pylist([self._item(record) for record in kept[: self.limit]], schema=ITEM)

    def yardsticks(self) -> dict[str, Path]:
        """Response sets to score beside a model: name -> JSONL file, one `id` and `response` per question."""
        return {name: FOLDER / "responses" / f"{name}.jsonl" for name in YARDSTICKS}

    def _item(self, record: dict[str, Any]) -> dict[str, Any]:
        return {
            "item_id": record["id"],
            "benchmark": self.name,
            "question": record["question"],
            "choices": record["choices"],
            "gold_index": record["choices"].index(record["answer"]),
            "audio_uris": [str(FOLDER / record["audio"])],
            "category": record["category"],
            "groups": None,
            "item_error": None,
        }


def read_records() -> list[dict[str, Any]]:
    """The rows of items.jsonl: the parts of an item, what its clip is heard as, its source and licence."""
    lines = (FOLDER / "items.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
