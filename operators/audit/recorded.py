"""Verdicts that a judge gave earlier, read from a table: `model=recorded` of an audit.

    {"id": "s1", "probe": "pointwise", "cue": "none", "branch": 0, "response": "{\\"pred\\": \\"R2\\"}", "swapped": true}

Beside the columns `id`, `response`, `model`, `trial` (the attempt), `finish_reason` and `usage`:

- `probe`: pointwise, pairwise, perception, oracle or staging.
- `cue`: none, soft, hard or transition; absent: none. `control`: none, text_only or silence; absent: none.
- `branch`: 0 or 1, which of the item's two voices was presented; for pairwise empty.
- `order`: 1 for the exchanged presentation of a counterbalanced run; absent: 0.
- `swapped`: whether R1 was response 1 (E1, E2 ... the emotions in reverse alphabetical order); `contexts_swapped`: whether CA
  was branch 1. Absent or empty: the order that this project draws for the run's seed, so that replies to its own prompts
  need neither.

The `verdicts.parquet` of a run has these columns: its tables can be made again in seconds, without a judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from operators.audit.controls import BLIND, BLUFFS
from operators.audit.outcomes import judged
from operators.audit.presentation import BY_BRANCH, CUES, PROBES, Design, Order, drawn_order, planned_call
from operators.columns import RowError, find_columns, is_null, missing_columns, number_of, short, text_of
from operators.lalms.recorded import COLUMNS as RESPONSE_COLUMNS
from operators.lalms.recorded import Recorded
from operators.tables import Row, TableError, read_rows, shown, stem
from operators.text import encodable

COLUMNS: dict[str, tuple[str, ...]] = {
    **RESPONSE_COLUMNS,
    "trial": (*RESPONSE_COLUMNS["trial"], "attempt"),
    **dict.fromkeys(
        ("probe", "cue", "control", "branch", "order", "swapped", "contexts_swapped", "usage"), ()
    ),
}
EXAMPLE = """\
Expected columns: id, probe, branch, response; optional: cue, control, order, swapped, contexts_swapped, model, trial.
{"id": "s1", "probe": "pointwise", "cue": "hard", "branch": 0, "response": "{\\"pred\\": \\"R1\\"}", "swapped": false}
{"id": "s1", "probe": "pairwise", "cue": "hard", "branch": null, "response": "{\\"pred\\": {\\"CA\\": \\"R1\\", \\"CB\\": \\"R2\\"}}"}"""


class RecordedVerdicts(NamedTuple):
    """rows: VERDICT rows, one for every call that the file's models were asked; `notes`: what the user should hear."""

    rows: list[dict[str, Any]]
    notes: list[str]


class _Call(NamedTuple):
    model: str
    control: str
    cue: str
    probe: str
    item_id: str
    branch: int | None
    order: int


class _Attempt(NamedTuple):
    trial: int
    said: dict[str, Any]
    swapped: bool | None
    contexts_swapped: bool | None


def read_verdicts(
    recorded: Recorded, items: pa.Table, probes: Sequence[str], cues: Sequence[str], seed: int
) -> RecordedVerdicts:
    """The recorded replies to `probes` under `cues` about `items` (AUDIT_ITEM).

    A model is taken to have been asked every probe, cue, control and order that the file has for it, about every usable
    item; a call without a reply has a row that says so. Raises TableError when the file cannot be used.
    """
    if recorded.path is None:
        raise TableError(f"name the file with the replies: model.path=verdicts.parquet\n{EXAMPLE}")
    rows, file = read_rows(recorded.path, keep_broken=True), shown(recorded.path)
    given = {part: name for part, name in recorded.columns.items() if name}
    parts = find_columns(file, rows, COLUMNS, given, "model.columns")
    if missing := [part for part in ("id", "probe", "response") if part not in parts]:
        raise missing_columns(file, rows, COLUMNS, missing, "model.columns", EXAMPLE)
    said, problems = _attempts(rows, parts, recorded.name or stem(recorded.path), recorded.name)
    wanted = {call: found for call, found in said.items() if call.probe in probes and call.cue in cues}
    usable = [item for item in items.to_pylist() if item["item_error"] is None]
    known = {item["item_id"] for item in usable}
    if not {call.item_id for call in wanted} & known:
        told = _few(problems) or _few(sorted({call.item_id for call in said}))
        raise TableError(
            f"{file}: none of its rows is about an item and probe of this run ({told})\n{EXAMPLE}"
        )
    notes = [f"{file}: {len(problems)} rows cannot be used: {_few(problems)}"] if problems else []
    every = set(items["item_id"].to_pylist())
    if unknown := sorted({call.item_id for call in said} - every):
        notes.append(f"{file}: {len(unknown)} ids are not in the benchmark: {_few(unknown)}")
    absent = [probe for probe in probes if probe not in {call.probe for call in wanted}]
    if absent:
        notes.append(f"{file}: it has no replies to {', '.join(absent)}")
    return RecordedVerdicts(list(_expected(wanted, usable, seed)), notes)


