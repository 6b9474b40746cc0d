"""Responses that a model gave earlier, read from a table: how existing outputs are scored.

    {"id": "q1", "response": "[PERCEPTION] A bark ... [ANSWER] (A) dog", "model": "my-model"}

Columns (COLUMNS lists the other accepted names; columns that play no part are ignored):

- `id`: the item's id in the benchmark.
- `response`: the whole text, kept as it is; an empty text is a response too, null is none.
- `model`, optional: one file may hold several systems, each of which gets its own row in the leaderboard.
- `trial`, optional: a whole number from 0, for several responses to one item.
- `finish_reason`, optional.

A response is one text. MMAR's files have a chain of thought apart (APART), which is not read, and the user is told.
Nothing in the text is interpreted here: it is untrusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from typing import Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.columns import (
    RowError,
    columns_of,
    find_columns,
    is_null,
    missing_columns,
    number_of,
    plain,
    short,
    text_of,
)
from operators.schema import RESPONSE
from operators.tables import Row, TableError, digest, read_rows, shown, stem
from operators.text import encodable

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "question_id", "sample_id", "uid", "qid"),
    "response": (
        *("raw_output", "output", "prediction", "model_output", "model_response", "model_prediction"),
        *("answer_prediction", "generated_text", "generation", "completion"),
    ),
    "model": ("model_name", "system"),
    "trial": ("trial_index", "sample_index"),
    "finish_reason": ("stop_reason",),
}
APART = "thinking_prediction"
EXAMPLE = """\
Expected columns: id, response; optional: model, trial, finish_reason. For example:
{"id": "q1", "response": "[PERCEPTION] A bark. [ANALYSIS] ... [REASONING] ... [ANSWER] (A) dog"}
{"id": "q2", "response": "The answer is B", "model": "my-model", "trial": 0}"""

Part = Literal["id", "response", "model", "trial", "finish_reason"]


@plain_dataclass(frozen=True)
class RecordedResponses:
    """What a file of responses holds for a benchmark.

    table: RESPONSE schema, one row per model, item and trial; an item without a response has one, trial 0.
    n_repeats: rows that repeat an earlier one word for word, counted once.
    unknown_ids: ids of the file that the benchmark does not have.
    unusable: "line 7: reason: detail" for each row that can be tied to no item or trial.
    apart: names of columns that hold a part of the responses which is not read.
    """

    file: str
    table: pa.Table
    n_repeats: int
    unknown_ids: tuple[str, ...]
    unusable: tuple[str, ...]
    apart: tuple[str, ...] = ()

    def warnings(self) -> list[str]:
        """What the user should hear about the file, a sentence each."""
        told = [
            (self.n_repeats, "rows repeat an earlier row and count once"),
            (len(self.unknown_ids), f"ids are not in the benchmark: {_few(self.unknown_ids)}"),
            (len(self.unusable), f"rows belong to no item: {_few(self.unusable, '; ')}"),
        ]
        unread = [
            f"{self.file}: the column {name!r} is not read; where the metrics should see the chain of thought, write it and the "
            "answer into one text, in a column 'response' in place of both"
            for name in self.apart
        ]
        return [*unread, *(f"{self.file}: {count} {sentence}" for count, sentence in told if count)]

    def describe(self) -> dict[str, Any]:
        """The counts as plain data, with a few of the ids and rows by name."""
        return {
            "file": self.file,
            "n_rows": self.table.num_rows,
            "n_repeats": self.n_repeats,
            "n_unknown_ids": len(self.unknown_ids),
            "unknown_ids": list(self.unknown_ids[:5]),
            "n_unusable": len(self.unusable),
            "unusable": list(self.unusable[:5]),
        }


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Recorded:
    """The responses in the file at `path` (formats: operators.tables).

    name: the model's name in results; None: the file's `model` column, or else the file's name.
    columns: {part: column} where the file calls a part by a name of its own.
    """

    path: str | None = None
    name: str | None = None
    columns: dict[Part, str | None] = Field(default_factory=dict)

    def identity(self) -> str:
        """SHA-256 of the file's bytes, in hex: the same responses are the same model wherever they lie."""
        return digest(self._given_path())

    def responses(self, items: pa.Table) -> RecordedResponses:
        """What the file holds for `items` (needs the column `item_id`), one row per model, item and trial.

        Raises TableError when the file cannot be used, or shares no id with the benchmark.
        """
        path = self._given_path()
        rows = read_rows(
            path, keep_broken=True, trailing_commas=True
        )  # as benchmarks are read, whose files these follow
        parts = find_columns(shown(path), rows, COLUMNS, self.columns, "model.columns")
        missing = [part for part in ("id", "response") if part not in parts]
        if missing:
            raise missing_columns(shown(path), rows, COLUMNS, missing, "model.columns", EXAMPLE)
        entries, unusable = _entries(rows, parts, self.name or stem(path))
        models = list(dict.fromkeys(entry.model for entry in entries))
        if self.name and len(models) > 1:
            raise TableError(f"{shown(path)} holds {len(models)} models, which model.name would merge")
        item_ids = items.column("item_id").to_pylist()
        benchmark = set(item_ids)
        unknown = list(dict.fromkeys(entry.item_id for entry in entries if entry.item_id not in benchmark))
        if not entries or (benchmark and all(entry.item_id not in benchmark for entry in entries)):
            raise _no_match(shown(path), rows, item_ids, unknown, unusable)
        distinct = _distinct(entries)
        names = {model: self.name or model for model in models}
        table = pa.Table.from_pylist(list(_rows(item_ids, names, distinct)), schema=RESPONSE)
        n_repeats = len(entries) - sum(map(len, distinct.values()))
        apart = tuple(name for name in columns_of(rows) if plain(name) == APART and name != parts["response"])
        return RecordedResponses(shown(path), table, n_repeats, tuple(unknown), tuple(unusable), apart)

    def _given_path(self) -> str:
        if self.path is None:
            raise TableError(f"name the file with the responses: model.path=my_responses.jsonl\n{EXAMPLE}")
        return self.path


