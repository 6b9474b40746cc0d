"""From a raw response to its chain of thought and its answer under both rules, one row at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.answers import Extraction, extract_answer
from operators.base import Batch
from operators.cot import SLOTS, Slots, parse_slots, storable
from operators.schema import CHAIN


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Extract:
    """Reads `response` and `choices`, writes every column of `operators.schema.CHAIN`.

    A null response leaves all slots empty, with reason no_response; an empty one has reason
    empty_response. Without tags the slots are empty and the answer may still be found. Slot texts are
    made safe for UTF-8 storage: NUL is removed and a lone surrogate becomes U+FFFD; other control
    characters stay. Never raises for any text.
    """

    reads: ClassVar[tuple[str, ...]] = ("response", "choices")
    writes: ClassVar[tuple[str, ...]] = tuple(CHAIN.names)
    version: ClassVar[int] = 12

    def build(self) -> Callable[[Batch], Batch]:
        """Nothing to load."""
        return extract


def extract(batch: Batch) -> Batch:
    """The CHAIN columns of a batch, as object arrays (indices are int or None)."""
    rows = [_row(*cells) for cells in zip(batch["response"], batch["choices"], strict=True)]
    return {name: _column([row[name] for row in rows]) for name in CHAIN.names}


def _row(response: Any, choices: Any) -> dict[str, Any]:
    text = storable(response) if isinstance(response, str) else None
    offered = [] if choices is None else list(choices)
    slots = parse_slots(text) if text else Slots()
    row: dict[str, Any] = {slot: getattr(slots, slot) for slot in SLOTS} | {"entities": list(slots.entities)}
    return (
        row
        | _answer(extract_answer(text, offered), "")
        | _answer(extract_answer(text, offered, "paper"), "_paper")
    )


def _answer(found: Extraction, suffix: str) -> dict[str, Any]:
    return {
        f"answer_index{suffix}": found.index,
        f"answer_stage{suffix}": found.stage,
        f"answer_reason{suffix}": found.reason,
    }


def _column(values: list[Any]) -> np.ndarray:
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column
