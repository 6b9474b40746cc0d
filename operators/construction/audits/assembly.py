"""A built audit as rows, clips and a record: what `pipelines.build_audit` writes.

Clips are FLAC, 16 bit, under the hash of their samples: a name says nothing about the emotion, and a turn that two
branches share is one file.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

import numpy as np

from operators.audio import Clip, pcm_hash
from operators.columns import RowError
from operators.construction.audits.renderings import Studio, Take, cast, line_of
from operators.construction.audits.scripts import Said, Script
from operators.construction.writing import AUDIO

PACKAGES = ("librosa", "pyloudnorm", "numpy", "soundfile", "soxr", "openai", "espeakng-loader", "piper-tts")


@dataclass(frozen=True)
class Discarded:
    """A row of a source that became no item, and why ("reason: detail")."""

    kind: str
    id: str
    place: str
    reason: str


@dataclass(frozen=True)
class Built:
    """One item: its script, the voices of user and assistant, and the take of each utterance, as `Script.said` lists."""

    script: Script
    voices: tuple[str, str]
    takes: tuple[Take, ...]


def rendered(script: Script, studio: Studio, voices: Sequence[str], seed: int) -> Built:
    """Render a script. Raises RowError for the first utterance that has no accepted rendering."""
    chosen = cast(script, voices, seed)
    takes = []
    for said in script.said:
        take = studio.take(line_of(said, chosen))
        if take.sound is None:
            raise RowError(take.reason)
        takes.append(take)
    return Built(script, chosen, tuple(takes))


def flac(sound: Clip) -> tuple[str, bytes]:
    """Path below the output, and content: FLAC with 16 bit, named by the samples that a reader will decode."""
    import soundfile

    whole = np.clip(np.round(sound.samples * 32768), -32768, 32767).astype(np.int16)
    stored = Clip(whole.astype(np.float32) / np.float32(32768), sound.sample_rate)
    file = io.BytesIO()
    soundfile.write(file, whole, sound.sample_rate, format="FLAC", subtype="PCM_16", compression_level=1.0)
    return f"{AUDIO}/{pcm_hash(stored)[:20]}.flac", file.getvalue()


def row(item: Built, paths: Mapping[int, str], generator: str) -> dict[str, Any]:
    """One line of <kind>.jsonl, in the format of operators.benchmarks.emotions. paths: {id of a take's sound: path}."""
    script = item.script
    where = [paths[id(take.sound)] for take in item.takes]
    sizes = [len(branch) for branch in script.branches]
    first, second, replies = where[: sizes[0]], where[sizes[0] : -2], where[-2:]
    return {
        "id": script.id,
        "branches": [
            [_turn(said, path) for said, path in zip(branch, clips, strict=True)]
            for branch, clips in zip(script.branches, (first, second), strict=True)
        ],
        "responses": [
            {"branch": place, "text": said.text, "audio": path, "emotion": said.emotion}
            for place, (said, path) in enumerate(zip(script.responses, replies, strict=True))
        ],
        "source": script.source,
        "generator": generator,
        "voices": dict(zip(("user", "assistant"), item.voices, strict=True)),
        **script.notes,
    }


def _turn(said: Said, path: str) -> dict[str, str]:
    return {"speaker": said.speaker, "text": said.text, "emotion": said.emotion, "audio": path}


def rendering_table(takes: Iterable[Take]) -> dict[str, dict[str, Any]]:
    """Per emotion: lines asked for and kept, attempts and those accepted, mean fitness, why attempts failed."""
    table: dict[str, dict[str, Any]] = {}
    for take in takes:
        entry = table.setdefault(
            take.line.emotion,
            {"lines": 0, "kept": 0, "attempts": 0, "accepted": 0, "fitness": [], "failures": Counter()},
        )
        entry["lines"] += 1
        entry["kept"] += take.sound is not None
        entry["attempts"] += take.attempts
        entry["accepted"] += take.accepted
        entry["fitness"] += [take.judgment.fitness] if take.judgment else []
        entry["failures"].update(failure.partition(" (")[0] for failure in take.failures)
    return {
        emotion: entry
        | {
            "fitness": fmean(entry["fitness"]) if entry["fitness"] else None,
            "failures": dict(entry["failures"].most_common()),
        }
        for emotion, entry in sorted(table.items())
    }


def kept_renderings(takes: Iterable[Take], paths: Mapping[int, str]) -> list[dict[str, Any]]:
    """What the record holds of every kept clip."""
    return [
        {
            "audio": paths[id(take.sound)],
            "text": take.line.text,
            "emotion": take.line.emotion,
            "voice": take.line.voice,
            "attempts": take.attempts,
            "accepted": take.accepted,
            "fitness": take.judgment.fitness,
            "measures": dict(take.judgment.measures),
        }
        for take in takes
        if id(take.sound) in paths
    ]


def kind_table(
    kinds: Iterable[str], items: Sequence[Built], discarded: Sequence[Discarded]
) -> dict[str, dict[str, Any]]:
    """Per kind: items, turns, pointwise instances, the pairs of emotions, and what was discarded by reason."""
    table = {}
    for kind in kinds:
        mine = [item.script for item in items if item.script.kind == kind]
        reasons = Counter(row.reason.partition(":")[0] for row in discarded if row.kind == kind)
        table[kind] = {
            "items": len(mine),
            "pointwise_instances": 2 * len(mine),
            "turns": sum(len(script.branches[0]) for script in mine),
            "emotions": dict(Counter(contrast(script) for script in mine).most_common()),
            "discarded": sum(reasons.values()),
            "reasons": dict(reasons.most_common()),
        }
    return table


def contrast(script: Script) -> str:
    """How the branches differ, in words: "angry / sad", "neutral -> angry at turn 3 / 5"."""
    paths = [[said.emotion for said in branch if said.speaker == "user"] for branch in script.branches]
    if script.kind != "positional_emotion":
        return " / ".join(path[-1] for path in paths)
    return f"{paths[0][0]} -> {paths[0][-1]}"
