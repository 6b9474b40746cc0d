"""Benchmarks of multiple-choice questions in the layout that their authors publish: MMAR and MMAU (ARIA-Rubrics, section 4).

Both are a JSON list of questions with the choices and the answer as texts, a path to the audio relative to the list, and
names under which results are broken down; the audio comes as a tar. What differs is config (`conf/benchmark/mmar.yaml`,
`conf/benchmark/mmau_mini.yaml`), so a benchmark that follows them needs a file there and no code.

- MMAR (arXiv:2505.13032): MMAR-meta.json, later .jsonl: id, audio_path, question, choices, answer, modality, category, sub-category, ...
- MMAU test-mini (arXiv:2410.19168): mmau-test-mini.json: id, audio_id, question, choices, answer, task, category,
  sub-category, difficulty, ... Revised in May 2025 under the same names: say which version a result is about.

A prediction file is the list of questions with the text of the chosen option, empty where the response has no answer, under
every key of PREDICTIONS: the official scripts, and their versions, differ in which one they read. They pass over a question
without such a key, and end at one without choices or an answer: what is no item has no key, as it is in no accuracy of ours,
and what cannot be read at all is left out. They compare words: a choice without one, such as "-", is never right there.
`model=recorded` reads the file back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.benchmarks.archives import opened, start_of_clips
from operators.benchmarks.choices import as_written
from operators.benchmarks.identity import notes_of
from operators.benchmarks.manifest import COLUMNS, Manifest, Part
from operators.columns import RowError, columns_of, find_columns, text_of
from operators.frames import with_columns
from operators.locators import is_uri, shown
from operators.tables import Row, TableError, read_rows

# MMAU's description names the first, MMAR's the second; copies of MMAU's script read the third.
SAMPLE = 5  # clips that are looked for, to find where the paths of all start
PREDICTIONS = ("model_prediction", "answer_prediction", "model_output")


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Published:
    """The benchmark at `path`: a folder, a tar or an address in an object store (operators.benchmarks.archives).

    name: the benchmark's name in results. questions, archives: what its files are called. groups: columns by which results
    are broken down beside the category. columns: {part: column}, where a part goes by another name.
    audio_root: folder or URI where relative audio paths start; None: where the questions are, or the unpacked archive.
    require_audio: False accepts a copy without audio; M1 is null then.
    limit: keep the first so many items.
    """

    name: str
    questions: tuple[str, ...]
    archives: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    columns: dict[Part, str | None] = Field(default_factory=dict)
    path: str | None = None
    audio_root: str | None = None
    require_audio: bool = True
    limit: int | None = Field(None, ge=1)

    def load(self) -> pa.Table:
        """One row per question in the ITEM schema, as operators.benchmarks.manifest reads it; raises TableError.

        Columns for groups, the category and the audio that a copy lacks under the names of the config are done without, or
        found under another name; the metadata `notes` says so.
        """
        questions, audio = self._opened()
        rows = read_rows(questions, keep_broken=True, trailing_commas=True)
        columns, groups, notes = self._present(shown(questions), rows)
        parts = find_columns(shown(questions), rows, COLUMNS, columns, "benchmark.columns")
        heard = [row.get(parts.get("audio", "")) for row in rows[:SAMPLE]]
        items = Manifest(
            path=questions,
            name=self.name,
            audio_root=self.audio_root
            or start_of_clips(audio, questions, [path for path in heard if isinstance(path, str)]),
            require_audio=self.require_audio,
            limit=self.limit,
            groups=groups,
            trailing_commas=True,
            columns=columns,
        ).load()
        items = with_columns(
            items, {"audio_uris": pa.array(_with_endings(items), items.schema.field("audio_uris").type)}
        )
        return items.replace_schema_metadata({"notes": json.dumps([*notes, *notes_of(items)])})

    def yardsticks(self) -> dict[str, str]:
        """Recorded responses that come with the benchmark: none."""
        return {}

    def predictions(self, results: pa.Table) -> dict[str, list[dict[str, Any]]]:
        """{name of a file without its ending: its content} in the official format, one per model and trial.

        results: rows with item_id, item_error, model, trial, choices, gold_index, answer_index (null: no answer). Every
        question that is an item has a prediction in every file: the official scripts take no notice of one without.
        """
        file = self._opened()[0]
        rows = [row for row in read_rows(file, keep_broken=True, trailing_commas=True) if not row.problem]
        columns, _, _ = self._present(shown(file), rows)
        parts = find_columns(shown(file), rows, COLUMNS, columns, "benchmark.columns")
        if self.limit is not None:
            asked = set(results["item_id"].to_pylist())
            rows = [row for row in rows if not asked.isdisjoint(_names(row, parts["id"]))]
        items = set(results.filter(pc.is_null(results["item_error"]))["item_id"].to_pylist())
        chosen = _chosen(results)
        several = len({trial for _, trial in chosen}) > 1
        return {
            f"{model}-trial{trial}" if several else model: _filled(rows, parts, items, answers)
            for (model, trial), answers in chosen.items()
        }

    def _present(
        self, file: str, rows: Sequence[Row]
    ) -> tuple[dict[Part, str | None], tuple[str, ...], list[str]]:
        """Of the config's columns and groups those that the file has, and a sentence for each that it lacks.

        Without its category a benchmark is still whole, and a part goes by other names in some copies."""
        have = columns_of(rows)
        lacks = {
            part: name
            for part, name in self.columns.items()
            if part in ("audio", "category") and name is not None and name not in have
        }
        columns = {part: name for part, name in self.columns.items() if part not in lacks}
        absent = [name for name in self.groups if name not in have]
        notes = [f"{file}: no column {name!r} for the {part}" for part, name in lacks.items()]
        notes += [f"{file}: no column {name!r}, so no results by it (benchmark.groups)" for name in absent]
        return columns, tuple(name for name in self.groups if name in have), notes

    def _opened(self) -> tuple[str, str]:
        if not self.path:
            where = f"benchmark.path=<folder with {self.questions[0]}>, or {self.name.upper()}_PATH in the environment"
            raise TableError(f"say where {self.name} is: {where}")
        return opened(os.path.expanduser(self.path), self.questions, self.archives)


class _Choice(NamedTuple):
    """What a response chose: the index and text of the item's choice, and whether it is the right one."""

    index: int
    text: str
    right: bool


