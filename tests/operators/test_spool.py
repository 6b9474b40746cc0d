"""A spool gives back what was put in, portion by portion, as often as it is asked, and holds none of it in memory."""

import numpy as np
import pyarrow as pa

from operators.spool import Spool, parts, portions


def table(start, stop):
    rows = range(start, stop)
    return pa.table({"n": rows, "clips": [[f"{n}.wav", None] if n % 3 else None for n in rows]})


def test_portions_come_back_in_order_also_after_more_were_added():
    spool = Spool()
    assert list(spool) == [] and spool.num_rows == 0
    spool.add(table(0, 5).slice(1))
    spool.add(table(0, 0))
    assert list(spool) == [table(1, 5)] == list(spool)
    reading = iter(spool)
    spool.add(table(5, 6))
    assert next(reading) == table(1, 5)
    assert list(spool) == [table(1, 5), table(5, 6)] and spool.num_rows == 5
    assert [part for part, _ in parts(spool)] == [slice(0, 4), slice(4, 5)]
    assert [some for _, some in parts(spool)] == list(spool)
    assert list(portions(spool)) == list(spool) and portions(table(0, 2)) == [table(0, 2)]


def test_what_lies_in_a_spool_is_not_in_memory():
    numbers, spool = np.random.default_rng(0), Spool()
    before = pa.total_allocated_bytes()
    for _ in range(64):
        spool.add(pa.table({"n": numbers.random(100_000)}))
    assert spool.num_rows == 6_400_000 and pa.total_allocated_bytes() - before < 2_000_000
