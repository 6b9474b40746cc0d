"""Labelled corpora: a folder of clips with a table that says what each clip is.

The table (formats: operators.tables) has a column with the clip's path and any number of label columns. A
column called like a label in LABELS, or like one of its other names there, is that label; `columns` maps any
other column to any label name. `constant` gives a label that holds for the whole corpus, such as `content`,
which the tasks use to keep speech, sound and music apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.benchmarks.locations import folder_of, locate, resolved
from operators.columns import RowError, find_columns, missing_columns, text_of
from operators.construction.clips import Clip, LeftOut
from operators.construction.spelling import one_spelling
from operators.tables import Row, TableError, read_bytes, read_rows, shown

LABELS: dict[str, tuple[str, ...]] = {
    "accent": (),
    "age": (),
    "content": (),
    "digit": (),
    "emotion": (),
    "event": ("sound", "sound_event"),
    "gender": ("sex",),
    "genre": (),
    "instrument": (),
    "intent": (),
    "language": (),
    "scene": (),
    "speaker": ("speaker_id", "actor"),
    "style": (),
    "transcript": ("sentence", "transcription", "text"),
}
PARTS: dict[str, tuple[str, ...]] = {
    "file": ("path", "audio", "filename", "file_name", "audio_path", "audio_file"),
    "licence": ("license",),
    "source": (),
}
EXAMPLE = """For example:
file,emotion,speaker,transcript
a.wav,angry,1001,The airplane is almost full."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Corpus:
    """A folder of clips and the table at `labels`.

    name: short, without spaces; it becomes part of every clip's source.
    folder: where relative paths of clips start; None: the folder of the table. allow_outside: accept clips
        outside of it, and from the web.
    columns: {label, or file, licence, source: column}, where the table's own names are not in LABELS or PARTS.
    constant: {label: value} for every clip, unless its row says otherwise.
    rename: {label: {value in the table: value used}}, such as {emotion: {ANG: angry}}.
    separator: what stands between several values in one cell (never looked for in transcripts); None: a cell
        is one value. A list cell of a JSONL table is several values in any case.
    suffix: added to every path, for tables that leave out ".wav".
    licence, source: of all clips, unless the table has a column for it. A clip without licence is left out.
    """

    name: str = Field(pattern=r"^[A-Za-z0-9_-]+$")
    labels: str
    folder: str | None = None
    allow_outside: bool = False
    columns: dict[str, str] = Field(default_factory=dict)
    constant: dict[str, str] = Field(default_factory=dict)
    rename: dict[str, dict[str, str]] = Field(default_factory=dict)
    separator: str | None = "|"
    suffix: str = ""
    licence: str | None = None
    source: str | None = None

    def read(self) -> tuple[list[Clip], list[LeftOut]]:
        """Every row as a Clip that has not been decoded yet, or as a LeftOut. Raises TableError, also where two values of
        a label differ in spelling only (operators.construction.spelling)."""
        rows = read_rows(self.labels, keep_broken=True)
        option = f"corpora.{self.name}.columns"
        known = {**PARTS, **LABELS}
        parts = find_columns(shown(self.labels), rows, known, self.columns, option)
        if "file" not in parts:
            raise missing_columns(shown(self.labels), rows, known, ["file"], option, EXAMPLE)
        if self.licence is None and "licence" not in parts:
            raise TableError(
                f"{shown(self.labels)} has no column for the licence of its clips: "
                f"set corpora.{self.name}.licence, or {option}.licence=<column>"
            )
        root = resolved(self.folder or folder_of(self.labels))
        clips, failed = [], []
        for row in rows:
            try:
                clips.append(self._clip(row, parts, root))
            except RowError as error:
                name = str(row.get(parts["file"], ""))
                failed.append(LeftOut(self.name, name, row.place, str(error)))
        return one_spelling(self.name, clips), failed

    def fingerprint(self) -> str:
        """SHA-256 of the table, so that a datasheet can say which labels a benchmark was built from."""
        return hashlib.sha256(read_bytes(self.labels)).hexdigest()

    def _clip(self, row: Row, parts: Mapping[str, str], root: str) -> Clip:
        if row.problem:
            raise RowError(row.problem)
        name = text_of(row.get(parts["file"]), "file").strip()
        if not name:
            raise RowError("missing_file: the row names no clip")
        licence = text_of(row.get(parts.get("licence")), "licence").strip() or self.licence
        if not licence:
            raise RowError("no_licence: the row says no licence, nor does the corpus")
        labels = {label: frozenset([value]) for label, value in self.constant.items()}
        for label, column in parts.items():
            if label not in PARTS and (values := self._values(label, row.get(column))):
                labels[label] = values
        return Clip(
            corpus=self.name,
            uri=locate(name + self.suffix, root, self.allow_outside),
            name=name,
            place=row.place,
            licence=licence,
            source=text_of(row.get(parts.get("source")), "source").strip() or self.source or self.name,
            labels=labels,
        )

    def _values(self, label: str, cell: Any) -> frozenset[str]:
        if isinstance(cell, (list, tuple)):
            texts = [text_of(value, label) for value in cell]
        elif self.separator and label != "transcript":
            texts = text_of(cell, label).split(self.separator)
        else:
            texts = [text_of(cell, label)]
        names = self.rename.get(label, {})
        return frozenset(names.get(text.strip(), text.strip()) for text in texts if text.strip())
