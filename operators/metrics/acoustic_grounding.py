"""Acoustic Grounding Score (M1): are the sounds that the perception step names really in the audio?

ARIA-Rubrics, section 3.3.1, Eq. 1: AGS = 1/|E| sum over e in E of CLAP_sim(e, a), with E the entities named
in the perception step and a the whole audio. If E is empty, M1 is 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.audio import NO_AUDIO, AudioError, Clip, decode, pcm_hash, shown
from operators.backbones.clap import Clap, LoadedClap
from operators.backbones.tag_grounding import LoadedTagGrounding, TagGrounding
from operators.base import Batch, Op
from operators.batching import Memo
from operators.metrics.rows import ScoredRow, columns
from operators.text import is_absent

# Clips come from disks and object stores, and decoders leave the interpreter free: a few at a time cost less time.
DECODERS, CLIPS_AHEAD = 4, 16


def acoustic_grounding(similarities: Sequence[float] | np.ndarray) -> float:
    """AGS (Eq. 1) in [0, 1] from the similarities [E] of the entities to the audio; no entity -> 0.

    *Our reading*: a negative cosine counts as 0. Raises ValueError for NaN, values outside [-1, 1], or more than one axis.
    """
    values = np.asarray(similarities, dtype=np.float64)
    if values.ndim != 1 or not np.isfinite(values).all():
        raise ValueError(f"similarities must be finite numbers along one axis, not {values.shape} {values}")
    if not np.all(np.abs(values) <= 1 + 1e-6):
        raise ValueError(f"similarities lie in [-1, 1], not {values}")
    return float(np.clip(values, 0, 1).mean()) if values.size else 0.0


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class AcousticGrounding:
    """M1 over a batch, by a contrastive backbone (Clap) or a tagger (TagGrounding).

    *Our reading* for several clips: an entity counts by the clip in which it is heard best. Blank entities
    name nothing and are left out. The details hold the entities scored, their raw similarities, and those
    that the text encoder cut. A row without entities needs no audio; any other fails if one of its clips
    cannot be decoded (audio_unavailable), or decodes to another sound than the one that was probed
    (audio_changed). Clips have passed ProbeAudio before.
    """

    backbone: Clap | TagGrounding

    reads: ClassVar[tuple[str, ...]] = ("entities", "audio_uris", "audio_hashes")
    writes: ClassVar[tuple[str, ...]] = (
        "m1_acoustic_grounding",
        "m1_acoustic_grounding_reason",
        "m1_acoustic_grounding_details",
    )
    version: ClassVar[int] = 1

    def build(self) -> Op:
        listener = _Listener(self.backbone.load())

        def score(batch: Batch) -> Batch:
            rows = [_Row(*cells) for cells in zip(*(batch[name] for name in self.reads), strict=True)]
            return columns(self.writes, listener.score(rows))

        return score


class _Row:
    """One row's entities and clips, and what is wrong with its clips before any of them is decoded."""

    def __init__(self, entities: Any, uris: Any, hashes: Any) -> None:
        self.entities = [str(entity) for entity in _listed(entities) if not is_absent(entity)]
        self.uris, self.hashes = _listed(uris), _listed(hashes)
        self.error: str | None = None
        if not self.uris:
            self.error = NO_AUDIO
        elif len(self.hashes) != len(self.uris) or not all(self.hashes):
            hashes = self.hashes + [None] * len(self.uris)
            lost = [shown(str(uri)) for uri, key in zip(self.uris, hashes, strict=False) if not key]
            names = ", ".join(lost) or f"{len(self.hashes)} hashes for {len(self.uris)} clips"
            self.error = f"audio_unavailable: {names}; audio_error says why"


