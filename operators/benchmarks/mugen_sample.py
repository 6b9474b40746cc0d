"""The built-in MUGEN items: questions whose options are the project's own clips.

Built by `python -m pipelines.build_mugen tasks=sample audio=reference items_per_task=2
output=operators/data/mugen_sample overwrite=true` from `labels.csv` in that folder, which says what was rendered
into each clip. The folder's DATASHEET.md counts what came out.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.benchmarks.mugen import Mugen

ITEMS = Path(__file__).parents[1] / "data" / "mugen_sample" / "items.jsonl"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class MugenSample(Mugen):
    """`Mugen` of the items that ship with the project; their clips lie in the folder of the `sample` benchmark."""

    path: str | None = str(ITEMS)
    name: str | None = "mugen_sample"
    allow_outside: bool = True
