"""Number, mean and spread of values that come in portions: what a mean over more items than fit into memory needs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Moments(NamedTuple):
    """n values: their mean, and the sum of their squared distances from it. Of no values both are 0.

    Adding two is exact in exact arithmetic (Chan, Golub and LeVeque 1979), and loses no digits to large means.
    """

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0

    @classmethod
    def of(cls, values: np.ndarray) -> Moments:
        if not len(values):
            return cls()
        mean = float(values.mean())
        return cls(len(values), mean, float(((values - mean) ** 2).sum()))

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        if not (self.n and other.n):
            return self if self.n else other
        n, apart = self.n + other.n, other.mean - self.mean
        mean = (self.n * self.mean + other.n * other.mean) / n
        return Moments(n, mean, self.squares + other.squares + apart**2 * self.n * other.n / n)

    @property
    def sd(self) -> float:
        """Of a sample: divided by n - 1; NaN for fewer than two values."""
        return (self.squares / (self.n - 1)) ** 0.5 if self.n > 1 else float("nan")
