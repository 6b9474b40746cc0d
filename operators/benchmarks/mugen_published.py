"""The MUGEN data set as its authors publish it: a repository per task, whose Parquet files hold the clips themselves.

    MUGEN/Keyword_Spotting/data/test-00000-of-00001.parquet       5 candidates: the benchmark, 35 tasks x 50 items
    MUGEN/Keyword_Spotting/data/test_2-00000-of-00001.parquet     the same items with 2 of them (section 4.2)

Layout after https://github.com/danielqwer/MUGEN (data/README.md) and the cards of https://huggingface.co/MUGEN-Benchmark;
one task is fetched by `hf download MUGEN-Benchmark/Keyword_Spotting --repo-type dataset --local-dir MUGEN/Keyword_Spotting`.
A row has `instruction`, `answer` ("(A)" to "(E)"), `audio1` to `audio5`, in ten tasks `reference_audio`, mostly an
`id`, which is unique within a task, and columns about the clips, which would give the answer away and are not read.

*Our reading*, where the cards are silent. A row without `id` is named by its number. In a reduced split a candidate
that was taken away is null, and the answer's letter names a column. Of the three ranking tasks that section 4.2 leaves
out two say so in their names (RANKING_TASKS); the third is not named anywhere, so a task also ranks where an instruction of
it asks for a rank but the first ("the third longest", section 4.2's example). Items are the same whatever the split, so
`n_candidates` reduces them here; the published reduced splits can be read instead.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from operators.columns import RowError, is_null, short, text_of
from operators.mugen.options import labels
from operators.mugen.presentation import MUGEN_ITEM, same_clip_twice
from operators.tables import TableError
from operators.text import encodable

TASKS: dict[str, tuple[str, ...]] = {
    "Semantics & Pragmatics": ("Keyword_Spotting", "Intent_Classification", "Language_Identification"),
    "Speaker & Demographics": (
        *("Speaker_Verification", "Gender_Classification", "Accent_Identification", "Dysarthria_Detection"),
    ),
    "Affective & Paralinguistic State": (
        *("Emotion_Recognition", "Emotion_Intensity_Comparison", "Pitch_Level_Distinction"),
        *("Vocal_Effort_Recognition", "Vocal_Fry_Detection", "Disfluency_Detection"),
        *("Prosodic_Stress_Matching", "Prosody_Semantic_Mismatch"),
    ),
    "Temporal Awareness": (
        *("Duration_Extremes_Extraction", "Duration_Ordinal_Selection", "Duration_Precise_Selection"),
        *("Speaking_Rate_Extremes", "Ordinal_Speaking_Rate"),
    ),
    "Acoustic Scene & Event Analysis": (
        *("Noise_Environment_Classification", "Interruption_Detection", "Speech_Concurrent_Event_Detection"),
        *("Cocktail_Party_Extraction", "Signal_to_Noise_Comparison"),
    ),
    "Music Analysis": (
        *("Music_Tagging", "Genre_Classification", "Key_Detection", "Instrument_Classification"),
        "Vocal_Technique_Detection",
    ),
    "Compositional Acoustic Reasoning": (
        *("Gender_Emotion_Filtering", "Accent_Tempo_Filtering", "Specific_Speaker_State"),
        *("Negative_Constraint_Filtering", "Max_Attribute_Selection"),
    ),
}
RANKING_TASKS = ("Duration_Ordinal_Selection", "Ordinal_Speaking_Rate")
EXPECTED = (
    "a folder per task with data/<split>-*.parquet, whose columns are instruction, answer, audio1, audio2 ... "
    "and, where a task has one, reference_audio"
)
_DIMENSION_OF = {task: dimension for dimension, tasks in TASKS.items() for task in tasks}
_NOUNS = "test|contest|protest|request|guest|rest|arrest|west|forest|chest|interest|harvest|nest"
# "third longest", "2nd most", "second to last"; not "second guest".
_RANK = re.compile(
    r"\b(?:second|third|fourth|fifth|2nd|3rd|4th|5th)[ -]+(?:to[ -]+)?"
    rf"(?:most|least|last|(?!(?:{_NOUNS})\b)\w+est)\b",
    re.IGNORECASE,
)
_CANDIDATE = re.compile(r"audio([1-9]\d?)")
_ANSWER = re.compile(r"\(?([A-Z])\)?\.?")
_ENDING = re.compile(r"\.[a-z0-9]{2,4}")
_ROWS_AT_ONCE = 4  # a row holds six clips, some of a minute


def read_published(
    path: str, split: str, benchmark: str, clips: Path, ranking: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The items of `split` of every task below `path` (or of the one task that `path` is), parts by name, with `place`.

    ranking: the tasks that rank; None: those that say so. The clips are written into the folder `clips`, each sound once,
    under the digest of its bytes. A row that cannot be used keeps its place with an `item_error`. Raises TableError where this
    is not that layout.
    """
    folder = Path(path).expanduser().resolve()
    tasks = [folder] if (folder / "data").is_dir() else sorted(p.parent for p in folder.glob("*/data"))
    files = [
        (task.name, file) for task in tasks for file in sorted((task / "data").glob(f"{split}-*.parquet"))
    ]
    if not files:
        raise TableError(f"{folder} holds no Parquet file of split {split!r}: expected {EXPECTED}")
    numbers: dict[str, int] = {}
    ranked = set(ranking if ranking is not None else (task for task, file in files if _ranks(task, file)))
    for task, file in files:
        about = {"benchmark": benchmark, "task": task, "category": _DIMENSION_OF.get(task)}
        about |= {"source": f"MUGEN-Benchmark/{task}", "ranking": task in ranked}
        for row in _rows(file):
            numbers[task] = number = numbers.get(task, 0) + 1
            place = f"{task}/data/{file.name}, row {number}"
            yield _item(row, f"{task}/{number}", clips) | about | {"place": place}


