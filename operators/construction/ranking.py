"""Tasks about measured properties: "the loudest", "the third longest", "the longest dog bark".

The right option is clear of every other one by a margin, on both sides where it is in between.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass as plain_dataclass
from functools import partial
from random import Random
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.construction.clips import Clip
from operators.construction.measurements import SCALES, Property, clearly_above
from operators.construction.pools import apart
from operators.construction.tasks import Draw, Start, Task, TaskError, count_of, pick, shown_values


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Rank(Task):
    """Which candidate comes at place `rank` when `property` is put in `order`?

    margin: how clear the right option is of the others; None: SCALES' margin, a ratio or a gap by property.
    among: a label; then the place counts among the candidates with the asked value of it only ("the longest
        dog bark"). Half of the distractors have that value and are clearly behind; the other half have not
        and are clearly ahead, so that neither the label nor the property alone leads to the answer.
    values: the values of `among` that may be asked for; all by default.
    """

    property: Property
    order: Literal["highest", "lowest"] = "highest"
    rank: int = Field(1, ge=1)
    margin: float | None = Field(None, gt=0)
    among: str | None = None
    values: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.among and self.rank != 1:
            raise ValueError("rank: only the first place can be asked for together with `among`")
        if self.margin is not None and SCALES[self.property].kind == "ratio" and self.margin <= 1:
            raise ValueError(f"margin: the margin of {self.property} is a ratio, so more than 1")

    @property
    def ranking(self) -> bool:
        return self.rank > 1

    @property
    def needs_labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().needs_labels, *([self.among] if self.among else []))))

    @property
    def needs_property(self) -> str | None:
        return self.property

    @property
    def clear(self) -> float:
        """The margin in force."""
        return SCALES[self.property].margin if self.margin is None else self.margin

    def starts(self, clips: Iterable[Clip], n_candidates: int) -> list[Start]:
        """Every measured clip that has enough others clearly ahead of it and clearly behind."""
        if self.rank > n_candidates:
            raise TaskError(f"rank: place {self.rank} of {n_candidates} candidates")
        starts = []
        for group in self.groups(self._measured(clips)).values():
            row = Row.of(group, self)
            for gold in group:
                for value in self._askable(gold):
                    if self._feasible(row, gold, value, n_candidates):
                        draw = partial(self._draw, gold, value, row, n_candidates)
                        starts.append(Start(gold, value or "", draw))
        return starts

    def shortage(self, clips: Iterable[Clip], n_candidates: int) -> str:
        """Why there is no item: what one needs, and the most that there is."""
        scope = self.in_scope(clips)
        measured = self._measured(scope)
        if not measured:
            reasons = sorted({clip.unmeasured.get(self.property, "not measured") for clip in scope})
            return f"not_measurable: {self.property} of none of {count_of(len(scope), 'clip')} ({reasons[0]})"
        wanted = (self.rank - 1, n_candidates - self.rank)
        if self.among:
            wanted = _halves(n_candidates)
        best, score = (0, 0), -1
        for group in self.groups(measured).values():
            row = Row.of(group, self)
            for gold in group:
                for value in self._askable(gold):
                    found = tuple(len(pool) for pool in self._pools(row, gold, value))
                    reached = sum(min(f, w) for f, w in zip(found, wanted, strict=True))
                    best, score = (found, reached) if reached > score else (best, score)
        kinds = ("of other kinds ", "of its kind ") if self.among else ("", "")
        shared = f", all of one {' and one '.join(self.same)}," if self.same else ""
        return (
            f"too_few_clips: needs a clip with {wanted[0]} {kinds[0]}clearly ahead and {wanted[1]} {kinds[1]}"
            f"clearly behind{shared} in {self.property} ({self.order} first, margin {self.clear:g}); the best of "
            f"{count_of(len(measured), 'measured clip')} has {best[0]} and {best[1]}{apart(self, n_candidates)}"
        )

    def _measured(self, clips: Iterable[Clip]) -> list[Clip]:
        return [clip for clip in self.in_scope(clips) if self.property in clip.measured]

    def _askable(self, clip: Clip) -> list[str | None]:
        if self.among is None:
            return [None]
        return [value for value in sorted(clip.values(self.among)) if not self.values or value in self.values]

    def _quotas(self, n_candidates: int) -> tuple[int, int]:
        """How many distractors are ahead of the right option, and how many behind it."""
        return _halves(n_candidates) if self.among else (self.rank - 1, n_candidates - self.rank)

    def _pools(self, row: Row, gold: Clip, value: str | None) -> tuple[Sequence[Clip], Sequence[Clip]]:
        above, below = row.clear_of(gold.measured[self.property])
        ahead, behind = (above, below) if self.order == "highest" else (below, above)
        if self.among:
            ahead = [clip for clip in ahead if value not in clip.values(self.among)]
            behind = [clip for clip in behind if value in clip.values(self.among)]
        return ahead, behind

    def _feasible(self, row: Row, gold: Clip, value: str | None, n_candidates: int) -> bool:
        if self.among:
            return True  # decided at the draw: the pools of every clip at once would be quadratic in memory
        above, below = row.counts(gold.measured[self.property])
        found = (above, below) if self.order == "highest" else (below, above)
        return all(f >= q for f, q in zip(found, self._quotas(n_candidates), strict=True))

    def _draw(self, gold: Clip, value: str | None, row: Row, n_candidates: int, rng: Random) -> Draw | None:
        pools = list(zip(self._pools(row, gold, value), self._quotas(n_candidates), strict=True))
        distractors = pick(pools, self.differ, [gold], rng)
        if distractors is None:
            return None
        scale = SCALES[self.property]
        rule = {"kind": "measured", "property": self.property, "unit": scale.unit, "order": self.order}
        rule |= {"rank": self.rank, "margin": {scale.kind: self.clear}}
        rule |= {"among": {self.among: value}} if self.among else {}
        labels = [self.among] if self.among else []
        evidence = tuple(
            {self.property: clip.measured[self.property], **shown_values(clip, labels)}
            for clip in (gold, *distractors)
        )
        question = self.asked({self.among: value} if self.among else {})
        return Draw(gold, tuple(distractors), question, rule, evidence)


@plain_dataclass(frozen=True)
class Row:
    """Clips in ascending order of a property."""

    clips: Sequence[Clip]
    values: Sequence[float]
    kind: str
    margin: float

    @classmethod
    def of(cls, clips: Sequence[Clip], task: Rank) -> Row:
        """The measured clips of one group."""
        ordered = sorted(clips, key=lambda clip: (clip.measured[task.property], clip.hash))
        values = [clip.measured[task.property] for clip in ordered]
        return cls(ordered, values, SCALES[task.property].kind, task.clear)

    def counts(self, value: float) -> tuple[int, int]:
        """How many clips are clearly above `value`, and how many clearly below."""
        low, high = self._bounds(value)
        return len(self.values) - high, low

    def clear_of(self, value: float) -> tuple[Sequence[Clip], Sequence[Clip]]:
        """The clips that are clearly above `value`, and those clearly below."""
        low, high = self._bounds(value)
        return self.clips[high:], self.clips[:low]

    def _bounds(self, value: float) -> tuple[int, int]:
        """Where the clips clearly below `value` end, and where those clearly above begin."""

        def reached(other: float) -> bool:
            return not clearly_above(value, other, self.kind, self.margin)

        def passed(other: float) -> bool:
            return clearly_above(other, value, self.kind, self.margin)

        return bisect_left(self.values, True, key=reached), bisect_left(self.values, True, key=passed)


def _halves(n_candidates: int) -> tuple[int, int]:
    """Distractors of another kind that are ahead, and of the asked kind that are behind: 2 and 2 of 5."""
    behind = n_candidates // 2
    return n_candidates - 1 - behind, behind
