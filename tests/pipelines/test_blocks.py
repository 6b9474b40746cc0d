"""A block is one row on its way, and comes back as it was."""

import pyarrow as pa

from pipelines.blocks import cut, pack, unpack

ONCE = pa.dictionary(pa.int32(), pa.string())


def test_a_packed_block_is_one_row_and_comes_back_with_plain_values():
    table = pa.table(
        {
            "question": pa.array(["which is the loudest?"] * 64, ONCE),
            "clips": pa.array([["a.wav", None, "b.wav"], [], None, ["ü.wav"]] * 16, pa.list_(ONCE)),
            "reason": pa.nulls(64, pa.string()),
            "n": range(64),
        }
    )
    packed = [pack(block) for block in cut(table, 40, None)]
    assert [one.num_rows for one in packed] == [1, 1]
    blocks = list(unpack(pa.concat_tables(packed)))
    assert [block.num_rows for block in blocks] == [40, 24]
    assert pa.concat_tables(blocks).to_pylist() == table.to_pylist()
    assert blocks[0].schema.field("question").type == pa.string()
    assert blocks[0].schema.field("clips").type == pa.list_(pa.string())
    (empty,) = unpack(pack(table.slice(0, 0)))
    assert empty.num_rows == 0 and empty.column_names == table.column_names


def test_what_rows_repeat_costs_little():
    table = pa.table({"question": pa.array(["which of these clips is the loudest one? " * 10] * 256)})
    assert table.nbytes > 100_000 and pack(table).nbytes < 2_000
