"""Benchmarks of multiple-choice questions in the layout that their authors publish: MMAR and MMAU (ARIA-Rubrics, section 4).

Both are a JSON list of questions with the choices and the answer as texts, a path to the audio relative to the list, and
names under which results are broken down; the audio comes as a tar. What differs is config (`conf/benchmark/mmar.yaml`,
`conf/benchmark/mmau_mini.yaml`), so a benchmark that follows them needs a file there and no code.

- MMAR (arXiv:2505.13032): MMAR-meta.json, later .jsonl: id, audio_path, question, choices, answer, modality, category, sub-category, ...
- MMAU test-mini (arXiv:2410.19168): mmau-test-mini.json: id, audio_id, question, choices, answer, task, category,
  sub-category, difficulty, ... Revised in May 2025 under the same names: say which version a result is about.

A prediction file is the list of questions with the text of the chosen option, empty where the response has no answer, under
every key of PREDICTIONS: the official scripts, and their versions, differ in which one they read. `model=recorded` reads it
back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.benchmarks.archives import opened
from operators.benchmarks.choices import as_written
from operators.benchmarks.manifest import COLUMNS, Manifest, Part
from operators.columns import RowError, find_columns, text_of
from operators.locators import shown
from operators.tables import Row, TableError, read_rows

# MMAU's description names the first, MMAR's the second; copies of MMAU's script read the third.
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
        """One row per question in the ITEM schema, as operators.benchmarks.manifest reads it; raises TableError."""
        questions, audio = self._opened()
        return Manifest(
            path=questions,
            name=self.name,
            audio_root=self.audio_root or audio,
            require_audio=self.require_audio,
            limit=self.limit,
            groups=self.groups,
            trailing_commas=True,
            columns=self.columns,
        ).load()

    def yardsticks(self) -> dict[str, str]:
        """Recorded responses that come with the benchmark: none."""
        return {}

    def predictions(self, results: pa.Table) -> dict[str, list[dict[str, Any]]]:
        """{name of a file without its ending: its content} in the official format, one per model and trial.

        results: rows with item_id, model, trial, choices, answer_index (null: no answer). Every question is in every file:
        the official scripts take no notice of questions without a prediction.
        """
        file = self._opened()[0]
        rows = read_rows(file, keep_broken=True, trailing_commas=True)
        parts = find_columns(shown(file), rows, COLUMNS, self.columns, "benchmark.columns")
        chosen: dict[tuple[str, int], dict[str, tuple[int, str]]] = {}
        names = ("model", "trial", "item_id", "choices", "answer_index")
        for model, trial, item, choices, index in zip(
            *(results[name].to_pylist() for name in names), strict=True
        ):
            answers = chosen.setdefault((model, trial), {})
            if index is not None:
                answers[item] = index, choices[index]
        several = len({trial for _, trial in chosen}) > 1
        return {
            f"{model}-trial{trial}" if several else model: _filled(rows[: self.limit], parts, answers)
            for (model, trial), answers in chosen.items()
        }

    def _opened(self) -> tuple[str, str]:
        if self.path is None:
            where = f"benchmark.path=<folder with {self.questions[0]}>, or {self.name.upper()}_PATH in the environment"
            raise TableError(f"say where {self.name} is: {where}")
        return opened(self.path, self.questions, self.archives)


def _filled(
    rows: Sequence[Row], parts: Mapping[str, str], answers: Mapping[str, tuple[int, str]]
) -> list[dict[str, Any]]:
    """The questions with their answers, found by ids as operators.benchmarks.manifest reads them.

    A choice is written as the benchmark has it, with its label if it has one: the official rule compares words.
    """
    filled = []
    for row in rows:
        index, said = answers.get(_id(row.get(parts["id"])), (0, ""))
        if said and "choices" in parts:  # else each choice has a column of its own
            own = as_written(row[parts["choices"]])[index]
            said = own if isinstance(own, str) else said
        filled.append({**row, **dict.fromkeys(PREDICTIONS, said)})
    return filled


def _id(cell: Any) -> str:
    try:
        return text_of(cell, "id").strip()
    except RowError:  # a list or the like: such a row is no item, and has no answer
        return ""
