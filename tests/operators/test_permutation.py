"""Orders of candidates: undone exactly, distinct, fair, computable alone, and free of copied audio."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.permutation import audio_order, fan_out, in_order, to_original_index


def item(n_clips: int, item_id: str = "q1") -> dict:
    return {"item_id": item_id, "audio_uris": [f"clip{i}.wav" for i in range(n_clips)], "gold_index": 0}


def orders(n_clips: int, n_trials: int, seed: int = 0, **options) -> list[tuple[int, ...]]:
    return [tuple(row["audio_order"]) for row in fan_out(item(n_clips), n_trials, seed, **options)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 8), st.integers(0, 2), st.integers(0, 30), st.integers(0, 99), st.text(max_size=5))
def test_undoing_a_permutation_is_the_identity(
    n: int, n_fixed: int, trial: int, seed: int, item_id: str
) -> None:
    clips = [f"clip{i}" for i in range(n_fixed + n)]
    order = fan_out(item(n_fixed + n, item_id), trial + 1, seed, n_fixed)[trial]["audio_order"]
    shown = in_order(clips, order, n_fixed)
    assert shown[:n_fixed] == clips[:n_fixed]
    assert [clips[n_fixed + to_original_index(order, at)] for at in range(n)] == shown[n_fixed:]
    assert sorted(to_original_index(order, at) for at in range(n)) == list(range(n))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_orders_are_distinct_until_all_have_come_up(n: int) -> None:
    drawn = orders(n, 2 * math.factorial(n))
    first, second = drawn[: math.factorial(n)], drawn[math.factorial(n) :]
    assert set(first) == set(second) == set(itertools.permutations(range(n)))
    assert len(set(first)) == len(first)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 40), st.integers(0, 99))
def test_each_clip_stands_in_each_position_equally_often(n: int, n_trials: int, seed: int) -> None:
    places = Counter((place, clip) for order in orders(n, n_trials, seed) for place, clip in enumerate(order))
    times = [places[pair] for pair in itertools.product(range(n), repeat=2)]
    assert max(times) - min(times) <= 1


def test_ten_trials_of_five_candidates_are_exactly_fair() -> None:
    places = Counter((place, clip) for order in orders(5, 10) for place, clip in enumerate(order))
    assert set(places.values()) == {2}


def test_a_row_can_be_computed_alone_and_more_trials_only_add_rows() -> None:
    ten = orders(5, 10, seed=7)
    assert ten == orders(5, 30, seed=7)[:10]
    assert ten[6] == tuple(audio_order("q1", 5, 6, seed=7))


def test_orders_depend_on_seed_and_item() -> None:
    assert orders(5, 10, seed=0) != orders(5, 10, seed=1)
    assert audio_order("q1", 5, 0, 0) != audio_order("q3", 5, 0, 0)


def test_the_first_trial_is_any_order_over_many_items() -> None:
    first = Counter(tuple(audio_order(f"q{i}", 3, 0, seed=0)) for i in range(3000))
    assert len(first) == 6
    # Expected 500 each, standard deviation sqrt(3000 * 1/6 * 5/6) = 20: within five of them.
    assert all(abs(times - 500) < 100 for times in first.values())


def test_orders_are_the_same_everywhere() -> None:
    # Stored responses depend on these: if they change, so does the meaning of a seed.
    assert orders(5, 3, seed=0) == [(2, 4, 1, 0, 3), (3, 2, 4, 1, 0), (0, 3, 2, 4, 1)]


def test_references_stay_first_and_are_not_counted() -> None:
    rows = fan_out(item(6), 10, 0, n_fixed=1)
    assert all(sorted(row["audio_order"]) == [0, 1, 2, 3, 4] for row in rows)
    assert in_order(item(6)["audio_uris"], [4, 3, 2, 1, 0], n_fixed=1) == [
        "clip0.wav", "clip5.wav", "clip4.wav", "clip3.wav", "clip2.wav", "clip1.wav",
    ]  # fmt: skip


def test_self_consistency_keeps_the_original_order() -> None:
    assert orders(4, 10, permute=False) == [(0, 1, 2, 3)] * 10


def test_rows_share_their_values_and_leave_the_item_alone() -> None:
    source = {**item(5), "audio": bytearray(1000)}
    before = dict(source)
    rows = fan_out(source, 10, 0)
    assert source == before
    assert [row["trial"] for row in rows] == list(range(10))
    assert all(row["audio"] is source["audio"] and row["audio_uris"] is source["audio_uris"] for row in rows)
    assert len({id(row["audio_order"]) for row in rows}) == 10


def test_an_unread_answer_stays_unread_and_a_bad_position_is_refused() -> None:
    assert to_original_index([2, 0, 1], 0) == 2
    assert to_original_index([2, 0, 1], None) is None
    for position in (-1, 3):
        with pytest.raises(ValueError, match="outside the 3 candidates"):
            to_original_index([2, 0, 1], position)
    with pytest.raises(ValueError, match="not a permutation"):
        to_original_index([2, 0, 2], 0)
    with pytest.raises(ValueError, match="does not fit"):
        in_order(["a", "b"], [0, 1], n_fixed=1)


def test_impossible_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="n_trials"):
        fan_out(item(3), 0, 0)
    with pytest.raises(ValueError, match="'q1' has 1 clips"):
        fan_out(item(1), 1, 0, n_fixed=2)
