"""Majority voting over the trials of one item (MUGEN section 5.1, self-consistency)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple


class Vote(NamedTuple):
    """The winner (None if nobody voted), whether it was a tie, how many voted and how many could not."""

    index: int | None
    tie: bool
    n_votes: int
    n_unparsed: int


def majority(votes: Sequence[int | float | None], trials: Sequence[int] | None = None) -> Vote:
    """The option with most votes; the paper does not say what breaks a tie.

    votes: original choice index per trial (for permuted audio, mapped back first); None or NaN = no answer
    was read from that trial: it does not vote. `trials`: the trial number of each vote, if they are not in
    trial order. *Our reading*: among options with equally many votes the one that was voted for first in
    trial order wins, and `tie` records that it was so. With all trials unparsed there is no winner and no
    tie: nothing is ever guessed.

    Raises ValueError for a vote that is no index, or for trial numbers that repeat or do not match the votes.
    """
    if trials is not None:
        if len(trials) != len(votes) or len(set(trials)) != len(trials):
            raise ValueError(
                f"expected a trial number of its own for each of {len(votes)} votes, got {list(trials)}"
            )
        votes = [vote for _, vote in sorted(zip(trials, votes, strict=True), key=lambda pair: pair[0])]
    # A Counter keeps its keys in the order of their first vote, and `max` returns the first of equals.
    counts = Counter(_index(vote) for vote in votes)
    n_unparsed = counts.pop(None, 0)
    if not counts:
        return Vote(None, False, 0, n_unparsed)
    winner = max(counts, key=lambda option: counts[option])
    tie = sum(count == counts[winner] for count in counts.values()) > 1
    return Vote(winner, tie, counts.total(), n_unparsed)


def _index(vote: int | float | None) -> int | None:
    """Index columns with gaps come back from a data frame as floats with NaN."""
    if vote is None or (isinstance(vote, float) and math.isnan(vote)):
        return None
    if isinstance(vote, bool) or not isinstance(vote, Real) or not float(vote).is_integer() or vote < 0:
        raise ValueError(f"a vote is the index of a choice (0, 1, ...) or None, got {vote!r}")
    return int(vote)
