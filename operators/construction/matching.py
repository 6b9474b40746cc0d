"""Tasks about labels: "the dog bark", "the angriest", "same emotion as the reference, other words"."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass as plain_dataclass
from functools import partial
from random import Random

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.construction.clips import Clip
from operators.construction.tasks import Draw, Start, Task, count_of, pick, shown_values


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
            cache: dict[tuple[str, ...], Pools] = {}
            for gold in group:
                for wanted in self._askable(gold):
                    if wanted not in cache:
                        cache[wanted] = self._pools(group, wanted, n_candidates)
                    if cache[wanted].quotas is not None:
                        draw = partial(self._draw, gold, wanted, cache[wanted])
                        starts.append(Start(gold, " + ".join(wanted), draw))
        return starts

    def shortage(self, clips: Iterable[Clip], n_candidates: int) -> str:
        """Why there is no item: what one needs, and the most that there is."""
        scope = self.in_scope(clips)
        if single := one_class(scope, self.labels):
            return single
        found = [
            self._pools(group, wanted, n_candidates)
            for group in self.groups(scope).values()
            for wanted in sorted({wanted for clip in group for wanted in self._askable(clip)})
        ]
        needs = f"1 clip with the asked {' and '.join(self.labels)} and {n_candidates - 1} with another"
        return too_few(self, self.labels, needs, found, 1, n_candidates, len(scope))

    def _askable(self, clip: Clip) -> list[tuple[str, ...]]:
        """Value tuples, one value per label, that `clip` has and that may be asked for."""
        found: list[tuple[str, ...]] = [()]
        for label in self.labels:
            allowed = self.values.get(label)
            values = [value for value in sorted(clip.values(label)) if allowed is None or value in allowed]
            found = [(*head, value) for head in found for value in values]
        return found

    def _pools(self, group: Sequence[Clip], wanted: Sequence[str], n_candidates: int) -> Pools:
        tests = [partial(_has, label, value) for label, value in zip(self.labels, wanted, strict=True)]
        return sort_out(group, tests, self._may_contrast, n_candidates)

    def _may_contrast(self, clip: Clip, index: int) -> bool:
        allowed = self.contrast.get(self.labels[index])
        return allowed is None or clip.values(self.labels[index]) <= set(allowed)

    def _draw(self, gold: Clip, wanted: tuple[str, ...], pools: Pools, rng: Random) -> Draw | None:
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
            cache: dict[tuple, Pools] = {}
            for gold in group:
                key = tuple(gold.values(label) for label in self.labels)
                if key not in cache:
                    cache[key] = self._pools(group, gold, n_candidates)
                pools = cache[key]
                if pools.quotas is not None and len(pools.right) > 1:
                    name = " + ".join("/".join(sorted(values)) for values in key)
                    starts.append(Start(gold, name, partial(self._draw, gold, pools)))
        return starts

    def shortage(self, clips: Iterable[Clip], n_candidates: int) -> str:
        """Why there is no item: what one needs, and the most that there is."""
        scope = self.in_scope(clips)
        if single := one_class(scope, self.labels):
            return single
        found = []
        for group in self.groups(scope).values():
            kinds = {tuple(clip.values(label) for label in self.labels): clip for clip in group}
            found += [self._pools(group, clip, n_candidates) for clip in kinds.values()]
        needs = f"2 clips with one {' and '.join(self.labels)} and {n_candidates - 1} with another"
        if self.other:
            needs += f", none with the {' or '.join(self.other)} of the first, which is the reference"
        return too_few(self, self.labels, needs, found, 2, n_candidates, len(scope))

    def _pools(self, group: Sequence[Clip], gold: Clip, n_candidates: int) -> Pools:
        tests = [partial(_agrees, label, gold.values(label)) for label in self.labels]
        return sort_out(group, tests, lambda clip, index: True, n_candidates)

    def _draw(self, gold: Clip, pools: Pools, rng: Random) -> Draw | None:
        others = pick([(pools.right, 1)], self.other, [gold], rng)
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


@plain_dataclass(frozen=True)
class Pools:
    """Clips that are right in every label, those that may be distractors, and how many to take from where.

    near: per label, the clips that are wrong in it alone. `quotas` is None where there are too few.
    """

    right: Sequence[Clip]
    wrong: Sequence[Clip]
    near: Sequence[Sequence[Clip]]
    quotas: Sequence[tuple[Sequence[Clip], int]] | None


def sort_out(
    group: Sequence[Clip],
    tests: Sequence[Callable[[Clip], bool | None]],
    may_contrast: Callable[[Clip, int], bool],
    n_candidates: int,
) -> Pools:
    """The Pools of `group` for one test per label: True it holds, False it clearly does not, None neither."""
    right, wrong = [], []
    near: list[list[Clip]] = [[] for _ in tests]
    for clip in group:
        held = [test(clip) for test in tests]
        failed = [index for index, value in enumerate(held) if value is False]
        if all(held):
            right.append(clip)
        elif failed and all(may_contrast(clip, index) for index in failed):
            wrong.append(clip)
            if len(failed) == 1 and all(held[i] for i in range(len(held)) if i != failed[0]):
                near[failed[0]].append(clip)
    quotas: list[tuple[Sequence[Clip], int]] = [(pool, 1) for pool in near] if len(tests) > 1 else []
    quotas.append((wrong, n_candidates - 1 - len(quotas)))
    enough = bool(right) and len(wrong) >= n_candidates - 1
    enough = enough and all(count >= 0 and len(pool) >= count for pool, count in quotas)
    return Pools(right, wrong, near, quotas if enough else None)


def pick_spread(
    pools: Sequence[tuple[Sequence[Clip], int]],
    spread: str | None,
    differ: Sequence[str],
    taken: Sequence[Clip],
    rng: Random,
) -> list[Clip] | None:
    """`pick`, with as many different values of the label `spread` among the clips as the pool has."""
    if spread is None:
        return pick(pools, differ, taken, rng)
    ((pool, count),) = pools
    by_value: dict[tuple[str, ...], list[Clip]] = {}
    for clip in rng.sample(pool, len(pool)):
        by_value.setdefault(tuple(sorted(clip.values(spread))), []).append(clip)
    chosen: list[Clip] = []
    while len(chosen) < count and any(by_value.values()):
        for same in rng.sample(list(by_value.values()), len(by_value)):
            if len(chosen) < count:
                chosen += _next_fitting(same, differ, [*taken, *chosen], rng)
    return chosen if len(chosen) == count else None


def _next_fitting(same: list[Clip], differ: Sequence[str], taken: Sequence[Clip], rng: Random) -> list[Clip]:
    """The next clip of `same` that fits beside `taken`, taken off the list with those that do not."""
    while same:
        found = pick([([same.pop()], 1)], differ, taken, rng)
        if found:
            return found
    return []


def _has(label: str, value: str, clip: Clip) -> bool:
    return value in clip.values(label)


def _agrees(label: str, values: frozenset[str], clip: Clip) -> bool | None:
    if clip.values(label) == values:
        return True
    return False if clip.values(label).isdisjoint(values) else None


def one_class(scope: Sequence[Clip], labels: Sequence[str]) -> str | None:
    """Says so where all clips have one and the same value of a label, so that nothing contrasts."""
    for label in labels:
        found = {clip.values(label) for clip in scope}
        if len(found) == 1:
            only = "/".join(sorted(found.pop()))
            clips_there = f"all {count_of(len(scope), 'usable clip')} have {only!r}"
            return f"one_class: needs at least two values of {label!r}; {clips_there}"
    return None


def too_few(
    task: Task,
    labels: Sequence[str],
    needs: str,
    found: Sequence[Pools],
    n_right: int,
    n_candidates: int,
    n_clips: int,
) -> str:
    """What an item needs and what the best of the `found` pools has."""

    def reached(pools: Pools) -> tuple[int, int]:
        there = min(len(pools.right), n_right) + min(len(pools.wrong), n_candidates - 1)
        return there, sum(bool(pool) for pool in pools.near)

    best = max(found, key=reached, default=Pools((), (), [() for _ in labels], None))
    shared = f", all of one {' and one '.join(task.same)}" if task.same else ""
    text = f"too_few_clips: needs {needs}{shared}; of {count_of(n_clips, 'usable clip')} "
    text += f"there are at best {len(best.right)} and {len(best.wrong)}"
    if len(labels) > 1:
        near = ", ".join(f"{label}: {len(pool)}" for label, pool in zip(labels, best.near, strict=True))
        text += f"; one clip must be wrong in each label alone, there are {near}"
    return text + (f"; candidates must differ in {' and '.join(task.differ)}" if task.differ else "")
