"""Clips with what is known about them, and which of them cannot be used.

Two clips are the same sound when their decoded samples are the same (operators.audio.pcm_hash). The same
recording in another lossy format or at another sampling rate is not recognised as such.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from operators.audio import Probe

NOTHING: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Clip:
    """One clip of a corpus.

    uri: where it lies; name: what the corpus' table calls it; place: its line there.
    labels: {label: values}; a label that the table leaves empty is absent. Most labels have one value.
    measured: {property: value}, in the units of operators.construction.measurements; unmeasured: {property:
    why it has no value}.
    """

    corpus: str
    uri: str
    name: str
    place: str
    licence: str
    source: str
    labels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    hash: str = ""
    seconds: float = 0.0
    measured: Mapping[str, float] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)

    def values(self, label: str) -> frozenset[str]:
        """The values of `label`; empty where the corpus does not give it."""
        return self.labels.get(label, NOTHING)


@dataclass(frozen=True)
class LeftOut:
    """A row of a corpus that is in no item. `reason` is "snake_case_word: detail"."""

    corpus: str
    name: str
    place: str
    reason: str


def left_out(clip: Clip, reason: str) -> LeftOut:
    """The record of `clip` being left out because of `reason`."""
    return LeftOut(clip.corpus, clip.name, clip.place, reason)


def identify(clips: Iterable[Clip], probe: Callable[[str], Probe]) -> tuple[list[Clip], list[LeftOut]]:
    """Decode each clip by `probe`: those that decode, with hash and length; those that do not, with why."""
    usable, failed = [], []
    for clip in clips:
        found = probe(clip.uri)
        if found.error:
            failed.append(left_out(clip, found.error))
        else:
            usable.append(dataclasses.replace(clip, hash=found.hash, seconds=found.seconds))
    return usable, failed


def without_duplicates(clips: Sequence[Clip]) -> tuple[list[Clip], list[LeftOut]]:
    """One clip per sound. Of twins with the same labels the first stays; twins that disagree all go.

    Twins disagree when a label that both have differs: then neither can prove an answer. Labels are not
    compared between corpora, whose vocabularies differ: there the first corpus' twins stay.
    """
    twins: dict[str, list[Clip]] = {}
    for clip in clips:
        twins.setdefault(clip.hash, []).append(clip)
    kept, dropped = [], []
    for same in twins.values():
        first = same[0]
        rival = next((clip for clip in same[1:] if _disagree(first, clip)), None)
        if rival is None:
            kept.append(first)
            dropped += [left_out(clip, f"duplicate: the same sound as {_where(first)}") for clip in same[1:]]
        else:
            reason = f"contradictory_labels: {_where(first)} and {_where(rival)} are one sound"
            dropped += [left_out(clip, f"{reason}, labelled differently") for clip in same]
    return kept, dropped


def _disagree(one: Clip, other: Clip) -> bool:
    shared = one.labels.keys() & other.labels.keys()
    return one.corpus == other.corpus and any(one.labels[name] != other.labels[name] for name in shared)


def _where(clip: Clip) -> str:
    return f"{clip.corpus} {clip.name} ({clip.place})"