def _expected(
    said: Mapping[_Call, list[_Attempt]], items: Sequence[Mapping[str, Any]], seed: int
) -> Iterable[dict[str, Any]]:
    """A row for every call of the designs that the file shows."""
    asked = dict.fromkeys((call.model, call.control, call.cue, call.probe, call.order) for call in said)
    for model, control, cue, probe, order in asked:
        design = Design((probe,), (cue,), seed, control=control)
        for item in items:
            for branch in (0, 1) if probe in BY_BRANCH else (None,):
                key = _Call(model, control, cue, probe, item["item_id"], branch, order)
                found = _alike(sorted(said.get(key, ()), key=lambda attempt: attempt.trial))
                presented = _presented(found, drawn_order(seed, item["item_id"], probe, cue, order))
                call = planned_call(item, design, probe, cue, branch, order, presented)
                yield judged(call, model, [attempt.said for attempt in found] or [_NONE])


_NONE = {"response": None, "response_error": "no_recorded_response"}
_OTHER = {"response": None, "response_error": "other_order: swapped differs from the first attempt's"}


def _alike(attempts: Sequence[_Attempt]) -> list[_Attempt]:
    """Attempts without the replies to another presentation than the first one's: their labels mean something else."""
    return [one if one[2:] == attempts[0][2:] else one._replace(said=_OTHER) for one in attempts]


def _presented(attempts: Sequence[_Attempt], drawn: Order) -> Order:
    """The order that the file names, part by part; otherwise the drawn one."""
    one = attempts[0] if attempts else None
    if one is None:
        return drawn
    return Order(
        drawn.swapped if one.swapped is None else one.swapped,
        drawn.contexts_swapped if one.contexts_swapped is None else one.contexts_swapped,
    )


def _attempts(
    rows: Iterable[Row], parts: Mapping[str, str], name: str, given: str | None
) -> tuple[dict[_Call, list[_Attempt]], list[str]]:
    """What the file says about each call, and what is wrong with the rows that belong to none."""
    said: dict[_Call, dict[int, _Attempt]] = {}
    problems = []
    for row in rows:
        try:
            if row.problem:
                raise RowError(row.problem)
            if row.get(parts.get("control", "")) in BLUFFS:
                continue  # no judge said this; the run makes its own
            call, attempt = _read({part: row.get(column) for part, column in parts.items()}, name, given)
        except RowError as error:
            problems.append(encodable(f"{row.place}: {error}"))
            continue
        earlier = said.setdefault(call, {}).setdefault(attempt.trial, attempt)
        if earlier[2:] != attempt[2:] or earlier.said["response"] != attempt.said["response"]:
            told = f"duplicate_response: again and different on {row.place}"
            blank = {"response": None, "response_error": told}
            said[call][attempt.trial] = earlier._replace(said=blank)
    return {call: list(found.values()) for call, found in said.items()}, problems


def _read(cells: Mapping[str, Any], name: str, given: str | None) -> tuple[_Call, _Attempt]:
    item_id = text_of(cells["id"], "id").strip()
    if not item_id:
        raise RowError("missing_id: the row has no id")
    probe = _one_of(cells, "probe", PROBES, None)
    call = _Call(
        given or text_of(cells.get("model"), "model").strip() or name,
        _one_of(cells, "control", ("none", *BLIND), "none"),
        _one_of(cells, "cue", CUES, "none"),
        probe,
        item_id,
        _bit(cells, "branch", required=True) if probe in BY_BRANCH else None,
        _bit(cells, "order") or 0,
    )
    trial = cells.get("trial")
    swapped, contexts_swapped = (_flag(cells.get(part), part) for part in ("swapped", "contexts_swapped"))
    return call, _Attempt(
        0 if _blank(trial) else number_of(trial, "trial"), _said(cells), swapped, contexts_swapped
    )


def _said(cells: Mapping[str, Any]) -> dict[str, Any]:
    response = cells["response"]
    error = None
    if not isinstance(response, str):
        null = is_null(response)
        error = (
            "no_recorded_response: the response is null" if null else f"bad_response_type: {short(response)}"
        )
    said = {part: text_of(cells.get(part), part) or None for part in ("finish_reason", "usage")}
    return said | {"response": None if error else encodable(response), "response_error": error}


def _one_of(cells: Mapping[str, Any], part: str, allowed: Sequence[str], default: str | None) -> str:
    text = text_of(cells.get(part), part).strip().casefold() or default
    if text not in allowed:
        raise RowError(f"bad_{part}: one of {', '.join(allowed)} is expected, not {short(cells.get(part))}")
    return text


def _bit(cells: Mapping[str, Any], part: str, required: bool = False) -> int | None:
    cell = cells.get(part)
    if _blank(cell) and not required:
        return None
    number = -1 if _blank(cell) else number_of(cell, part)
    if number not in (0, 1):
        raise RowError(f"bad_{part}: 0 or 1 is expected, not {short(cell)}")
    return number


def _flag(cell: Any, part: str) -> bool | None:
    if _blank(cell):
        return None
    known = {"true": True, "1": True, "false": False, "0": False}
    text = str(cell).strip().casefold()
    if text not in known:
        raise RowError(f"bad_{part}: true or false is expected, not {short(cell)}")
    return known[text]


def _blank(cell: Any) -> bool:
    return is_null(cell) or (isinstance(cell, str) and not cell.strip())


def _few(texts: Sequence[str]) -> str:
    return "; ".join(texts[:3]) + ("; ..." if len(texts) > 3 else "")
