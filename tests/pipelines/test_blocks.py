"""A block is one row on its way, and comes back as it was."""

import pyarrow as pa

from pipelines.blocks import cut, pack, unpack


def test_a_packed_block_is_one_row_and_comes_back_as_it_was():
    table = pa.table(
        {
            "question": pa.array(["which is the loudest?"] * 64),
            "clips": pa.array([["a.wav", None, "b.wav"], [], None, ["ü.wav"]] * 16, pa.list_(pa.string())),
            "reason": pa.nulls(64, pa.string()),
            "n": range(64),
        }
    )
    packed = [pack(block) for block in cut(table, 40, None)]
    assert [one.num_rows for one in packed] == [1, 1]
    blocks = list(unpack(pa.concat_tables(packed)))
    assert [block.num_rows for block in blocks] == [40, 24]
    assert pa.concat_tables(blocks).to_pylist() == table.to_pylist()
    assert blocks[0].schema == table.schema
    (empty,) = unpack(pack(table.slice(0, 0)))
    assert empty.num_rows == 0 and empty.column_names == table.column_names


def test_what_rows_repeat_costs_little():
    table = pa.table({"question": pa.array(["which of these clips is the loudest one? " * 10] * 256)})
    assert table.nbytes > 100_000 and pack(table).nbytes < 2_000


def test_equal_neighbours_stay_in_one_block():
    table = pa.table({"item": ["a", "a", None, "b", "b", "b", "c", "c"]})
    assert [block["item"].to_pylist() for block in cut(table, 2, "item")] == [
        ["a", "a"],
        [None, "b", "b", "b"],
        ["c", "c"],
    ]
    assert [block.num_rows for block in cut(table, 3, None)] == [3, 3, 2]
    assert list(cut(table.slice(0, 0), 3, "item")) == []
