"""One account of who computes what, for all the copies of a run's steps. Needs no ray: execution.py makes it an actor.

Every copy of a step has its own worker. A worker claims the units that nobody has claimed and settles them with their
results, or gives them back. A worker that died held claims that nobody will settle: its successor drops them first, and
where none comes (its node is gone, the others have all cards) they are free after a while. Nobody waits while holding
claims, so nobody waits for ever.
"""

from __future__ import annotations

import copy
import time
from collections import defaultdict
from collections.abc import Hashable
from typing import Any

from operators.batching import KEPT

# Seconds after which a claim is anybody's. A worker that is only slower than this has its units computed twice.
ABANDONED_AFTER = 600.0


class Account:
    """Results by memo ("m2.texts") and unit, and open claims with the worker that holds each, and since when.

    The last `size` results of each memo are kept, as a worker keeps its own; one that is gone is computed again.
    """

    def __init__(self, size: int = KEPT, abandoned_after: float = ABANDONED_AFTER) -> None:
        self._size, self._abandoned_after = size, abandoned_after
        self._known: dict[str, dict[Hashable, Any]] = defaultdict(dict)
        self._claims: dict[str, dict[Hashable, tuple[str, float]]] = defaultdict(dict)

    def claim(
        self, worker: str, memo: str, units: list[Hashable]
    ) -> tuple[dict[Hashable, Any], list[Hashable]]:
        """What is known of `units`, and those that are now `worker`'s to compute; the rest is somebody else's.

        A claim made again, because its answer was lost on the way, is granted again.
        """
        known, claims, now = self._known[memo], self._claims[memo], time.monotonic()

        def is_free(unit: Hashable) -> bool:
            holder, since = claims.get(unit, (worker, now))
            return holder == worker or now - since >= self._abandoned_after

        found = {unit: known[unit] for unit in units if unit in known}
        mine = [unit for unit in units if unit not in known and is_free(unit)]
        claims.update(dict.fromkeys(mine, (worker, now)))
        return found, mine

    def settle(self, memo: str, results: dict[Hashable, Any], given_back: list[Hashable]) -> None:
        """Close the claims on both: `results` are known from now on, `given_back` is free to be claimed."""
        known = self._known[memo]
        # A copy, because an array that came with a large message would keep the whole message in Ray's object store.
        known.update(copy.deepcopy(results))
        for unit in (*results, *given_back):
            self._claims[memo].pop(unit, None)
        while len(known) > self._size:
            del known[next(iter(known))]

    def drop(self, worker: str) -> None:
        """Free what `worker` has claimed."""
        for memo, claims in self._claims.items():
            self._claims[memo] = {unit: claim for unit, claim in claims.items() if claim[0] != worker}
