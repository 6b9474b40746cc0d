"""How many requests may be in flight: up by one per round of successes, halved when the server asks for patience.

Additive increase, multiplicative decrease (Chiu and Jain, 1989), as TCP does it. Only a 429 slows down: a 5xx says that a
request failed, not that there were too many.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Pace:
    """At most `most` requests in flight; `limit` is how many there may be now. It outlives event loops; its lock does not."""

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self.limit = float(self._most)
        self.in_flight = 0
        self._quiet_until = self._slowed = 0.0
        self._changed: asyncio.Condition | None = None

    def start(self) -> None:
        """Begin in a new event loop."""
        self._changed, self.in_flight = asyncio.Condition(), 0

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a free place and for the end of a pause; yields the moment at which the request is sent."""
        async with self._changed:
            while True:
                if (pause := self._quiet_until - time.monotonic()) > 0:
                    self._changed.release()
                    try:
                        await asyncio.sleep(pause)
                    finally:
                        await self._changed.acquire()
                elif self.in_flight >= int(self.limit):
                    await self._changed.wait()
                else:
                    break
            self.in_flight += 1
        try:
            yield time.monotonic()
        finally:
            async with self._changed:
                self.in_flight -= 1
                self._changed.notify_all()

    def speed_up(self) -> None:
        """After an answer: one more at a time, once for every `limit` answers."""
        self.limit = min(float(self._most), self.limit + 1.0 / self.limit)

    def slow_down(self, sent: float, seconds: float) -> None:
        """After a 429 to a request of the moment `sent`: nobody sends for `seconds`.

        Half as many from then on, but once per storm: what was in flight when the pace was halved does not halve it again.
        """
        now = time.monotonic()
        self._quiet_until = max(self._quiet_until, now + seconds)
        if sent >= self._slowed:
            self.limit, self._slowed = max(1.0, self.limit / 2), now
