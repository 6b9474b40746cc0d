"""The MUGEN layout: one question a line whose options are clips; what `pipelines.build_mugen` writes.

    {"id": "q1", "question": "Select the audio with the angriest voice.", "dimension": "Affective & Paralinguistic State",
     "task": "angriest", "candidates": ["a.wav", "b.wav", "c.wav"], "answer_index": 1, "reference": [], "ranking": false}

- `candidates`: at least two paths or URIs, all different; `answer_index` counts them from 0 (gold).
- `reference`: the clips that come first and are no options; empty or absent where the task has none.
- `dimension`: one of the seven of MUGEN section 2.2 (case, "and" and "&" alike; the table's short forms too) or a name
  of your own, which gets a column of its own.
- `ranking`: whether removing an option would change what the instruction means ("the third longest").
- `id`, `question`, `task`, `licence`, `source`; further columns are ignored.

Any format of operators.tables will do, and other column names can be given in `columns`. Where `path` is a folder, it
is the data set as its authors publish it, whose clips lie in Parquet files: operators.benchmarks.mugen_published.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.benchmarks.choices import spelled_list
from operators.benchmarks.identity import settled_table
from operators.benchmarks.locations import folder_of, locate, resolved
from operators.benchmarks.mugen_published import read_published
from operators.columns import RowError, find_columns, is_null, missing_columns, number_of, short, text_of
from operators.mugen.options import labels
from operators.mugen.presentation import DIMENSIONS, MUGEN_ITEM, same_clip_twice
from operators.tables import Row, TableError, read_rows, shown, stem
from operators.text import encodable
from operators.weights import cache_folder

COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "question_id", "sample_id", "uid"),
    "question": ("instruction", "query", "prompt"),
    "candidates": ("candidate_audios", "audio_candidates", "choices", "options", "audios"),
    "answer_index": ("gold_index", "answer_idx", "correct_index", "label"),
    "reference": ("references", "reference_audio", "reference_audios"),
    "dimension": ("category",),
    "task": ("task_name", "subtask"),
    "ranking": ("is_ranking",),
    "licence": ("license",),
    "source": ("dataset", "corpus"),
}
REQUIRED = ("id", "question", "candidates", "answer_index")
EXAMPLE = """\
Expected columns: id, question, candidates, answer_index; optional: reference, dimension, task, ranking, licence, source.
{"id": "q1", "question": "Select the audio with a dog.", "candidates": ["a.wav", "b.wav"], "answer_index": 0, \
"dimension": "Acoustic Scene & Event Analysis", "task": "dog bark", "reference": [], "ranking": false}"""

Part = Literal[
    "id", "question", "candidates", "answer_index", "reference", "dimension", "task", "ranking", "licence", "source"
]  # fmt: skip


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Mugen:
    """The questions at `path`, as items whose choices are called "Audio 1", "Audio 2" ...

    name: the benchmark's name in results; None: the file's name without its ending, "mugen" for the published data set.
    split: of the published data set; "test_2" to "test_4" have so many candidates. unpacked: the folder where its clips
    are put; None: in the user's cache folder.
    audio_root: folder or URI where relative paths start; None: the folder of the file.
    allow_outside: accept clips outside that folder, and from the web.
    limit: keep the first so many items. columns: {part: column} where the file calls a part by a name of its own.
    ranking_tasks: the tasks that the scaling study leaves out; None: those of which the data say that they rank (the column
    `ranking`; in the published data set the task's name, or an instruction such as "the third longest").
    """

    path: str | None = None
    name: str | None = None
    audio_root: str | None = None
    allow_outside: bool = False
    limit: int | None = Field(None, ge=1)
    columns: dict[Part, str | None] = Field(default_factory=dict)
    split: str = Field("test", pattern=r"\w+")
    unpacked: str | None = None
    ranking_tasks: tuple[str, ...] | None = None

    def load(self) -> pa.Table:
        """One row per question in the schema MUGEN_ITEM; a bad row keeps its place and says why in `item_error`.

        Item ids are unique (operators.benchmarks.identity). Raises TableError when the file cannot be used.
        """
        if self.path is None:
            raise TableError(f"name the file with the questions: benchmark.path=mugen.jsonl\n{EXAMPLE}")
        file = shown(self.path)
        if Path(self.path).expanduser().is_dir():
            clips = Path(self.unpacked) if self.unpacked else cache_folder() / "mugen"
            name = self.name or "mugen"
            found = read_published(self.path, self.split, name, clips, self.ranking_tasks)
            items = list(islice(found, self.limit))
            self._check_ranking(items)
            return settled_table(file, items, self.limit, MUGEN_ITEM)
        rows = read_rows(self.path, keep_broken=True)
        parts = find_columns(file, rows, COLUMNS, self.columns, "benchmark.columns")
        if missing := [part for part in REQUIRED if part not in parts]:
            raise missing_columns(file, rows, COLUMNS, missing, "benchmark.columns", EXAMPLE)
        root = resolved(self.audio_root or folder_of(self.path))
        items = [self._item(row, parts, root) for row in rows]
        self._check_ranking(items)
        return settled_table(file, items, self.limit, MUGEN_ITEM)

    def yardsticks(self) -> dict[str, str]:
        """Recorded responses that come with the benchmark: none."""
        return {}

    def _check_ranking(self, items: Iterable[Mapping[str, Any]]) -> None:
        tasks = {item["task"] for item in items if item["task"]}
        unknown = sorted(set(self.ranking_tasks or ()) - tasks)
        if unknown and self.limit is None:
            have = ", ".join(sorted(tasks)) or "none: no row names its task"
            raise TableError(
                f"benchmark.ranking_tasks: {shown(self.path)} has no task {unknown[0]!r}; there is {have}"
            )

    def _item(self, row: Row, parts: Mapping[str, str], root: str) -> dict[str, Any]:
        item: dict[str, Any] = dict.fromkeys(MUGEN_ITEM.names)
        item |= {
            "item_id": f"[{row.place}]",
            "place": row.place,
            "benchmark": self.name or stem(str(self.path)),
            "question": "",
        }
        item |= {"choices": [], "audio_uris": [], "n_reference": 0, "ranking": False}
        cells = {part: None if is_null(row.get(name)) else row.get(name) for part, name in parts.items()}
        try:
            if row.problem:
                raise RowError(row.problem)
            self._fill(item, cells, root)
        except RowError as error:
            item["gold_index"] = None
            item["item_error"] = encodable(str(error))
        return item

    def _fill(self, item: dict[str, Any], cells: Mapping[str, Any], root: str) -> None:
        """Put the parts into `item`, as many as can be read. Raises RowError for the first that cannot."""
        name = text_of(cells["id"], "id").strip()
        if not name:
            raise RowError("missing_id: the row has no id")
        item["item_id"] = name
        item["question"] = text_of(cells["question"], "question")
        if not item["question"].strip():
            raise RowError("empty_question: the row has no question")
        item["category"] = dimension_of(text_of(cells.get("dimension"), "dimension")) or None
        for part in ("task", "licence", "source"):
            item[part] = _line(cells.get(part), part)
        flag = _flag(cells.get("ranking"))
        item["ranking"] = flag if self.ranking_tasks is None else item["task"] in self.ranking_tasks
        references = [
            locate(path, root, self.allow_outside) for path in _paths(cells.get("reference"), "reference")
        ]
        given = _paths(cells["candidates"], "candidates")
        candidates = [locate(path, root, self.allow_outside) for path in given]
        item["audio_uris"], item["n_reference"] = [*references, *candidates], len(references)
        item["choices"] = labels(len(candidates))
        if len(candidates) < 2:
            raise RowError(f"too_few_candidates: {len(candidates)}, at least 2 are needed")
        gold = number_of(cells["answer_index"], "answer_index")
        if gold >= len(candidates):
            raise RowError(f"gold_out_of_range: answer_index {gold} (from 0) of {len(candidates)} candidates")
        if problem := same_clip_twice(item, given):
            raise RowError(problem)
        item["gold_index"] = gold


def dimension_of(text: str) -> str:
    """A dimension under the name that the paper gives it; any other name as it is."""
    key = _key(text)
    known = {_key(form): name for name, short_form in DIMENSIONS.items() for form in (name, short_form)}
    paralinguistic = {_key("Affective & Paralinguistic"): "Affective & Paralinguistic State"}
    return (known | paralinguistic).get(key, text.strip())


def _key(text: str) -> str:
    words = text.casefold().replace("&", " and ").replace("_", " ").replace("-", " ").split()
    return " ".join(word for word in words if word != "and")


def _paths(cell: Any, part: str) -> list[str]:
    blank = cell is None or (isinstance(cell, str) and not cell.strip())
    paths = [] if blank else spelled_list(cell)
    if not isinstance(paths, (list, tuple)) or not all(isinstance(p, str) and p.strip() for p in paths):
        raise RowError(f"bad_{part}: a list of audio paths is expected, not {short(cell)}")
    return [path.strip() for path in paths]


def _flag(cell: Any) -> bool:
    """A cell that says yes or no. Raises RowError for anything else."""
    known = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False, "": False}
    text = str(cell).strip().casefold() if cell is not None else ""
    if text not in known:
        raise RowError(f"bad_ranking: true or false is expected, not {short(cell)}")
    return known[text]


def _line(cell: Any, part: str) -> str | None:
    """Text, or a list or object as JSON text (one licence or source per clip)."""
    if isinstance(cell, (list, dict)):
        return encodable(json.dumps(cell, ensure_ascii=False))
    return text_of(cell, part) or None
