"""Which clips of a group are right for what is asked, which contrast with it, and how distractors are picked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from operators.construction.clips import Clip
from operators.construction.tasks import Task, count_of, pick

DIAGNOSED = 500


@dataclass(frozen=True)
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


class Kinds:
    """How many clips have which values, to tell cheaply what cannot be asked for.

    kinds: per clip, the tuples of values (one per label) that it has.
    """

    def __init__(self, kinds: Iterable[Iterable[tuple[Hashable, ...]]]) -> None:
        self._whole: Counter[tuple] = Counter()
        self._but_one: Counter[tuple] = Counter()
        for of_clip in kinds:
            tuples = set(of_clip)
            self._whole.update(tuples)
            self._but_one.update({rest for kind in tuples for rest in _rests(kind)})

    def plausible(self, kind: tuple[Hashable, ...], n_right: int) -> bool:
        """False only where there are fewer than `n_right` clips of the kind, or a label without a near miss."""
        there = self._whole[kind]
        return there >= n_right and (
            len(kind) == 1 or all(self._but_one[rest] > there for rest in _rests(kind))
        )


def _rests(kind: tuple[Hashable, ...]) -> list[tuple]:
    """`kind` without each of its values in turn, and the place that is left empty."""
    return [(i, *kind[:i], *kind[i + 1 :]) for i in range(len(kind))]


def commonest(kinds: Iterable[tuple]) -> list[tuple]:
    """The kinds that most clips have, at most DIAGNOSED of them: where a shortage is least."""
    return [kind for kind, _ in Counter(kinds).most_common(DIAGNOSED)]


def one_class(scope: Sequence[Clip], labels: Sequence[str]) -> str | None:
    """Says so where all clips have one and the same value of a label, so that nothing contrasts."""
    for label in labels:
        found = {clip.values(label) for clip in scope}
        if len(found) == 1:
            only = "/".join(sorted(found.pop()))
            clips_there = f"all {count_of(len(scope), 'usable clip')} have {only!r}"
            return f"one_class: needs at least two values of {label!r}; {clips_there}"
    return None


def apart(task: Task, n_candidates: int) -> str:
    """What else the candidates of an item need."""
    if not task.differ:
        return ""
    return f"; candidates must differ in {' and '.join(task.differ)}: an item needs {n_candidates} values of each"


def too_few(
    task: Task,
    labels: Sequence[str],
    needs: str,
    found: Iterable[Pools],
    n_right: int,
    n_candidates: int,
    n_clips: int,
) -> str:
    """What an item needs and what the best of the `found` pools has."""
    if len(labels) > n_candidates - 1:
        return (
            f"too_few_candidates: one distractor must be wrong in each of {' and '.join(labels)} alone, so an item needs at "
            f"least {len(labels) + 1} candidates; n_candidates is {n_candidates}"
        )

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
    return text + apart(task, n_candidates)
