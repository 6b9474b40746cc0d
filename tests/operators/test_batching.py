import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.batching import (
    CPU_TOKENS,
    CPU_TOKENS_WRITING,
    GPU_TOKENS,
    Memo,
    Units,
    distinct,
    token_batches,
    token_budget,
)


@given(st.lists(st.integers(0, 300), max_size=60), st.integers(1, 500))
def test_token_batches_cover_every_text_once_and_keep_the_budget(lengths, budget):
    batches = token_batches(lengths, budget)
    assert sorted(np.concatenate([*batches, np.array([], int)]).tolist()) == list(range(len(lengths)))
    for batch in batches:
        padded = max(max(lengths[i], 1) for i in batch) * len(batch)
        assert padded <= budget or len(batch) == 1


def test_token_batches_group_like_lengths():
    # budget 100: 50 alone would fit twice -> [50, 40] (2 x 50 = 100), then [10, 9, 8] (3 x 10 <= 100)
    assert [b.tolist() for b in token_batches([10, 50, 9, 40, 8], 100)] == [[1, 3], [0, 2, 4]]


def test_token_batches_refuse_a_budget_of_nothing():
    with pytest.raises(ValueError, match="budget"):
        token_batches([1], 0)


@given(st.lists(st.text(max_size=3)))
def test_distinct_can_be_undone(values):
    unique, inverse = distinct(values)
    assert len(set(unique)) == len(unique)
    assert [unique[i] for i in inverse] == values


def test_memo_computes_each_key_once_even_when_it_forgets():
    asked = []

    def double(keys):
        asked.append(list(keys))
        return [2 * key for key in keys]

    units = Units()
    with units.at_hand():
        memo = Memo(size=2)
    assert memo.get([1, 2, 1, 3], double) == [2, 4, 2, 6]
    assert asked == [[1, 2, 3]]
    assert memo.get([3, 2], double) == [6, 4] and len(asked) == 1
    assert memo.get([1], double) == [2] and asked[-1] == [1], "size 2 keeps the two last used"
    assert units.report() == {"units": 4}


def test_a_memo_does_not_keep_what_has_no_result():
    memo = Memo()
    assert memo.get(["a"], lambda keys: [None]) == [None]
    assert memo.get(["a"], lambda keys: [1]) == [1]


def test_two_memos_of_one_step_need_two_names():
    with Units().at_hand():
        Memo("texts"), Memo("clips")
        with pytest.raises(ValueError, match="'texts'"):
            Memo("texts")


def test_a_budget_that_nobody_gave_suits_the_device():
    assert token_budget(None, "cpu") == token_budget(None, "cpu:0") == CPU_TOKENS
    assert token_budget(None, "cuda:1") == token_budget(None, "cuda", writing=True) == GPU_TOKENS
    assert token_budget(None, "cpu", writing=True) == CPU_TOKENS_WRITING
    assert token_budget(7, "cpu") == token_budget(7, "cuda", writing=True) == 7


def test_large_results_stay_with_the_copy_that_made_them():
    class Refusing:
        def claim(self, memo, keys):
            raise AssertionError("nothing is asked of the other copies")

        settle = claim

    units = Units(Refusing())
    with units.at_hand():
        memo = Memo("decoded", size=2, shared=False)
    assert memo.get([1, 2, 3, 1], lambda keys: [10 * key for key in keys]) == [10, 20, 30, 10]
    assert memo.get([1, 3], lambda keys: [-key for key in keys]) == [-1, 30], "the two last are kept"
    assert units.report() == {"decoded": 4}