@plain_dataclass(frozen=True, slots=True)
class _Entry:
    """One row of the file; `response` is None where it is null or, with an `error`, of a wrong type."""

    model: str
    item_id: str
    trial: int
    response: str | None
    finish_reason: str | None
    error: str | None
    place: str


def _entries(rows: Sequence[Row], parts: Mapping[str, str], model: str) -> tuple[list[_Entry], list[str]]:
    """The rows as entries, of `model` where they name none; and the rows that belong to no item or trial."""
    entries, unusable = [], []
    for row in rows:
        try:
            if row.problem:
                raise RowError(row.problem)
            entries.append(_entry({part: row.get(name) for part, name in parts.items()}, model, row.place))
        except RowError as error:
            unusable.append(encodable(f"{row.place}: {error}"))
    return entries, unusable


def _entry(cells: Mapping[str, Any], model: str, place: str) -> _Entry:
    response, finish_reason, trial = cells["response"], cells.get("finish_reason"), cells.get("trial")
    item_id = text_of(cells["id"], "id").strip()
    if not item_id:
        raise RowError("missing_id: the row has no id")
    is_text = isinstance(response, str)
    wrong_type = not is_text and not is_null(response)
    return _Entry(
        model=text_of(cells.get("model"), "model").strip() or model,
        item_id=item_id,
        trial=0 if is_null(trial) or trial == "" else number_of(trial, "trial"),
        response=encodable(response) if is_text else None,
        finish_reason=text_of(finish_reason, "finish_reason") or None,
        error=f"bad_response_type: a text is expected, not {short(response)}" if wrong_type else None,
        place=place,
    )


Key = tuple[str, str, int]


def _distinct(entries: Sequence[_Entry]) -> dict[Key, list[_Entry]]:
    """{(model, item, trial): the entries under it that differ in what was said}."""
    found: dict[Key, dict[Any, _Entry]] = {}
    for entry in entries:
        key = (entry.model, entry.item_id, entry.trial)
        found.setdefault(key, {}).setdefault((entry.response, entry.error), entry)
    return {key: list(same.values()) for key, same in found.items()}


def _rows(
    item_ids: Sequence[str], names: Mapping[str, str], distinct: Mapping[Key, list[_Entry]]
) -> Iterator[dict[str, Any]]:
    """Rows in the order of models (`names`: {in the file: in results}), items and trials."""
    trials: dict[tuple[str, str], list[int]] = {}
    for model, item_id, trial in sorted(distinct):
        trials.setdefault((model, item_id), []).append(trial)
    for model, name in names.items():
        for item_id in item_ids:
            for trial in trials.get((model, item_id), [0]):
                entries = distinct.get((model, item_id, trial), [])
                yield {"item_id": item_id, "model": name, "trial": trial} | _settled(entries)


def _settled(entries: Sequence[_Entry]) -> dict[str, Any]:
    """The response that the entries under one key agree on, or why there is none.

    A null beside a response is an attempt that failed before one that worked, not a second opinion.
    """
    if not entries:
        return {"response_error": "no_recorded_response"}
    said = [entry for entry in entries if entry.response is not None or entry.error] or entries
    entry = said[0]
    if len(said) > 1:
        places = _few([entry.place for entry in said])
        return {"response_error": f"duplicate_response: different responses on {places}"}
    if entry.response is None:
        error = entry.error or "no_recorded_response: the response is null"
        return {"response_error": f"{encodable(error)} ({entry.place})"}
    return {"response": entry.response, "finish_reason": entry.finish_reason}


def _no_match(
    file: str, rows: Sequence[Row], item_ids: Sequence[str], unknown: Sequence[str], unusable: Sequence[str]
) -> TableError:
    """The error for a file none of whose ids the benchmark has: two of each side, and what to do."""
    if not unknown:
        return TableError(f"{file}: none of its {len(rows)} rows can be used: {_few(unusable, '; ')}")
    benchmark = set(item_ids)
    counts = {name: sum(str(row.get(name)) in benchmark for row in rows) for name in columns_of(rows)}
    best = max(counts, key=counts.__getitem__)
    hint = "give the responses the ids of the questions that they answer"
    if counts[best]:
        hint = f"the column {best!r} holds {counts[best]} of them: set model.columns.id={best}"
    return TableError(
        f"{file}: none of its ids is in the benchmark.\n"
        f"  its ids: {_few(unknown[:2])}\n  the benchmark's: {_few(item_ids[:2])}\n  {hint}"
    )


def _few(texts: Sequence[str], separator: str = ", ") -> str:
    """The first three of `texts`, and whether there are more."""
    return separator.join([text if len(text) <= 200 else f"{text[:197]}..." for text in texts[:3]]) + (
        f"{separator}..." if len(texts) > 3 else ""
    )
