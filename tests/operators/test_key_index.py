import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from operators.key_index import KeyIndex, first_of_each

KEYS = st.lists(st.none() | st.sampled_from("abcdefgh"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(KEYS, st.lists(st.sampled_from("abcdefghxyz"), max_size=20))
def test_an_index_answers_as_a_dictionary_would(keys, asked):
    index = KeyIndex(keys)
    known = {key: place for place, key in enumerate(sorted({key for key in keys if key}))}
    assert len(index) == len(known)
    assert index.rows.tolist() == [known.get(key, -1) for key in keys]
    assert index.places(pa.chunked_array([asked], pa.string())).tolist() == [
        known.get(key, -1) for key in asked
    ]


def test_the_first_row_of_every_key_is_one_and_rows_without_are_none():
    assert first_of_each(np.array([2, -1, 0, 2, 0, -1])).tolist() == [True, False, True, False, False, False]
