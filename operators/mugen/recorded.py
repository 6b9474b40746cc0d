"""Trials that a model answered earlier, read from a table: the responses of `operators.lalms.recorded`, and for each
what was presented.

    {"id": "q1", "trial": 3, "response": "Audio 2", "prompt": "mugen_cot", "audio_order": [4, 0, 2, 1, 3]}

Beside the columns `id`, `response`, `model`, `trial`, `finish_reason` and `usage`:

- `prompt`: which prompt of the strategies this answers. Without the column: the only one that the strategies use.
- `audio_order`: the original index (from 0, references not counted) of the candidate at each position; null: the
  original order. Without the column: the original order where no strategy permutes; where all do, the order that this
  project gives (seed, item, trial), so that responses to its own presentations need no further column.
- `permuted`: true or false, where `audio_order` is given for responses in the original order too.
- `n_candidates`: of a scaling study, else null or absent.

The `trials.parquet` of a run has these columns: a run can be read again with other strategies or another reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import pyarrow as pa

from operators.columns import RowError, find_columns, is_null, missing_columns, number_of, short, text_of
from operators.lalms.recorded import COLUMNS as RESPONSE_COLUMNS
from operators.lalms.recorded import Recorded
from operators.mugen.presentation import GenerationSet, orders, scalable
from operators.mugen.said import Key, Said
from operators.tables import Row, TableError, shown, stem, stream_rows
from operators.text import encodable

EXAMPLE = """\
Expected columns: id, response; optional: trial, audio_order (which candidate, counted from 0 as in the benchmark, stood at each
position; without it the original order), prompt, model, n_candidates. For example:
{"id": "q1", "trial": 0, "response": "Audio 2", "audio_order": [4, 0, 2, 1, 3]}
{"id": "q1", "trial": 1, "response": "The third clip.", "audio_order": [1, 4, 0, 3, 2]}"""
COLUMNS = {
    **RESPONSE_COLUMNS,
    "prompt": ("prompt_name",),
    "audio_order": ("permutation",),
    "permuted": (),
    "n_candidates": (),
    "usage": (),
}


class RecordedTrials(NamedTuple):
    """rows: one per model, generation set, item and expected trial, to be iterated over once, for they are read from disk
    as they are asked for; `notes`: what the user should hear."""

    rows: Iterable[dict[str, Any]]
    notes: list[str]


def read_trials(
    recorded: Recorded,
    items: pa.Table,
    sets: Mapping[GenerationSet, int],
    counts: Sequence[int | None],
    seed: int,
) -> RecordedTrials:
    """The recorded responses of `items` for the generation `sets` (each with its number of trials) and `counts`, the
    numbers of candidates (None: all).

    Every expected trial has a row; one without a response says why. A file with fewer trials than expected everywhere
    lowers the expectation, with a note. Raises TableError when the file cannot be used.
    """
    said, problems = _entries(recorded, sets)
    file, ids = shown(recorded.path), said.item_ids()
    known = set(items["item_id"].to_pylist())
    if not known & ids:
        if not ids:
            raise TableError(f"{file}: no row can be used: {_few(problems) or 'there is none'}\n{EXAMPLE}")
        told = f"there: {_few(sorted(known))}; in the file: {_few(sorted(ids))}"
        raise TableError(f"{file}: none of its ids is in the benchmark; {told}")
    notes = [f"{file}: {len(problems)} rows cannot be used: {_few(problems)}"] if problems else []
    if unknown := sorted(ids - known):
        notes.append(f"{file}: {len(unknown)} ids are not in the benchmark: {_few(unknown)}")
    notes += _lacking(file, said, counts)
    usable = [item for item in items.to_pylist() if item["item_error"] is None]
    parts, given = [], said.n_trials()
    for model in said.models():
        for drawn, wanted in sets.items():
            n_trials = min(wanted, given.get((model, drawn.prompt, drawn.permute), 0))
            if not n_trials:
                told = f"{model} has no responses for {drawn.name}; ask only for strategies it has"
                raise TableError(f"{file}: {told}")
            if n_trials < wanted:
                notes.append(f"{file}: {model} has {n_trials} trials of {wanted} for {drawn.name}")
            parts.append(_rows(model, drawn, n_trials, usable, said, counts, seed))
    return RecordedTrials(chain.from_iterable(parts), notes)


def _lacking(file: str, said: Said, counts: Sequence[int | None]) -> list[str]:
    """A note where the file has no trial with some numbers of candidates. Raises TableError where it has none with any."""
    have = said.n_candidates()
    if not (lacking := [n for n in counts if n not in have]):
        return []
    named = [
        "all candidates" if n is None else f"n_candidates={n}" for n in sorted(have, key=lambda n: n or 0)
    ]
    wanted = ", ".join("all candidates" if n is None else str(n) for n in lacking)
    told = f"{file}: no trial is of {wanted} (column n_candidates, empty for all); it has {', '.join(named)}"
    if len(lacking) == len(counts):
        raise TableError(told)
    return [told]


def given_path(recorded: Recorded) -> str:
    """The path of the file with the trials. Raises TableError where none is named."""
    if recorded.path is None:
        raise TableError(f"name the file with the responses: model.path=my_trials.jsonl\n{EXAMPLE}")
    return recorded.path


def _entries(recorded: Recorded, sets: Iterable[GenerationSet]) -> tuple[Said, list[str]]:
    """What the file says under each key, and what is wrong with the rows that have none."""
    rows, file = stream_rows(given_path(recorded)), shown(recorded.path)
    given = {part: name for part, name in recorded.columns.items() if name}
    parts = find_columns(file, rows, COLUMNS, given, "model.columns")
    if missing := [part for part in ("id", "response") if part not in parts]:
        raise missing_columns(file, rows, COLUMNS, missing, "model.columns", EXAMPLE)
    prompt = _only(file, parts, "prompt", {drawn.prompt for drawn in sets})
    permute = _only(file, parts, "audio_order", {drawn.permute for drawn in sets})
    return _Reader(parts, prompt, permute, recorded.name or stem(recorded.path)).entries(rows)


class _Reader(NamedTuple):
    """Which column plays which part, and what holds for a file that lacks a column."""

    parts: Mapping[str, str]
    prompt: str | None
    permute: bool | None
    model: str

    def entries(self, rows: Iterable[Row]) -> tuple[Said, list[str]]:
        said, problems = Said(), []
        for row in rows:
            try:
                if row.problem:
                    raise RowError(row.problem)
                key, entry = self._entry({part: row.get(name) for part, name in self.parts.items()})
            except RowError as error:
                problems.append(encodable(f"{row.place}: {error}"))
            else:
                said.add(key, entry, row.place)
        return said, problems

    def _entry(self, cells: Mapping[str, Any]) -> tuple[Key, dict[str, Any]]:
        name = text_of(cells["id"], "id").strip()
        if not name:
            raise RowError("missing_id: the row has no id")
        order = _order(cells.get("audio_order"))
        trial, n = cells.get("trial"), cells.get("n_candidates")
        key = Key(
            text_of(cells.get("model"), "model").strip() or self.model,
            name,
            self.prompt or text_of(cells.get("prompt"), "prompt").strip(),
            self._permuted(cells.get("permuted"), order),
            None if _blank(n) else number_of(n, "n_candidates"),
            0 if _blank(trial) else number_of(trial, "trial"),
        )
        response, error = _response(cells["response"])
        return key, {
            "response": response,
            "error": error,
            "order": order,
            "finish_reason": text_of(cells.get("finish_reason"), "finish_reason") or None,
            "usage": _usage(cells.get("usage")),
        }

    def _permuted(self, cell: Any, order: list[int] | None) -> bool:
        if self.permute is not None:
            return self.permute
        if _blank(cell):
            return order is not None
        if str(cell).casefold() not in ("true", "false"):
            raise RowError(f"bad_permuted: true or false is expected, not {short(cell)}")
        return str(cell).casefold() == "true"


def _only(file: str, parts: Mapping[str, str], part: str, values: set) -> Any:
    """What holds for all rows of a file without the column `part`; None where the column says it."""
    if part in parts or (part == "audio_order" and "permuted" in parts):
        return None
    if len(values) > 1:
        raise TableError(
            f"{file} has no column {part!r}, and the strategies differ in it: add the column, or ask for strategies "
            f"that agree (all of them original order or all permuted, all with one prompt)"
        )
    return next(iter(values))


def _response(cell: Any) -> tuple[str | None, str | None]:
    """The text of a response, or None and why there is none."""
    if isinstance(cell, str):
        return encodable(cell), None
    if is_null(cell):
        return None, "no_recorded_response: the response is null"
    return None, f"bad_response_type: {short(cell)}"


def _usage(cell: Any) -> str | None:
    """Token counts as JSON text, from an object or the text of one; anything else tells nothing."""
    try:
        found = json.loads(cell) if isinstance(cell, str) else cell
    except (ValueError, RecursionError):
        return None
    return json.dumps(found) if isinstance(found, dict) else None


def _order(cell: Any) -> list[int] | None:
    if _blank(cell):
        return None
    if isinstance(cell, str):
        cell = cell.strip("[]() ").replace(",", " ").split()
    if not isinstance(cell, (list, tuple)):
        raise RowError(f"bad_audio_order: a list of indices is expected, not {short(cell)}")
    return [number_of(index, "audio_order") for index in cell]


def _blank(cell: Any) -> bool:
    return is_null(cell) or cell == ""


_ABOUT = ("benchmark", "item_id", "category", "task", "ranking", "n_reference", "gold_index", "question")


def _rows(
    model: str,
    drawn: GenerationSet,
    n_trials: int,
    items: Iterable[Mapping[str, Any]],
    said: Said,
    counts: Sequence[int | None],
    seed: int,
) -> Iterable[dict[str, Any]]:
    kind = {"prompt": drawn.prompt, "permuted": drawn.permute, "voting": drawn.voting}
    for item in items:
        about = kind | {"model": model} | {name: item[name] for name in _ABOUT}
        for n in counts:
            if n is None or scalable(item, n):
                for trial, order in enumerate(orders(item, n_trials, seed, drawn.permute, n)):
                    key = Key(model, item["item_id"], drawn.prompt, drawn.permute, n, trial)
                    yield about | {"n_candidates": n, "trial": trial} | _reply(said.get(key), order)


def _reply(entry: Mapping[str, Any] | None, order: list[int]) -> dict[str, Any]:
    """What was presented and said; `order` is what was presented where the file does not say."""
    entry = entry or {"response": None, "error": "no_recorded_response"}
    presented = entry.get("order") or order
    error = entry["error"] or _misfit(presented, order)
    return {
        "audio_order": order if error else presented,
        "response": None if error else entry["response"],
        "response_error": error,
        **{name: entry.get(name) for name in ("finish_reason", "usage")},
    }


def _misfit(presented: Sequence[int], derived: Sequence[int]) -> str | None:
    """An order that does not present the candidates it should cannot be mapped back."""
    if sorted(presented) == sorted(derived):
        return None
    return f"bad_audio_order: {list(presented)} does not order the candidates {sorted(derived)}"


def _few(texts: Sequence[str]) -> str:
    return "; ".join(texts[:3]) + ("; ..." if len(texts) > 3 else "")
