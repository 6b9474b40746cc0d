"""Arrow tables on their way into batches and pages; values held once are the same values in a worker, a key, an order."""

import math

import numpy as np
import pyarrow as pa

from operators.fingerprint import row_keys
from operators.frames import codes, decoded, finite, to_batch
from tests import toys

ONCE = pa.dictionary(pa.int32(), pa.string())


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


def held_once():
    """Two chunks with dictionaries of their own, of which the second lists the values in another order."""
    first = pa.table(
        {
            "reasoning": pa.array(["b", "a", None], ONCE),
            "clips": pa.array([["x", "y"], None, []], pa.list_(ONCE)),
        }
    )
    second = pa.table(
        {"reasoning": pa.array(["a", "b"], ONCE), "clips": pa.array([["y", None], ["z"]], pa.list_(ONCE))}
    )
    return pa.concat_tables([first, second])


def test_a_part_is_written_out_alone():
    part = decoded(held_once().slice(1, 3))
    assert part.schema == pa.schema([("reasoning", pa.string()), ("clips", pa.list_(pa.string()))])
    assert part.to_pylist() == held_once().to_pylist()[1:4]
    assert part.nbytes < 60, "four clip names and two texts"


def test_a_key_does_not_tell_how_a_value_is_held():
    spec = toys.M2()
    plain = decoded(held_once())
    assert row_keys(spec, to_batch(held_once(), spec.reads)) == row_keys(spec, to_batch(plain, spec.reads))


def test_equal_cells_have_one_code_in_the_order_in_which_they_come():
    assert codes(held_once()["reasoning"]).tolist() == [0, 1, -1, 1, 0]
    assert codes(decoded(held_once())["reasoning"]).tolist() == [0, 1, -1, 1, 0]
    assert codes(held_once().schema.empty_table()["reasoning"]).tolist() == []
    assert codes(pa.chunked_array([], pa.string())).dtype == np.int32
