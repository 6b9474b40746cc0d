"""Arrow tables on their way into batches and pages."""

import math

import numpy as np
import pyarrow as pa

from operators.frames import codes, finite


def test_floats_that_are_not_finite_are_null_and_nothing_else_changes():
    table = pa.table({
        "x": [1.5, math.nan, None, -math.inf], "n": [1, 2, 3, 4], "text": ["NaN", None, "", "inf"],
        "lists": pa.array([[0.5, math.inf], None, [], [None, 2.0]], pa.list_(pa.float64())),
        "whole": pa.array([[0.5]] * 4, pa.list_(pa.float64())),
    })  # fmt: skip
    found = finite(table)
    assert found.schema == table.schema
    assert found["x"].to_pylist() == [1.5, None, None, None]
    assert found["lists"].to_pylist() == [[0.5, None], None, [], [None, 2.0]]
    assert found.select(["n", "text", "whole"]).equals(table.select(["n", "text", "whole"]))
    assert math.isnan(table["x"][1].as_py())


def test_equal_cells_have_one_code_in_the_order_in_which_they_come():
    given = pa.chunked_array([["b", "a", None], ["a", "b"]], pa.string())
    assert codes(given).tolist() == [0, 1, -1, 1, 0]
    assert codes(given.dictionary_encode()).tolist() == [0, 1, -1, 1, 0]
    assert codes(given.slice(0, 0)).tolist() == []
    assert codes(pa.chunked_array([], pa.string())).dtype == np.int32