class _Listener:
    """A loaded backbone that encodes each distinct sound and each distinct entity once."""

    seconds_per_batch = 120.0  # what is held decoded at once, so that long clips do not pile up

    def __init__(self, model: LoadedClap | LoadedTagGrounding) -> None:
        self._model = model
        self._sounds, self._texts = Memo("clips"), Memo("entities")

    def score(self, rows: list[_Row]) -> list[ScoredRow]:
        heard = [row for row in rows if row.entities and not row.error]
        sounds, errors = self._encode_sounds(heard)
        texts = list(dict.fromkeys(entity for row in heard for entity in row.entities))
        codes = dict(zip(texts, self._texts.get(texts, self._encode_texts), strict=True))
        return [self._score_row(row, sounds, errors, codes) for row in rows]

    def _score_row(self, row: _Row, sounds: dict, errors: dict, codes: dict) -> ScoredRow:
        details = {"entities": row.entities, "similarities": [], "truncated": []}
        if not row.entities:
            return ScoredRow(acoustic_grounding([]), None, details)
        failed = row.error or next((errors[key] for key in row.hashes if key in errors), None)
        if failed:
            return ScoredRow(float("nan"), failed, details)
        clips = np.stack([sounds[key] for key in row.hashes])
        entities = np.stack([codes[entity][0] for entity in row.entities])
        best = self._model.similarity(clips, entities).max(axis=0).astype(np.float64)
        details["truncated"] = [entity for entity in row.entities if codes[entity][1]]
        try:
            return ScoredRow(acoustic_grounding(best), None, {**details, "similarities": best.tolist()})
        except ValueError as error:
            return ScoredRow(float("nan"), f"no_similarity: {error}", details)

    def _encode_texts(self, texts: list[str]) -> list[tuple[np.ndarray, bool]]:
        embeddings, truncated = self._model.encode_entities(texts)
        return list(zip(embeddings, truncated.tolist(), strict=True))

    def _encode_sounds(self, rows: list[_Row]) -> tuple[dict[str, np.ndarray | None], dict[str, str]]:
        """Codes by hash, None for a sound that no locator here gives any more, and the errors of those by hash."""
        places: dict[str, list[str]] = {}
        for row in rows:
            for key, uri in zip(row.hashes, row.uris, strict=True):
                places.setdefault(key, []).append(uri)
        errors: dict[str, str] = {}

        def compute(missing: list[str]) -> list[np.ndarray | None]:
            codes = self._hear({key: places[key] for key in missing}, errors)
            return [codes.get(key) for key in missing]

        return dict(zip(places, self._sounds.get(list(places), compute), strict=True)), errors

    def _hear(self, places: dict[str, list[str]], errors: dict[str, str]) -> dict[str, np.ndarray]:
        """Codes by hash of the sounds that could be decoded; `errors` gets the others."""
        codes: dict[str, np.ndarray] = {}
        clips: dict[str, Clip] = {}
        for key, found in _found(places):
            if isinstance(found, Clip):
                clips[key] = found
            else:
                errors[key] = found
            if sum(clip.seconds for clip in clips.values()) >= self.seconds_per_batch:
                codes.update(self._encode(clips))
                clips = {}
        return codes | self._encode(clips)

    def _encode(self, clips: dict[str, Clip]) -> dict[str, np.ndarray]:
        if not clips:
            return {}
        return dict(zip(clips, self._model.encode_clips(list(clips.values())), strict=True))


def _found(places: dict[str, list[str]]) -> Iterator[tuple[str, Clip | str]]:
    """What `_find` gives for every key; a few clips at a time are fetched and decoded side by side."""
    waiting = list(places.items())
    with ThreadPoolExecutor(DECODERS) as pool:
        for start in range(0, len(waiting), CLIPS_AHEAD):
            some = waiting[start : start + CLIPS_AHEAD]
            yield from zip((key for key, _ in some), pool.map(lambda place: _find(*place), some), strict=True)


def _find(key: str, uris: list[str]) -> Clip | str:
    """The clip whose hash is `key` at the first of `uris` that still holds it, or why there is none."""
    error = ""
    for uri in dict.fromkeys(uris):
        try:
            # How long a clip may be was decided when it was probed.
            clip = decode(uri, max_seconds=np.inf)
        except AudioError as failure:
            error = str(failure)
            continue
        if pcm_hash(clip) == key:
            return clip
        error = f"audio_changed: {shown(uri)} no longer decodes to the sound that was probed"
    return error


def _listed(cell: Any) -> list[Any]:
    return [] if cell is None else list(cell)
