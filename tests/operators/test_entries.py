"""What a run keeps lies in memory or on disk, and is the same."""

import numpy as np
import pyarrow as pa
import pytest

from operators.entries import InMemory, OnDisk
from operators.schema import STORED_RESPONSE


def entries(texts):
    rows = [{"key": f"k{n}", "trial": n, "response": text} for n, text in enumerate(texts)]
    return pa.Table.from_pylist(rows, schema=STORED_RESPONSE)


@pytest.mark.parametrize("kind", [InMemory, OnDisk])
def test_rows_come_back_by_number_in_any_order_and_as_often_as_asked(kind):
    kept = kind(STORED_RESPONSE)
    first, second = entries(["é\n\x00", None, "\U0001f600"]), entries(["last"])
    kept.add(first)
    kept.add(second)
    assert len(kept) == 4
    taken = kept.take(np.array([3, 0, -1, 0, 2]))
    assert taken.schema == STORED_RESPONSE
    assert taken["response"].to_pylist() == ["last", "é\n\x00", None, "é\n\x00", "\U0001f600"]
    assert taken["key"].to_pylist() == ["k0", "k0", None, "k0", "k2"]
    assert taken["trial"].to_pylist() == [0, 0, None, 0, 2]


@pytest.mark.parametrize("kind", [InMemory, OnDisk])
def test_nothing_kept_is_nothing_found(kind):
    kept = kind(STORED_RESPONSE)
    kept.add(STORED_RESPONSE.empty_table())
    assert len(kept) == 0 and kept.take(np.array([], dtype=np.int64)).num_rows == 0
    assert kept.take(np.array([-1, -1]))["response"].to_pylist() == [None, None]
