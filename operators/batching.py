"""Batches that respect length, and each distinct thing once.

Padding makes a batch as dear as its longest member times its size, so texts are sorted by length and cut where that
product passes a token budget. Scores must not depend on the cuts; the tests of every metric check it.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

# On a CPU a larger batch adds padding and leaves the caches; a GPU wants many tokens at once.
CPU_TOKENS, GPU_TOKENS = 512, 16384
# A written token reads every weight once, however many rows share the step.
CPU_TOKENS_WRITING = 4096
# Results of one memo that are remembered: enough for every run short of a million texts.
KEPT = 1 << 20
# Seconds between two looks at what another copy of the step is computing.
SHORTEST_PAUSE, LONGEST_PAUSE = 0.005, 0.5


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


class Ledger(Protocol):
    """Where the copies of one step meet, so that each thing is computed by one of them alone."""

    def claim(self, memo: str, keys: list[Hashable]) -> tuple[dict[Hashable, Any], list[Hashable]]:
        """What is known of `keys`, and those that the caller shall compute; the others are being computed."""

    def settle(self, memo: str, results: dict[Hashable, Any], given_back: list[Hashable]) -> None:
        """The results of claimed keys, and the keys that have none and are free again."""


@dataclass
class Units:
    """What one copy of a step encodes: how many units its memos computed, and the ledger that its copies share."""

    ledger: Ledger | None = None
    encoded: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        """Every Memo that is made in here counts its work here and asks the ledger."""
        token = _AT_HAND.set(self)
        try:
            yield
        finally:
            _AT_HAND.reset(token)

    def join(self, memo: str) -> None:
        """Raises ValueError for a second memo of one name: they would read each other's results."""
        if memo in self.encoded:
            raise ValueError(f"two memos of one step are called {memo!r}")
        self.encoded[memo] = 0

    def report(self) -> dict[str, int]:
        """Units encoded since the last report, by memo."""
        counts = dict(self.encoded)
        self.encoded.update(dict.fromkeys(counts, 0))
        return counts


_AT_HAND: ContextVar[Units | None] = ContextVar("units", default=None)


class Memo:
    """Results by key: a thing met again, in this batch, a later one or a copy of the step, is not computed again.

    `name` says what its keys are ("clips"). The last `size` results are kept. None means that there is no result; it is
    not kept. `shared` False: every copy of the step has its own, for results that are larger than the work they save, such
    as waveforms. `compute` must not ask another shared memo: a copy that waits while others wait for it may wait for ever.
    """

    def __init__(self, name: str = "units", size: int = KEPT, shared: bool = True) -> None:
        self._name, self._size, self._shared = name, size, shared
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self._units = _AT_HAND.get() or Units()
        self._units.join(name)

    def get(self, keys: Sequence[Hashable], compute: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """Results for `keys`; `compute` is called with distinct keys that nobody has a result for yet."""
        wanted, inverse = distinct(keys)
        missing = [key for key in wanted if key not in self._kept]
        ask = self._find if self._units.ledger and self._shared else self._compute
        fresh = ask(missing, compute)
        results = [fresh[key] if key in fresh else self._kept[key] for key in wanted]
        for key, result in zip(wanted, results, strict=True):
            if result is not None:
                self._kept[key] = result
                self._kept.move_to_end(key)
        while len(self._kept) > self._size:
            self._kept.popitem(last=False)
        return [results[index] for index in inverse]

    def _compute(self, keys: list[Hashable], compute: Callable[[list[Any]], Sequence[Any]]) -> dict:
        fresh = dict(zip(keys, compute(keys), strict=True)) if keys else {}
        self._units.encoded[self._name] += sum(result is not None for result in fresh.values())
        return fresh

    def _find(self, keys: list[Hashable], compute: Callable[[list[Any]], Sequence[Any]]) -> dict:
        """Compute what no copy has claimed, then wait for what the others compute."""
        ledger, found, pause = self._units.ledger, {}, SHORTEST_PAUSE
        while left := [key for key in keys if key not in found]:
            known, mine = ledger.claim(self._name, left)
            found |= known
            if mine:
                fresh: dict[Hashable, Any] = {}
                try:
                    fresh = self._compute(mine, compute)
                finally:  # an error of one unit must not keep the other copies waiting
                    good = {key: result for key, result in fresh.items() if result is not None}
                    ledger.settle(self._name, good, [key for key in mine if key not in good])
                found |= fresh
            elif not known:
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
        return found
