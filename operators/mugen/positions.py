"""Does a model prefer a position? (MUGEN section 5; the bias that permuting the candidates averages out.)"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np


class PositionBias(NamedTuple):
    """Per position from the first: how often it was chosen, how often chance would, how often it held the right clip,
    and how often it was then chosen; with a chi-square test of the choices against chance."""

    chosen: list[int]
    expected: list[float]
    gold: list[int]
    correct: list[int]
    chi_square: float
    degrees: int
    p: float

    @property
    def accuracy_by_gold(self) -> list[float]:
        """Accuracy where the right clip stands at each position, over readable trials; NaN where it never does."""
        return [k / n if n else float("nan") for k, n in zip(self.correct, self.gold, strict=True)]


def position_bias(chosen: Sequence[int], gold: Sequence[int], n_presented: Sequence[int]) -> PositionBias:
    """chosen, gold: positions (from 0) in each readable trial; n_presented: how many candidates it had.

    *Our reading*: chance puts 1 / n on each of a trial's n positions. That is fair where gold positions are balanced,
    as permuted trials make them; in the original order compare with `gold`. The trials of an item are not independent,
    so p is too small where many are counted: read it with the histogram. chi_square and p are NaN without trials.

    Raises ValueError for a position that was not presented.
    """
    picked, held, sizes = (np.asarray(values, dtype=np.int64) for values in (chosen, gold, n_presented))
    if len({len(picked), len(held), len(sizes)}) > 1:
        raise ValueError("chosen, gold and n_presented need one entry per trial")
    if len(picked) and (min(picked.min(), held.min()) < 0 or (np.maximum(picked, held) >= sizes).any()):
        raise ValueError("a position was chosen, or held the right clip, that was not presented")
    width = int(sizes.max(initial=0))
    counts = np.bincount(picked, minlength=width)
    expected = np.array([(1 / sizes[sizes > place]).sum() for place in range(width)])
    test = (float("nan"), float("nan"))
    if len(picked):
        from scipy.stats import chisquare

        test = chisquare(counts, expected)
    return PositionBias(
        counts.tolist(),
        expected.tolist(),
        np.bincount(held, minlength=width).tolist(),
        np.bincount(held[picked == held], minlength=width).tolist(),
        float(test[0]),
        max(0, width - 1),
        float(test[1]),
    )


def of_trials(trials: Iterable[Mapping[str, Any]]) -> PositionBias:
    """Position bias of the readable ones among `trials`."""
    read = [row for row in trials if row["option_position"] is not None]
    return position_bias(
        [row["option_position"] for row in read],
        [row["gold_position"] for row in read],
        [len(row["audio_order"]) for row in read],
    )
