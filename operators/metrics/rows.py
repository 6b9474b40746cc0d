"""How a metric hands its rows back: value, reason, details - the three columns every metric writes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from operators.base import Batch


class ScoredRow(NamedTuple):
    """One row's result: `value` is NaN exactly when `reason` says why."""

    value: float
    reason: str | None
    details: Mapping[str, Any]


def columns(writes: Sequence[str], rows: Sequence[ScoredRow]) -> Batch:
    """The columns `writes` = (value, reason, details as compact JSON) of `rows`.

    Raises ValueError for a value that contradicts its reason, and for details that JSON cannot hold (NaN,
    inf).
    """
    for row in rows:
        if np.isfinite(row.value) == (row.reason is not None):
            raise ValueError(f"NaN if and only if there is a reason, not {row.value} with {row.reason!r}")
    values = np.asarray([row.value for row in rows], dtype=np.float64)
    reasons = np.array([row.reason for row in rows], dtype=object)
    details = [json.dumps(row.details, separators=(",", ":"), allow_nan=False) for row in rows]
    return dict(zip(writes, (values, reasons, np.array(details, dtype=object)), strict=True))
