"""A user's own questions: a table with one multiple-choice question a row, turned into items.

    {"id": "q1", "question": "Which animal?", "choices": ["dog", "cat"], "answer": "dog", "audio": "q1.wav"}

Columns (COLUMNS lists the other accepted names; columns that play no part are ignored):

- `id`: text or an integer. Rows that repeat one another in every part count once; different rows under one id
  are all refused, because a recorded response could belong to either.
- `choices`: a list; an object {"A": ..., "B": ...}; a text that spells a list, or "dog | cat"; or, in its
  absence, columns `choice_a`, `choice_b` ... (or `option_1` ...), the last of which may be empty. Labels
  "(A)", "B." that stand before every choice, in order, are taken off.
- `answer`: the text of a choice, compared without case and outer space, with or without its label
  ("(B) cat"); or a label alone ("B", "(B)"). A label that is also the text of another choice is refused
  unless it is that text to the letter, the choices have no labels and no answer of the file is one for certain.
  A number is a text too, never an index; but 2 for the choices "1", "2", "3" could be either (index 2 is "3") and
  is refused (`ambiguous_answer`). Digits in quotes are texts where the column holds anything but digits; a CSV
  file puts all in quotes. `answer_index` counts from 0, in place of `answer` or beside it, where it settles what
  `answer` leaves open and must agree with the rest.
- `audio`: a path relative to `audio_root`, an absolute path, a URI, or several of these as a list or
  "a.wav | b.wav" (a path that holds "|" goes into a list); operators.benchmarks.locations: where they may lie.
- `category`, optional.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from dataclasses import replace
from typing import Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.benchmarks.choices import (
    choices_of,
    gold_of,
    is_label,
    is_word,
    marked,
    readings,
    spelled_list,
)
from operators.benchmarks.identity import settled_table
from operators.benchmarks.locations import folder_of, locate, resolved
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
from operators.schema import ITEM
from operators.tables import Row, TableError, read_rows, shown, stem
from operators.text import encodable

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "question_id", "sample_id", "uid", "qid"),
    "question": ("query", "question_text"),
    "choices": ("options", "candidates", "answer_choices"),
    "answer": (
        *("gold", "gold_answer", "label", "correct_answer", "correct_choice", "ground_truth", "answer_gt"),
    ),
    "answer_index": ("gold_index", "answer_idx", "correct_index", "label_index"),
    "audio": (
        *("audio_path", "audio_paths", "audio_file", "audio_files", "audios", "audio_uri", "audio_uris"),
        "audio_id",
    ),
    "category": (),
}
EXAMPLE = """\
Expected columns: id, question, choices, answer, audio; optional: category. For example:
{"id": "q1", "question": "Which animal?", "choices": ["dog", "cat"], "answer": "dog", "audio": "q1.wav"}
{"id": "q2", "question": "Which one?", "choices": "car | bell", "answer": "B", "audio": "a.wav | b.wav"}"""

_CHOICE_COLUMN = re.compile(r"(?:choice|option)(?:_([a-z])|_?([0-9]{1,2}))")

Part = Literal["id", "question", "choices", "answer", "answer_index", "audio", "category"]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Manifest:
    """The questions in the file at `path` (formats: operators.tables), as items.

    name: the benchmark's name in results; None: the file's name without its ending.
    audio_root: folder or URI where relative audio paths start; None: the folder of the file.
    allow_outside: accept audio outside `audio_root`, and from the web.
    require_audio: False accepts rows, and whole files, without audio; their M1 is null, reason no_audio.
    limit: keep the first so many items.
    groups: further columns by which results are broken down, as they are by category; not "category" or "overall".
    trailing_commas: accept JSON with commas before closing brackets.
    columns: {part: column} where the file calls a part by a name of its own.
    """

    path: str | None = None
    name: str | None = None
    audio_root: str | None = None
    allow_outside: bool = False
    require_audio: bool = True
    limit: int | None = Field(None, ge=1)
    groups: tuple[str, ...] = ()
    trailing_commas: bool = False
    columns: dict[Part, str | None] = Field(default_factory=dict)

    def load(self) -> pa.Table:
        """One row per question in the ITEM schema; a bad row keeps its place and says why in `item_error`.

        Item ids are unique: where rows clash, or lack an id, their place becomes part of it. The schema's
        metadata `notes` is a JSON list of sentences for the user. Raises TableError when the file as a whole
        cannot be used.
        """
        if self.path is None:
            raise TableError(f"name the file with your questions: benchmark.path=questions.jsonl\n{EXAMPLE}")
        rows = read_rows(self.path, keep_broken=True, trailing_commas=self.trailing_commas)
        file = shown(self.path)
        parts = find_columns(file, rows, COLUMNS, self.columns, "benchmark.columns")
        if taken := [name for name in self.groups if name in ("overall", "category")]:
            raise TableError(
                f"benchmark.groups names {taken[0]!r}, by which results are told anyway: leave it out, or give the column of "
                f"{file} another name"
            )
        if absent := [name for name in self.groups if name not in columns_of(rows)]:
            have = ", ".join(columns_of(rows))
            raise TableError(
                f"{file} has no column {absent[0]!r} (benchmark.groups, [] for none); its columns are {have}"
            )
        choice_columns = [] if "choices" in parts else _choice_columns(file, columns_of(rows))
        missing = self._missing(parts, choice_columns)
        if missing:
            example = EXAMPLE
            if "audio" in missing:
                example = f"No audio? benchmark.require_audio=false scores everything but M1.\n{EXAMPLE}"
            raise missing_columns(file, rows, COLUMNS, missing, "benchmark.columns", example)
        root = resolved(self.audio_root or folder_of(self.path))
        text_answers = any(is_word(row.get(parts.get("answer", ""))) for row in rows)
        reader = _Reader(self, self.name or stem(self.path), root, parts, choice_columns, text_answers)
        reader = replace(reader, label_answers=any(map(reader.answers_with_a_label, rows)))
        return settled_table(file, [reader.item(row) for row in rows], self.limit, ITEM)

    def yardsticks(self) -> dict[str, str]:
        """Recorded responses that come with the benchmark: none."""
        return {}

    def _missing(self, parts: Mapping[str, str], choice_columns: Sequence[str]) -> list[str]:
        present = {"answer" if part == "answer_index" else part for part in parts}
        present |= {"choices"} if choice_columns else set()
        needed = ["id", "question", "choices", "answer", *(["audio"] if self.require_audio else [])]
        return [part for part in needed if part not in present]


@plain_dataclass(frozen=True)
class _Reader:
    """Turns rows into items, given which columns play which part."""

    config: Manifest
    benchmark: str
    root: str
    parts: Mapping[str, str]
    choice_columns: Sequence[str]
    text_answers: bool
    label_answers: bool = False

    def item(self, row: Row) -> dict[str, Any]:
        """The item of one row, with its `place`. A bad row keeps what could be read of it."""
        item: dict[str, Any] = dict.fromkeys(("gold_index", "category", "groups", "item_error"))
        item |= {"item_id": f"[{row.place}]", "benchmark": self.benchmark, "place": row.place}
        item |= {"question": "", "choices": [], "audio_uris": []}
        try:
            if row.problem:
                raise RowError(row.problem)
            item["item_id"] = self._filled(row, "id", "missing_id: the row has no id").strip()
            item["question"] = self._filled(row, "question", "empty_question: the row has no question")
            item["category"] = text_of(self._cell(row, "category"), "category") or None
            item["groups"] = self._groups(row)
            item["choices"] = choices_of(self._choices(row))
            gold = self._gold(row, item["choices"])
            item["audio_uris"] = self._audio(row)
            item["gold_index"] = gold
        except RowError as error:
            item["item_error"] = encodable(str(error))
        return item

    def answers_with_a_label(self, row: Row) -> bool:
        """Whether the answer of a row shows that the column holds labels."""
        return is_label(self._cell(row, "answer"), self._choices(row))

    def _cell(self, row: Row, part: str) -> Any:
        cell = row.get(self.parts[part]) if part in self.parts else None
        return None if is_null(cell) else cell

    def _filled(self, row: Row, part: str, problem: str) -> str:
        text = text_of(self._cell(row, part), part)
        if not text.strip():
            raise RowError(problem)
        return text

    def _groups(self, row: Row) -> str | None:
        named = {name: text_of(row.get(name), name) for name in self.config.groups}
        return (
            json.dumps({name: text for name, text in named.items() if text}) if any(named.values()) else None
        )

    def _choices(self, row: Row) -> Any:
        if "choices" in self.parts:
            return self._cell(row, "choices")
        cells = [row.get(column) for column in self.choice_columns]
        while cells and (is_null(cells[-1]) or cells[-1] == ""):
            cells.pop()
        return cells

    def _gold(self, row: Row, choices: Sequence[str]) -> int:
        index, answer = self._cell(row, "answer_index"), self._cell(row, "answer")
        column = (self.text_answers, self.label_answers or marked(self._choices(row), choices))
        if index in (None, ""):
            return gold_of(answer, choices, *column)
        number = number_of(index, "answer_index")
        if number >= len(choices):
            raise RowError(f"answer_not_in_choices: answer_index {number} (from 0) of {len(choices)}")
        if answer not in (None, "") and number not in readings(answer, choices, *column):
            raise RowError(f"ambiguous_answer: {short(answer)} is not the choice of answer_index {number}")
        return number

    def _audio(self, row: Row) -> list[str]:
        cell = self._cell(row, "audio")
        blank = cell is None or (isinstance(cell, str) and not cell.strip())
        paths = [] if blank else spelled_list(cell)
        if not isinstance(paths, (list, tuple)) or not all(isinstance(path, str) for path in paths):
            raise RowError(f"bad_audio: a path or a list of paths is expected, not {short(cell)}")
        if self.config.require_audio and not paths:
            raise RowError("no_audio: the row names no audio")
        if not all(path.strip() for path in paths):
            raise RowError(f"no_audio: a path is empty in {short(cell)}")
        return [locate(path.strip(), self.root, self.config.allow_outside) for path in paths]


def _choice_columns(file: str, columns: Sequence[str]) -> list[str]:
    """The columns that hold one choice each, in order. Raises TableError when one between them is missing."""
    matches = {name: _CHOICE_COLUMN.fullmatch(plain(name)) for name in columns}
    order = {name: ord(m[1]) - ord("a") + 1 if m[1] else int(m[2]) for name, m in matches.items() if m}
    names = sorted(order, key=order.__getitem__)
    first = order[names[0]] if names else 1
    if first > 1 or [order[name] for name in names] != list(range(first, first + len(names))):
        raise TableError(f"{file}: choice columns run from a (or 1) without a gap, not {', '.join(names)}")
    return names
