"""One account of who computes what, for all the copies of a run's steps. Needs no ray: execution.py makes it an actor.

Every copy of a step has its own worker. A worker claims the units that nobody has claimed and settles them with their
results, or gives them back. A worker that died held claims that nobody will settle: its successor drops them first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import Any


class Account:
    """Results by memo ("m2.texts") and unit, and open claims with the worker that holds each."""

    def __init__(self) -> None:
        self._known: dict[str, dict[Hashable, Any]] = defaultdict(dict)
        self._claims: dict[str, dict[Hashable, str]] = defaultdict(dict)

    def claim(
        self, worker: str, memo: str, units: list[Hashable]
    ) -> tuple[dict[Hashable, Any], list[Hashable]]:
        """What is known of `units`, and those that are now `worker`'s to compute; the rest is somebody else's."""
        known, claims = self._known[memo], self._claims[memo]
        found = {unit: known[unit] for unit in units if unit in known}
        mine = [unit for unit in units if unit not in known and unit not in claims]
        claims.update(dict.fromkeys(mine, worker))
        return found, mine

    def settle(self, memo: str, results: dict[Hashable, Any], given_back: list[Hashable]) -> None:
        """Close the claims on both: `results` are known from now on, `given_back` is free to be claimed."""
        self._known[memo].update(results)
        for unit in (*results, *given_back):
            self._claims[memo].pop(unit, None)

    def drop(self, worker: str | None = None) -> None:
        """Free what `worker` has claimed (None: what anybody has)."""
        for memo, claims in self._claims.items():
            kept = {} if worker is None else {unit: who for unit, who in claims.items() if who != worker}
            self._claims[memo] = kept
