"""Batches that respect length, and each distinct thing once.

Padding makes a batch as dear as its longest member times its size, so texts are sorted by length and cut where that
product passes a token budget. Scores must not depend on the cuts; the tests of every metric check it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

# On a CPU a larger batch adds padding and leaves the caches; a GPU wants many tokens at once.
CPU_TOKENS, GPU_TOKENS = 512, 16384
# A written token reads every weight once, however many rows share the step.
CPU_TOKENS_WRITING = 4096


def token_budget(given: int | None, device: Any, writing: bool = False) -> int:
    """Padded tokens of one forward pass: what is `given`, or for None what suits the device.

    `writing`: the rows are continued token by token.
    """
    if given is not None:
        return given
    if str(device).partition(":")[0] != "cpu":
        return GPU_TOKENS
    return CPU_TOKENS_WRITING if writing else CPU_TOKENS


def token_batches(lengths: Sequence[int], budget: int) -> list[np.ndarray]:
    """Cut `lengths` [N] into index arrays, longest first, each of padded size (longest x rows) <= `budget`.

    A text longer than the budget stands alone. Longest first: the first batch shows whether memory suffices.
    """
    if budget < 1:
        raise ValueError(f"a token budget must be positive, not {budget}")
    sizes = np.maximum(np.asarray(lengths, dtype=np.int64), 1)
    order = np.argsort(-sizes, kind="stable")
    batches, start = [], 0
    while start < len(order):
        rows = max(1, budget // int(sizes[order[start]]))
        batches.append(order[start : start + rows])
        start += rows
    return batches


def distinct(values: Iterable[Hashable]) -> tuple[list[Any], np.ndarray]:
    """The distinct `values` in order of first appearance, and for each value its index among them."""
    seen: dict[Hashable, int] = {}
    inverse = [seen.setdefault(value, len(seen)) for value in values]
    return list(seen), np.asarray(inverse, dtype=np.int64)


class Memo:
    """Remembers the last `size` results by key, so that a thing met again in a later batch costs nothing."""

    def __init__(self, size: int = 65536) -> None:
        self._size = size
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self.computed = 0

    def get(self, keys: Sequence[Hashable], compute: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """Results for `keys`; `compute` is called once with the distinct keys that are not remembered."""
        wanted, inverse = distinct(keys)
        missing = [key for key in wanted if key not in self._kept]
        fresh = dict(zip(missing, compute(missing), strict=True)) if missing else {}
        self.computed += len(missing)
        results = [fresh[key] if key in fresh else self._kept[key] for key in wanted]
        for key, result in zip(wanted, results, strict=True):
            self._kept[key] = result
            self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return [results[index] for index in inverse]
