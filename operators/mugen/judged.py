"""What an LLM judge decided about responses, in the store: asking again costs money, and a night asks nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from operators.answers import Extraction
from operators.fingerprint import fingerprint, row_keys
from operators.judges.option_judge import OptionJudge
from operators.mugen.options import Asked, verdict_lost
from operators.store import Shelf

READINGS = "mugen_option"  # the metric under which readings lie in the store
NOT_ONE = -1.0  # the stored reading of a response that does not select exactly one option


def judge_of(reader: Any) -> str | None:
    """The fingerprint of the judge that a reader of options is; None for rules."""
    return fingerprint(reader) if isinstance(reader, OptionJudge) else None


def find(shelf: Shelf, asked: Sequence[Asked]) -> list[Extraction | None]:
    """The stored reading of each response; None where there is none."""
    keys = _keys(asked)
    known = {entry["key"]: _stored(entry) for entry in shelf.find(keys).to_pylist()}
    return [known.get(key) for key in keys]


def keep(shelf: Shelf, asked: Sequence[Asked], readings: Sequence[Extraction | None]) -> None:
    """Store what the judge decided; a reply that failed or could not be parsed is asked again by the next run."""
    good = [
        {
            "key": key,
            "value": NOT_ONE if found.index is None else float(found.index),
            "details": json.dumps([found.stage, found.reason]),
        }
        for key, found in zip(_keys(asked), readings, strict=False)
        if found is not None and not verdict_lost(found.reason)
    ]
    shelf.append(pa.Table.from_pylist(good, schema=shelf.schema))


def _keys(asked: Sequence[Asked]) -> list[str]:
    columns = [np.array(column, dtype=object) for column in zip(*asked, strict=True)]
    return row_keys(OptionJudge, dict(zip(OptionJudge.reads, columns, strict=True))) if asked else []


def _stored(entry: Mapping[str, Any]) -> Extraction:
    stage, reason = json.loads(entry["details"])
    return Extraction(None if entry["value"] == NOT_ONE else int(entry["value"]), stage, reason)
