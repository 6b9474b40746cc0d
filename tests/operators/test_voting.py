"""Votes: the most frequent option, ties by first vote in trial order, unread trials without a voice."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.voting import Vote, majority

ballots = st.lists(st.one_of(st.none(), st.integers(0, 4)), max_size=12)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([2, 1, 2], Vote(2, False, 3, 0)),
        ([0], Vote(0, False, 1, 0)),
        ([3, 1], Vote(3, True, 2, 0)),
        # Both have two votes; 1 was voted for first, although 0 is the first to have both of its votes.
        ([1, 0, 0, 1], Vote(1, True, 4, 0)),
        ([None, 0, 1, 1], Vote(1, False, 3, 1)),
        ([None, 4, 2, None], Vote(4, True, 2, 2)),
        ([4, 1, 1, 0, 0], Vote(1, True, 5, 0)),
        ([None, None], Vote(None, False, 0, 2)),
        ([], Vote(None, False, 0, 0)),
    ],
)
def test_votes_by_hand(votes: list[int | None], expected: Vote) -> None:
    assert majority(votes) == expected


def test_columns_of_a_data_frame_are_understood() -> None:
    assert majority(np.array([1.0, math.nan, 1.0])) == Vote(1, False, 2, 1)
    assert majority(np.array([3, 3, 0])) == Vote(3, False, 3, 0)
    assert type(majority(np.array([3, 3, 0])).index) is int


@settings(max_examples=100, deadline=None)
@given(ballots, st.randoms())
def test_the_order_of_rows_does_not_matter_where_trials_are_named(votes: list, random) -> None:
    rows = list(enumerate(votes))
    random.shuffle(rows)
    assert majority([vote for _, vote in rows], trials=[trial for trial, _ in rows]) == majority(votes)


@settings(max_examples=100, deadline=None)
@given(ballots, st.permutations(range(5)))
def test_renaming_the_options_renames_the_winner(votes: list, names: list[int]) -> None:
    renamed = majority([None if vote is None else names[vote] for vote in votes])
    expected = majority(votes)
    assert renamed == expected._replace(index=None if expected.index is None else names[expected.index])


@settings(max_examples=100, deadline=None)
@given(ballots)
def test_nobody_has_more_votes_than_the_winner(votes: list) -> None:
    vote, counts = majority(votes), Counter(v for v in votes if v is not None)
    assert vote.n_votes + vote.n_unparsed == len(votes)
    assert (vote.index is None) == (not counts)
    if counts:
        best = max(counts.values())
        assert counts[vote.index] == best
        assert vote.tie == (list(counts.values()).count(best) > 1)


@pytest.mark.parametrize("bad", [-1, 0.5, "A", True, math.inf])
def test_what_is_no_index_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="index of a choice"):
        majority([0, bad])


@pytest.mark.parametrize("trials", [[0], [0, 0]])
def test_trial_numbers_are_checked(trials: list[int]) -> None:
    with pytest.raises(ValueError, match="trial number"):
        majority([1, 2], trials)
