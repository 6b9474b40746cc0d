"""From a task and clips to items: starts in turn, distractors at random, the same for the same seed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from random import Random

from operators.construction.clips import Clip
from operators.construction.matching import LikeReference, Match
from operators.construction.ranking import Rank
from operators.construction.tasks import Draw, Start

AnyTask = Match | LikeReference | Rank


def generator(seed: int, *names: str) -> Random:
    """A random generator of its own for every task, so that adding a task leaves the others as they are."""
    digest = hashlib.sha256("\n".join((str(seed), *names)).encode()).digest()
    return Random(int.from_bytes(digest[:16], "big"))


def draw_items(
    task: AnyTask, clips: Sequence[Clip], count: int, n_candidates: int, gold_uses: int, rng: Random
) -> list[Draw]:
    """Up to `count` items with different sets of clips.

    What is asked for is balanced over its values. A clip is the right option a second time only when every
    other that could be has been, and at most `gold_uses` times in all for one value.
    """
    ordered = sorted(clips, key=lambda clip: (clip.corpus, clip.name, clip.hash))
    starts = task.starts(ordered, n_candidates)
    drawn: list[Draw] = []
    seen: set[frozenset[str]] = set()
    for _ in range(gold_uses):
        before = len(drawn)
        for start in _in_turn(starts, rng):
            if len(drawn) == count:
                return drawn
            found = start.draw(rng)
            if found and (content := _content(found)) not in seen:
                seen.add(content)
                drawn.append(found)
        if len(drawn) == before:
            break
    return drawn


def _content(draw: Draw) -> frozenset[str]:
    reference = [f"reference {draw.reference.hash}"] if draw.reference else []
    return frozenset([*(clip.hash for clip in draw.candidates), *reference, draw.question])


def _in_turn(starts: Sequence[Start], rng: Random) -> Iterator[Start]:
    """All starts, shuffled, one key after the other as long as they last."""
    by_key: dict[str, list[Start]] = {}
    for start in rng.sample(starts, len(starts)):
        by_key.setdefault(start.key, []).append(start)
    while by_key:
        for key in list(by_key):
            yield by_key[key].pop()
            if not by_key[key]:
                del by_key[key]
