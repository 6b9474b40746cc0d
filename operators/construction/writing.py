"""The files of a benchmark: items.jsonl, build.json, DATASHEET.md, and the clips where they are copied.

Copied clips keep their bytes and lose their names, which in many corpora spell the label out.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from random import Random
from typing import Any, Literal

from operators.construction.clips import Clip
from operators.construction.tasks import Draw
from operators.fetching import fetch
from operators.tables import is_uri

ITEMS, RECORD, DATASHEET, AUDIO = "items.jsonl", "build.json", "DATASHEET.md", "audio"
AudioMode = Literal["copy", "reference"]


class OutputError(ValueError):
    """The output folder cannot be written to as asked; the message says what to do."""


def locator(output: Path, mode: AudioMode) -> Callable[[Clip], str]:
    """How an item names a clip: its copy below `output`, or the way from `output` to where the clip lies."""

    def copied(clip: Clip) -> str:
        return f"{AUDIO}/{clip.hash[:20]}{PurePosixPath(clip.uri).suffix.lower()}"

    def referenced(clip: Clip) -> str:
        if is_uri(clip.uri):
            return clip.uri
        return Path(os.path.relpath(clip.uri, os.path.realpath(output))).as_posix()

    return copied if mode == "copy" else referenced


def row(
    name: str, number: int, draw: Draw, task: Any, position: int, where: Callable[[Clip], str], rng: Random
) -> dict[str, Any]:
    """One line of items.jsonl: `draw` with its right option at `position` and the others in random order."""
    others = rng.sample(range(1, len(draw.candidates)), len(draw.distractors))
    order = [*others[:position], 0, *others[position:]]
    reference = [draw.reference] if draw.reference else []
    clips = [*(draw.candidates[i] for i in order), *reference]
    return {
        "id": f"{name}-{number:03d}",
        "question": draw.question,
        "dimension": task.dimension,
        "task": name,
        "candidates": [where(draw.candidates[i]) for i in order],
        "answer_index": position,
        "reference": [where(clip) for clip in reference],
        "ranking": task.ranking,
        "licence": {where(clip): clip.licence for clip in clips},
        "source": {where(clip): f"{clip.corpus}/{clip.name} ({clip.source})" for clip in clips},
        "evidence": {**draw.rule, "candidates": [draw.evidence[i] for i in order]},
    }


def check_output(output: Path, overwrite: bool) -> None:
    """Raise OutputError unless `output` is free, or holds an earlier benchmark that may be overwritten."""
    if output.exists() and not output.is_dir():
        raise OutputError(f"output={output} is a file; name a folder")
    if not output.exists() or not any(output.iterdir()):
        return
    if not (output / RECORD).exists():
        raise OutputError(f"output={output} holds other files; name a new folder")
    if not overwrite:
        raise OutputError(f"output={output} holds a benchmark; name another folder, or set overwrite=true")


def write(
    output: Path,
    rows: Sequence[Mapping[str, Any]],
    record: Mapping[str, Any],
    sheet: str,
    copies: Iterable[Clip],
) -> None:
    """Write the whole benchmark (`publish`).

    `copies` are the clips to copy; none where the items refer to them. Raises AudioError where a clip has gone.
    """

    def files() -> Iterator[tuple[str, bytes]]:
        where = locator(output, "copy")
        for clip in copies:
            yield where(clip), fetch(clip.uri)
        yield from documents(record, sheet)
        yield ITEMS, jsonl(rows)

    publish(output, files(), [ITEMS])


def documents(record: Mapping[str, Any], sheet: str) -> Iterator[tuple[str, bytes]]:
    """The record and the datasheet as files."""
    yield DATASHEET, sheet.encode()
    yield RECORD, (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()


def jsonl(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """One JSON object a line."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in rows).encode()


def publish(output: Path, files: Iterable[tuple[str, bytes]], items: Sequence[str]) -> None:
    """Write `files`, (path below `output`, content), beside `output` first, then move them there, the `items` last.

    The `items` files and the clips of an earlier benchmark give way, also where there are no new ones.
    """
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".build-", dir=output) as folder:
        partial = Path(folder)
        (partial / AUDIO).mkdir()
        for name, content in files:
            (partial / name).write_bytes(content)
        for name in items:
            (output / name).unlink(missing_ok=True)
        if (output / AUDIO).exists():
            shutil.rmtree(output / AUDIO)
        if not any((partial / AUDIO).iterdir()):
            (partial / AUDIO).rmdir()
        for path in sorted(partial.iterdir(), key=lambda path: (path.name in items, path.name)):
            os.replace(path, output / path.name)
