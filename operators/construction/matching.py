"""Tasks about labels: "the dog bark", "the angriest", "same emotion as the reference, other words"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from random import Random

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.construction.clips import Clip
from operators.construction.pools import (
    Kinds,
    Pools,
    commonest,
    one_class,
    pick_spread,
    sort_out,
    too_few,
)
from operators.construction.tasks import Draw, Start, Task, pick, shown_values

POOLS_KEPT = 64


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Match(Task):
    """Which candidate has the asked value of each of `labels`?

    One label: every distractor has another value of it, as many different ones as there are. Several labels:
    at least one distractor per label has all but that one right, and none has all of them right.

    values: {label: values that may be asked for}; every value by default.
    contrast: {label: values a distractor may have}; every other value by default.
    """

    labels: tuple[str, ...] = Field(min_length=1)
    values: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    contrast: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    @property
    def needs_labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().needs_labels, *self.labels)))

    def starts(self, clips: Iterable[Clip], n_candidates: int) -> list[Start]:
        """Every clip with every combination of values that it could be asked for by."""
        starts = []
        for group in self.groups(self.in_scope(clips)).values():
            kinds = Kinds(self._combinations(clip, {}) for clip in group)
            pools = lru_cache(POOLS_KEPT)(partial(self._pools, group, n_candidates))
            starts += [
                Start(gold, " + ".join(wanted), partial(self._draw, gold, wanted, pools))
                for gold in group
                for wanted in self._combinations(gold, self.values)
                if kinds.plausible(wanted, 1)
            ]
        return starts

    def shortage(self, clips: Iterable[Clip], n_candidates: int) -> str:
        """Why there is no item: what one needs, and the most that there is."""
        scope = self.in_scope(clips)
        if single := one_class(scope, self.labels):
            return single
        found = (
            self._pools(group, n_candidates, wanted)
            for group in self.groups(scope).values()
            for wanted in commonest(w for clip in group for w in self._combinations(clip, self.values))
        )
        needs = f"1 clip with the asked {' and '.join(self.labels)} and {n_candidates - 1} with another"
        return too_few(self, self.labels, needs, found, 1, n_candidates, len(scope))

    def _combinations(self, clip: Clip, allowed: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
        """Value tuples, one value per label, that `clip` has, of the values `allowed` for each label."""
        found: list[tuple[str, ...]] = [()]
        for label in self.labels:
            values = [v for v in sorted(clip.values(label)) if label not in allowed or v in allowed[label]]
            found = [(*head, value) for head in found for value in values]
        return found

    def _pools(self, group: Sequence[Clip], n_candidates: int, wanted: tuple[str, ...]) -> Pools:
        tests = [partial(_has, label, value) for label, value in zip(self.labels, wanted, strict=True)]
        return sort_out(group, tests, self._may_contrast, n_candidates)

    def _may_contrast(self, clip: Clip, index: int) -> bool:
        allowed = self.contrast.get(self.labels[index])
        return allowed is None or clip.values(self.labels[index]) <= set(allowed)

    def _draw(
        self, gold: Clip, wanted: tuple[str, ...], pools_of: Callable[..., Pools], rng: Random
    ) -> Draw | None:
        pools = pools_of(wanted)
        if pools.quotas is None:
            return None
        spread = self.labels[0] if len(self.labels) == 1 else None
        distractors = pick_spread(pools.quotas, spread, self.differ, [gold], rng)
        if distractors is None:
            return None
        asked = dict(zip(self.labels, wanted, strict=True))
        evidence = tuple(shown_values(clip, self.labels) for clip in (gold, *distractors))
        question = self.asked(asked)
        return Draw(gold, tuple(distractors), question, {"kind": "labels", "asked": asked}, evidence)


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class LikeReference(Task):
    """Which candidate is like the reference in all of `labels`?

    other: labels in which every candidate, the right one too, differs from the reference ("other words").
    Distractors contrast as in Match.
    """

    labels: tuple[str, ...] = Field(min_length=1)
    other: tuple[str, ...] = ()

    @property
    def needs_labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*super().needs_labels, *self.labels, *self.other)))

    def starts(self, clips: Iterable[Clip], n_candidates: int) -> list[Start]:
        """Every clip that has another one like it and enough unlike it."""
        starts = []
        for group in self.groups(self.in_scope(clips)).values():
            kinds = Kinds([self._kind(clip)] for clip in group)
            pools = lru_cache(POOLS_KEPT)(partial(self._pools, group, n_candidates))
            starts += [
                Start(gold, shown_kind(self._kind(gold)), partial(self._draw, gold, pools))
                for gold in group
                if kinds.plausible(self._kind(gold), 2)
            ]
        return starts

    def shortage(self, clips: Iterable[Clip], n_candidates: int) -> str:
        """Why there is no item: what one needs, and the most that there is."""
        scope = self.in_scope(clips)
        if single := one_class(scope, self.labels):
            return single
        found = (
            self._pools(group, n_candidates, kind)
            for group in self.groups(scope).values()
            for kind in commonest(self._kind(clip) for clip in group)
        )
        needs = f"2 clips with one {' and '.join(self.labels)} and {n_candidates - 1} with another"
        if self.other:
            needs += f", none with the {' or '.join(self.other)} of the first, which is the reference"
        return too_few(self, self.labels, needs, found, 2, n_candidates, len(scope))

    def _kind(self, clip: Clip) -> tuple[frozenset[str], ...]:
        return tuple(clip.values(label) for label in self.labels)

    def _pools(self, group: Sequence[Clip], n_candidates: int, kind: tuple[frozenset[str], ...]) -> Pools:
        tests = [partial(_agrees, label, values) for label, values in zip(self.labels, kind, strict=True)]
        return sort_out(group, tests, lambda clip, index: True, n_candidates)

    def _draw(self, gold: Clip, pools_of: Callable[..., Pools], rng: Random) -> Draw | None:
        pools = pools_of(self._kind(gold))
        others = pick([(pools.right, 1)], self.other, [gold], rng) if pools.quotas is not None else None
        if others is None:
            return None
        reference = others[0]
        fitting = [([c for c in pool if self._unlike(c, reference)], count) for pool, count in pools.quotas]
        spread = self.labels[0] if len(self.labels) == 1 else None
        distractors = pick_spread(fitting, spread, self.differ, [gold], rng)
        if distractors is None:
            return None
        shown = (*self.labels, *self.other)
        rule = {"kind": "like_reference", "labels": list(self.labels), "other": list(self.other)}
        rule["reference"] = shown_values(reference, shown)
        evidence = tuple(shown_values(clip, shown) for clip in (gold, *distractors))
        return Draw(gold, tuple(distractors), self.asked({}), rule, evidence, reference)

    def _unlike(self, clip: Clip, reference: Clip) -> bool:
        apart = all(clip.values(label).isdisjoint(reference.values(label)) for label in self.other)
        return apart and clip.hash != reference.hash


def _has(label: str, value: str, clip: Clip) -> bool:
    return value in clip.values(label)


def _agrees(label: str, values: frozenset[str], clip: Clip) -> bool | None:
    if clip.values(label) == values:
        return True
    return False if clip.values(label).isdisjoint(values) else None


def shown_kind(kind: Iterable[frozenset[str]]) -> str:
    """Values of several labels as one text."""
    return " + ".join("/".join(sorted(values)) for values in kind)