def _ranks(task: str, file: Path) -> bool:
    """Whether the name of a task or an instruction in its file says that it ranks. No sound is read."""
    if task in RANKING_TASKS:
        return True
    try:
        parquet = pq.ParquetFile(file)
        if "instruction" not in parquet.schema_arrow.names:
            return False  # what is wrong is told where the rows are read
        texts = parquet.read(["instruction"])["instruction"].to_pylist()
    except (pa.ArrowInvalid, OSError):
        return False
    return any(_RANK.search(str(text)) for text in texts)


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of one file, few at a time: they hold sound."""
    try:
        parquet = pq.ParquetFile(
            file, pre_buffer=False
        )  # else all sound of the file would be held until its end
        names = parquet.schema_arrow.names
        wanted = [name for name in ("id", "instruction", "answer", "reference_audio") if name in names]
        wanted += filter(_CANDIDATE.fullmatch, names)
        if missing := [name for name in ("instruction", "answer", "audio1", "audio2") if name not in names]:
            raise TableError(
                f"{file} has no column {missing[0]!r}, it has {', '.join(names)}: expected {EXPECTED}"
            )
        for batch in parquet.iter_batches(_ROWS_AT_ONCE, columns=wanted):
            yield from batch.to_pylist()
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{file} is not a whole Parquet file: {error}") from None


def _item(row: Mapping[str, Any], number: str, clips: Path) -> dict[str, Any]:
    item: dict[str, Any] = dict.fromkeys(MUGEN_ITEM.names)
    item |= {"item_id": number, "question": "", "choices": [], "audio_uris": [], "n_reference": 0}
    try:
        _fill(item, row, clips)
    except RowError as error:
        item |= {"gold_index": None, "item_error": encodable(str(error))}
    return item


def _fill(item: dict[str, Any], row: Mapping[str, Any], clips: Path) -> None:
    """Put the parts into `item`, as many as can be read. Raises RowError for the first that cannot."""
    if name := text_of(row.get("id"), "id").strip():
        item["item_id"] = f"{item['item_id'].partition('/')[0]}/{name}"
    item["question"] = text_of(row["instruction"], "instruction").strip()
    if not item["question"]:
        raise RowError("empty_question: the row has no instruction")
    columns = sorted(filter(_CANDIDATE.fullmatch, row), key=_place)
    given = [name for name in columns if row[name] is not None]
    reference = [row["reference_audio"]] if row.get("reference_audio") is not None else []
    item["audio_uris"] = [_clip(cell, clips) for cell in [*reference, *(row[name] for name in given)]]
    item["n_reference"], item["choices"] = len(reference), labels(len(given))
    if len(given) < 2:
        raise RowError(f"too_few_candidates: {len(given)}, at least 2 are needed")
    gold = _gold(row["answer"], given)
    if problem := same_clip_twice(item, [f"{name}: {row[name].get('path') or 'no path'}" for name in given]):
        raise RowError(problem)
    item["gold_index"] = gold


def _place(column: str) -> int:
    return int(column.removeprefix("audio"))


def _gold(answer: Any, given: Sequence[str]) -> int:
    """The index among the columns `given` of the one that the letter `answer` names. Raises RowError."""
    letter = None if is_null(answer) else _ANSWER.fullmatch(text_of(answer, "answer").strip())
    if letter is None:
        raise RowError(f"bad_answer: a letter such as (A) is expected, not {short(answer)}")
    column = f"audio{ord(letter[1]) - ord('A') + 1}"
    if column not in given:
        raise RowError(f"gold_out_of_range: {letter[0]} is {column}, the row has {', '.join(given)}")
    return list(given).index(column)


def _clip(cell: Any, clips: Path) -> str:
    """The file that holds an embedded clip (a struct of `bytes` and `path`), written unless it is there already."""
    sound = cell.get("bytes") if isinstance(cell, Mapping) else None
    if not sound:
        raise RowError(
            f"missing_file: the row names {short(cell and cell.get('path'))} and does not hold the sound"
        )
    ending = _ENDING.fullmatch(Path(str(cell.get("path") or "")).suffix.lower())
    found = clips / (hashlib.sha256(sound).hexdigest() + (ending[0] if ending else ""))
    if not found.exists():
        clips.mkdir(parents=True, exist_ok=True)
        unfinished = clips / f"{found.name}.{os.getpid()}"
        unfinished.write_bytes(sound)
        unfinished.replace(found)
    return str(found)
