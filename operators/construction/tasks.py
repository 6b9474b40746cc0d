"""What a task of an audio-as-option benchmark is: a constraint that exactly one of the candidates satisfies.

MUGEN, Section 2.3: first the clip that satisfies the constraint, then distractors with contrasting variations
of the very attribute that is asked for.

*Our reading*: an item never mixes corpora, because microphone, room and coding would give the answer away;
and distractors contrast by a label that says something else, never by one that is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass as plain_dataclass
from random import Random
from typing import Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.construction.clips import Clip

Dimension = Literal[
    "Semantics & Pragmatics",
    "Speaker & Demographics",
    "Affective & Paralinguistic State",
    "Temporal Awareness",
    "Acoustic Scene & Event Analysis",
    "Music Analysis",
    "Compositional Acoustic Reasoning",
]
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


class TaskError(ValueError):
    """A task that is written wrongly; the message names the field."""


@plain_dataclass(frozen=True)
class Draw:
    """One item before its candidates are put in order; `evidence` proves each clip, gold first."""

    gold: Clip
    distractors: tuple[Clip, ...]
    question: str
    rule: Mapping[str, Any]
    evidence: tuple[Mapping[str, Any], ...]
    reference: Clip | None = None

    @property
    def candidates(self) -> tuple[Clip, ...]:
        return (self.gold, *self.distractors)


@plain_dataclass(frozen=True)
class Start:
    """A clip that could be the right option; `key` is what would be asked for, over which items are balanced.

    `draw` completes the item, or gives None where no distractors fit.
    """

    gold: Clip
    key: str
    draw: Callable[[Random], Draw | None]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Task:
    """What all tasks have.

    question: its text; `{label}` stands for the label's value that is asked for, as `wording` puts it.
    where: {label: values}: only clips with one of these values take part.
    same: labels that all clips of an item share, so that they cannot tell the options apart.
    differ: labels in which all candidates differ from one another.
    """

    dimension: Dimension
    question: str
    where: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    same: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    wording: dict[str, str] = Field(default_factory=dict)

    @property
    def ranking(self) -> bool:
        """Whether taking a distractor away can change the right answer (Section 4.2 leaves such tasks out)."""
        return False

    @property
    def needs_labels(self) -> tuple[str, ...]:
        """Labels that every clip of the task must have."""
        return tuple(dict.fromkeys((*self.where, *self.same, *self.differ)))

    @property
    def needs_property(self) -> str | None:
        """The property that every clip of the task must have a value of."""
        return None

    def in_scope(self, clips: Iterable[Clip]) -> list[Clip]:
        """The clips that have all labels of the task and are where it looks."""
        return [
            clip
            for clip in clips
            if all(clip.values(label) for label in self.needs_labels)
            and all(clip.values(label) & set(values) for label, values in self.where.items())
        ]

    def groups(self, clips: Iterable[Clip]) -> dict[tuple, list[Clip]]:
        """`clips` by corpus and by the labels that an item's clips share."""
        groups: dict[tuple, list[Clip]] = {}
        for clip in clips:
            key = (clip.corpus, *(tuple(sorted(clip.values(label))) for label in self.same))
            groups.setdefault(key, []).append(clip)
        return groups

    def asked(self, values: Mapping[str, str]) -> str:
        """The question with `values` in the places of its labels. Raises TaskError for any other name."""

        def worded(match: re.Match) -> str:
            if match[1] not in values:
                allowed = ", ".join(f"{{{name}}}" for name in values) or "none"
                raise TaskError(f"question: {match[0]} stands for nothing here; allowed: {allowed}")
            return self.wording.get(values[match[1]], values[match[1]])

        return _PLACEHOLDER.sub(worded, self.question)


def pick(
    pools: Sequence[tuple[Sequence[Clip], int]], differ: Sequence[str], taken: Sequence[Clip], rng: Random
) -> list[Clip] | None:
    """So many clips from each pool, at random, all different sounds and pairwise different in `differ`.

    `taken` clips are in the item already. None where a pool has not enough that fit.
    """
    chosen: list[Clip] = []
    for pool, count in pools:
        wanted = len(chosen) + count
        for clip in rng.sample(pool, len(pool)):
            if len(chosen) == wanted:
                break
            if all(_apart(clip, other, differ) for other in (*taken, *chosen)):
                chosen.append(clip)
        if len(chosen) < wanted:
            return None
    return chosen


def _apart(one: Clip, other: Clip, differ: Sequence[str]) -> bool:
    return one.hash != other.hash and all(
        one.values(label).isdisjoint(other.values(label)) for label in differ
    )


def shown_values(clip: Clip, labels: Iterable[str]) -> dict[str, list[str]]:
    """The labels of a clip as they stand in an item's evidence."""
    return {label: sorted(clip.values(label)) for label in labels}


def count_of(number: int, noun: str) -> str:
    """ "1 clip", "3 clips"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
