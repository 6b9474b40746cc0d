"""Does a model prefer a position? (MUGEN section 5; the bias that permuting the candidates averages out.)"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class PositionBias(NamedTuple):
    """Per position from the first: how often it was chosen, how often chance would, how often it held the right clip,
    and how often it was then chosen; with a chi-square test of the choices against chance over `n_items` items."""

    chosen: list[int]
    expected: list[float]
    gold: list[int]
    correct: list[int]
    chi_square: float
    degrees: int
    p: float
    n_items: int

    @property
    def accuracy_by_gold(self) -> list[float]:
        """Accuracy where the right clip stands at each position, over readable trials; NaN where it never does."""
        return [k / n if n else float("nan") for k, n in zip(self.correct, self.gold, strict=True)]


def position_bias(
    chosen: Sequence[int], gold: Sequence[int], n_presented: Sequence[int], items: Sequence[Hashable]
) -> PositionBias:
    """chosen, gold: positions (from 0) in each readable trial; n_presented: how many candidates it had; items: whose it is.

    *Our reading*: chance puts 1 / n on each of a trial's n positions. That is fair where gold positions are balanced,
    as permuted trials make them; in the original order compare with `gold`. Trials of an item are not independent:
    `clustered_chi_square` counts items. chi_square and p are NaN without trials.

    Raises ValueError for a position that was not presented.
    """
    picked, held, sizes = (np.asarray(values, dtype=np.int64) for values in (chosen, gold, n_presented))
    if len({len(picked), len(held), len(sizes), len(items)}) > 1:
        raise ValueError("chosen, gold, n_presented and items need one entry per trial")
    if len(picked) and (min(picked.min(), held.min()) < 0 or (np.maximum(picked, held) >= sizes).any()):
        raise ValueError("a position was chosen, or held the right clip, that was not presented")
    width = int(sizes.max(initial=0))
    codes = {key: place for place, key in enumerate(dict.fromkeys(zip(items, sizes.tolist(), strict=True)))}
    counts = np.zeros((len(codes), width), dtype=np.int64)
    np.add.at(counts, ([codes[key] for key in zip(items, sizes.tolist(), strict=True)], picked), 1)
    return PositionBias(
        counts.sum(axis=0).tolist(),
        [float((1 / sizes[sizes > place]).sum()) for place in range(width)],
        np.bincount(held, minlength=width).tolist(),
        np.bincount(held[picked == held], minlength=width).tolist(),
        *clustered_chi_square(counts, np.array([size for _, size in codes], dtype=np.int64)),
        len(set(items)),
    )


def clustered_chi_square(counts: np.ndarray, sizes: np.ndarray) -> tuple[float, int, float]:
    """Chi-square, its degrees of freedom and p, of position counts [items, positions] against chance; item i has
    positions 0 .. sizes[i] - 1.

    Chance is that an item may favour any of its positions, but none rather than another: its counts in any order are
    equally likely. Then item i's n_i choices have mean n_i / s_i at each of its s_i positions and covariance c_i (I - 1 /
    s_i), c_i = sum_j (n_ij - n_i / s_i)^2 / (s_i - 1), and with r = sum over items of counts - means and V the summed
    covariance r' V^-1 r tends to chi-square, however trials of one item depend on one another (Cochran's Q for
    counts). One trial per item gives Pearson's chi-square; ten equal trials of each item give what one gives.

    The number of items makes it hold, not that of trials; rough for fewer than about 20. (nan, 0, nan) without
    positions to choose among; (0, degrees, 1) where all items are even.
    """
    from scipy.stats import chi2

    width = counts.shape[1]
    if width < 2 or not counts.sum():
        return float("nan"), max(0, width - 1), float("nan")
    presented = np.arange(width) < sizes[:, None]
    apart = np.where(presented, counts - counts.sum(axis=1, keepdims=True) / sizes[:, None], 0.0)
    spread = (apart**2).sum(axis=1) / np.maximum(sizes - 1, 1)
    covariance = np.zeros((width, width))
    for size in np.unique(sizes):
        covariance[:size, :size] += spread[sizes == size].sum() * (np.eye(size) - 1 / size)
    total = apart.sum(axis=0)
    value = float(total @ np.linalg.pinv(covariance, hermitian=True) @ total)
    return value, width - 1, float(chi2.sf(value, width - 1))


class Readable(NamedTuple):
    """Of every readable trial: the chosen position, the one that held the right clip, how many there were, and whose it is."""

    chosen: list[int]
    gold: list[int]
    n_presented: list[int]
    items: list[Hashable]


def readable(trials: Mapping[Hashable, Sequence[Mapping[str, Any]]]) -> Readable:
    """The readable ones among the `trials` of each item."""
    read = [
        (row["option_position"], row["gold_position"], len(row["audio_order"]), item)
        for item, rows in trials.items()
        for row in rows
        if row["option_position"] is not None
    ]
    return Readable(*map(list, zip(*read, strict=True))) if read else Readable([], [], [], [])


def of_trials(trials: Mapping[Hashable, Sequence[Mapping[str, Any]]]) -> PositionBias:
    """Position bias of the readable ones among the `trials` of each item."""
    return position_bias(*readable(trials))