def _chosen(results: pa.Table) -> dict[tuple[str, int], dict[str, _Choice]]:
    """{(model, trial): {item: what was chosen}}, without the items that have no answer."""
    found: dict[tuple[str, int], dict[str, _Choice]] = {}
    names = ("model", "trial", "item_id", "choices", "gold_index", "answer_index")
    for model, trial, item, choices, gold, index in zip(
        *(results[name].to_pylist() for name in names), strict=True
    ):
        answers = found.setdefault((model, trial), {})
        if index is not None:
            answers[item] = _Choice(index, choices[index], index == gold)
    return found


def _filled(
    rows: Sequence[Row], parts: Mapping[str, str], items: Collection[str], answers: Mapping[str, _Choice]
) -> list[dict[str, Any]]:
    """The questions with their answers, found by ids as operators.benchmarks.manifest reads them."""
    filled = []
    for row in rows:
        name = _id(row.get(parts["id"]))
        bare = {column: cell for column, cell in row.items() if column not in PREDICTIONS}
        said = _said(row, parts, answers[name]) if name in answers else ""
        filled.append({**bare, **dict.fromkeys(PREDICTIONS, said)} if name in items else bare)
    return filled


def _said(row: Row, parts: Mapping[str, str], choice: _Choice) -> str:
    """A choice as the row writes it, the right one as its answer does, with or without a label: the official rule compares
    words."""
    if choice.right and isinstance(answer := row.get(parts.get("answer", "")), str) and answer.strip():
        return answer
    if "choices" in parts:  # else each choice has a column of its own
        own = as_written(row[parts["choices"]])[choice.index]
        return own if isinstance(own, str) else choice.text
    return choice.text


def _names(row: Row, column: str) -> tuple[str, ...]:
    """The ids that the item of a row may have: its own, or with its place where ids clash or lack."""
    name = _id(row.get(column))
    return name, f"{name} [{row.place}]", f"[{row.place}]"


def _with_endings(items: pa.Table) -> list[list[str]]:
    """The locators of clips, with ".wav" where a local one leads to a file only so: an id of MMAU is written without."""
    return [
        [
            f"{uri}.wav"
            if not is_uri(uri) and not os.path.exists(uri) and os.path.isfile(f"{uri}.wav")
            else uri
            for uri in uris
        ]
        for uris in items["audio_uris"].to_pylist()
    ]


def _id(cell: Any) -> str:
    try:
        return text_of(cell, "id").strip()
    except RowError:  # a list or the like: such a row is no item, and has no answer
        return ""
