"""Orders of the candidate clips for Audio-Permutational Self-Consistency (MUGEN section 5.1).

A fanned-out row carries `trial` and `audio_order` and no audio: clips are decoded later, once each. *Our
reading* of "randomly permute": random, but fair. The orders of one item are distinct for as long as there are
orders left, and in every n trials (n candidates) each clip stands in each position once; five candidates in
ten trials meet every position twice. Trial 0 is no exception: the original order is one of the n! and comes
up like any other. Plain self-consistency keeps the original order throughout (`permute=False`).

How: the n! orders fall into (n - 1)! families of n rotations of one order, and a family is fair by itself. An
item walks through the families from a random start by a random stride that shares no factor with their
number, hence meets none twice before it has met all; the rotations of each come shuffled. Every choice is a
hash of the seed, the item's id and the place in the walk, so the row of any trial can be computed alone, and
more trials only add rows.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any


def fan_out(
    item: dict[str, Any], n_trials: int, seed: int, n_fixed: int = 0, permute: bool = True
) -> list[dict[str, Any]]:
    """The row of `item` once per trial, with `trial` (0, 1, ...) and `audio_order` added; the rest is shared.

    item: needs `item_id` and `audio_uris`, whose first `n_fixed` clips are references: they stay where they
    are and are not part of `audio_order`, which lists the original index of the candidate (counted without
    the references) at each position.

    Raises ValueError for fewer than 1 trial or fewer clips than references, KeyError for an item without
    those columns.
    """
    if n_trials < 1:
        raise ValueError(f"n_trials must be at least 1, got {n_trials}")
    clips = len(item["audio_uris"])
    if not 0 <= n_fixed <= clips:
        raise ValueError(
            f"item {item['item_id']!r} has {clips} clips, too few for n_fixed={n_fixed} references"
        )
    n = clips - n_fixed
    orders = (
        audio_order(item["item_id"], n, trial, seed) if permute else list(range(n))
        for trial in range(n_trials)
    )
    return [{**item, "trial": trial, "audio_order": order} for trial, order in enumerate(orders)]


def audio_order(item_id: str, n_candidates: int, trial: int, seed: int) -> list[int]:
    """The order of one trial: at each position, the original index of the candidate that is heard there."""
    if n_candidates < 2:
        return list(range(n_candidates))
    lap, step = divmod(trial, n_candidates)
    families = math.factorial(n_candidates - 1)
    start = _draw(seed, item_id, "start") % families
    stride = _coprime(families, seed, item_id)
    base = [0, *(1 + index for index in _nth_order((start + lap * stride) % families, n_candidates - 1))]
    shuffled = sorted(
        range(n_candidates), key=lambda rotation: _draw(seed, item_id, "rotation", lap, rotation)
    )
    return base[shuffled[step] :] + base[: shuffled[step]]


def to_original_index(audio_order: Sequence[int], position: int | None) -> int | None:
    """The original index of the candidate that was chosen at `position` (0-based); None stays None.

    Raises ValueError where there is no such position (negative ones included) or `audio_order` is no
    permutation.
    """
    if sorted(audio_order) != list(range(len(audio_order))):
        raise ValueError(f"audio_order {list(audio_order)} is not a permutation of 0..{len(audio_order) - 1}")
    if position is None:
        return None
    if not 0 <= position < len(audio_order):
        raise ValueError(f"position {position} is outside the {len(audio_order)} candidates")
    return int(audio_order[position])


def in_order(clips: Sequence[Any], audio_order: Sequence[int], n_fixed: int = 0) -> list[Any]:
    """The clips (or their locators, hashes) as a trial presents them: references, then candidates.

    Raises ValueError where `audio_order` does not fit the number of clips.
    """
    if sorted(audio_order) != list(range(len(clips) - n_fixed)):
        raise ValueError(
            f"audio_order {list(audio_order)} does not fit {len(clips)} clips with {n_fixed} references"
        )
    return [*clips[:n_fixed], *(clips[n_fixed + index] for index in audio_order)]


def _draw(*parts: object) -> int:
    """A number below 2^128 that depends on the parts alone: the same on every machine and Python."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


def _coprime(number: int, seed: int, item_id: str) -> int:
    stride = _draw(seed, item_id, "stride") % number
    while math.gcd(stride, number) != 1:
        stride += 1
    return stride


def _nth_order(index: int, n: int) -> list[int]:
    """The permutation of 0..n-1 with this index (0 <= index < n!) in lexicographic order."""
    left, order = list(range(n)), []
    for place in range(n, 0, -1):
        pick, index = divmod(index, math.factorial(place - 1))
        order.append(left.pop(pick))
    return order
