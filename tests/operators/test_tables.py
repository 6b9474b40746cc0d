"""Reading users' tables: every format, every place, every malformed file with its message."""

import gzip
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.tables import TableError, digest, is_uri, read_rows, stem, stream_rows

ROWS = [{"id": "a", "text": "one, two"}, {"id": "b", "text": 'she said "no"\nand left'}]
CSV = 'id,text\na,"one, two"\nb,"she said ""no""\nand left"\n'


def write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("name", "content", "places"),
    [
        ("t.jsonl", lines(ROWS), ["line 1", "line 2"]),
        ("t.ndjson", "\n\n" + lines(ROWS).replace("\n", "\r\n"), ["line 3", "line 4"]),
        ("t.JSON", json.dumps(ROWS, indent=1), ["line 2", "line 6"]),
        ("t.json", json.dumps(ROWS), ["row 1", "row 2"]),
        ("t.csv", CSV, ["line 2", "line 3"]),
        ("t.csv", CSV.replace("\nb", "\n\n\nb"), ["line 2", "line 3"]),
        (
            "t.tsv",
            CSV.replace("id,text", "id\ttext").replace('a,"', 'a\t"').replace('b,"', 'b\t"'),
            ["line 2", "line 3"],
        ),
        ("t.jsonl.gz", gzip.compress(lines(ROWS).encode(), mtime=0), ["line 1", "line 2"]),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0), ["line 2", "line 3"]),
    ],
)
def test_text_formats_give_the_same_rows_with_their_places(tmp_path, name, content, places):
    rows = read_rows(write(tmp_path, name, content))
    assert [dict(row) for row in rows] == ROWS
    if name != "t.csv" or "\n\n\n" not in content:
        assert [row.place for row in rows] == places


def test_blank_lines_of_a_csv_are_no_rows_and_move_no_line_number(tmp_path):
    rows = read_rows(write(tmp_path, "t.csv", "id\n\na\n\n\nb\n"))
    assert [(row["id"], row.place) for row in rows] == [("a", "line 3"), ("b", "line 6")]


def test_parquet_rows_count_from_one_and_keep_lists_and_nulls(tmp_path):
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"id": ["a", None], "choices": [["x", "y"], None]}), path)
    rows = read_rows(str(path))
    assert [dict(row) for row in rows] == [{"id": "a", "choices": ["x", "y"]}, {"id": None, "choices": None}]
    assert [row.place for row in rows] == ["row 1", "row 2"]


def test_a_uri_is_read_through_fsspec():
    import fsspec

    with fsspec.open("memory://tables/t.jsonl", "wb") as file:
        file.write(lines(ROWS).encode())
    assert [dict(row) for row in read_rows("memory://tables/t.jsonl")] == ROWS
    with pytest.raises(TableError, match=r"memory://tables/none.jsonl: there is no such file"):
        read_rows("memory://tables/none.jsonl")


def test_a_byte_order_mark_is_no_part_of_the_first_column(tmp_path):
    assert list(read_rows(write(tmp_path, "t.csv", b"\xef\xbb\xbfid,text\na,b\n"))[0]) == ["id", "text"]
    assert list(read_rows(write(tmp_path, "t.jsonl", b'\xef\xbb\xbf{"id": 1}\n'))[0]) == ["id"]


def test_line_separators_inside_json_strings_end_no_row(tmp_path):
    text = "one\u2028two\u0085three\x0cfour"
    path = write(tmp_path, "t.jsonl", json.dumps({"id": text}, ensure_ascii=False) + "\n")
    assert read_rows(path)[0]["id"] == text


def test_nan_is_null(tmp_path):
    assert read_rows(write(tmp_path, "t.jsonl", '{"id": NaN, "list": [NaN]}'))[0] == {
        "id": None,
        "list": [None],
    }


def test_a_cell_longer_than_the_csv_module_allows_by_itself(tmp_path):
    import csv

    limit = csv.field_size_limit()
    rows = read_rows(write(tmp_path, "t.csv", f"id,text\na,{'word ' * 40_000}\n"))
    assert len(rows[0]["text"]) == 5 * 40_000
    assert csv.field_size_limit() == limit


DEEP = "[" * 100_000

MALFORMED = [
    ("t.jsonl", "", "t.jsonl is empty"),
    ("t.jsonl", "\n \n", "t.jsonl is empty"),
    ("t.csv", "id,text\n", "t.csv is empty: it has no rows"),
    ("t.json", " ", "t.json: is empty"),
    ("t.json", "[]", "t.json is empty"),
    (
        "t.jsonl",
        '{"id": 1}\n{"id": 2,}\n',
        "t.jsonl, line 2: malformed_json: a comma stands before a closing bracket",
    ),
    ("t.jsonl", '{"id": 1},\n', "line 1: malformed_json: a comma stands after the object"),
    ("t.jsonl", '{"id": 1}\n{"id": ', "line 2: malformed_json: Expecting value at column 7"),
    ("t.jsonl", "{'id': 1}\n", "line 1: malformed_json: JSON text stands in double quotes"),
    ("t.jsonl", '{"id": 1, "id": 2}', "line 1: malformed_json: the key 'id' stands twice"),
    ("t.jsonl", '{"id": 1}\n[1]\n', "line 2: not_an_object: .* a list"),
    ("t.jsonl", '{"id": 1}\n7\n', "line 2: not_an_object: .* a bare value"),
    ("t.jsonl", DEEP, "line 1: malformed_json: nested too deeply"),
    ("t.jsonl", '{"id": ' + "9" * 5000 + "}", "line 1: malformed_json: Exceeds the limit"),
    ("t.jsonl", '[\n{"id": 1},\n{"id": 2}\n]\n', r"line 1: malformed_json: .* named \.json \(3 of 4 rows"),
    (
        "t.json",
        '[{"id": 1},\n {"id": 2},\n]',
        "line 3: malformed JSON: a comma stands before a closing bracket",
    ),
    (
        "t.json",
        '[{"id": 1},\n {"id": 2,}\n]',
        "line 2: malformed JSON: a comma stands before a closing bracket",
    ),
    ("t.json", '[{"id": 1}\n {"id": 2}]', "line 2: malformed JSON: .*is expected"),
    ("t.json", '[{"id": 1},\n {"id": 2}', "line 2: malformed JSON: .*cut short"),
    ("t.json", '[{"id": 1}]\n\nrest', "malformed JSON"),
    ("t.json", '[{"id": 1},\n 7]', "line 2: not_an_object"),
    ("t.json", DEEP, "line 1: malformed JSON: nested too deeply"),
    ("t.json", '{"id": 1}', "holds one JSON object, but must hold a list of objects; put it into a list"),
    ("t.json", '{"data": [{"id": 1}]}', "save the list under its key 'data' by itself"),
    ("t.json", '{"id": 1}\n{"id": 2}', r"one object a line is a \.jsonl file, rename it"),
    ("t.json", '"text"', "must hold a JSON list"),
    ("t.json", "{nonsense", "malformed JSON"),
    ("t.csv", "id,text\na,b\nc,d,e\n", "t.csv, line 3: wrong_fields: 3 fields, but the header has 2"),
    ("t.csv", 'id,text\n"a\nb",c\nd\n', "t.csv, line 4: wrong_fields: 1 fields, but the header has 2"),
    ("t.csv", 'id,text\na,"b\n', "t.csv, line 2: malformed quoting"),
    ("t.csv", 'id,text\na,"b"c\n', "t.csv, line 2: malformed quoting"),
    ("t.csv", "id,id\na,b\n", "header names the column 'id' twice"),
    ("t.csv", "id;text\na;b\n", r"one column only; \.csv is separated by commas"),
    (
        "t.jsonl",
        b'{"id": "a"}\n{"id": "\xe9"}\n',
        "t.jsonl, line 2: not_utf8: byte 0xe9 is not UTF-8; save the file as UTF-8",
    ),
    ("t.csv", "id,text\na,b\n".encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    ("t.csv", "id,text\na,b\n".encode("utf-16-le"), "is UTF-16 text; save it as UTF-8"),
    ("t.jsonl", '{"id": 1}\n'.encode("utf-16-be"), "is UTF-16 text; save it as UTF-8"),
    ("t.csv", "id,text\na,b\n".encode("utf-32"), "is UTF-32 text; save it as UTF-8"),
    ("t.json", '[{"id": 1}]\n'.encode("utf-32-be"), "is UTF-32 text; save it as UTF-8"),
    ("t.jsonl.gz", b"no gzip", "is not a whole gzip file"),
    ("t.jsonl.gz", gzip.compress(b'{"id": 1}' * 500, mtime=0)[:30], "is not a whole gzip file"),
    ("t.parquet", b"PAR1 nonsense", "is not a whole Parquet file"),
    ("t.parquet", b"", "is not a whole Parquet file"),
    ("t.pkl", b"", r"unknown kind of file; the name must end in one of \.jsonl.*\.parquet"),
    ("t.xlsx", b"", "unknown kind of file"),
    ("t.parquet.gz", b"", "unknown kind of file"),
    ("t", b"", "unknown kind of file"),
]


@pytest.mark.parametrize(("name", "content", "message"), MALFORMED)
def test_a_malformed_file_is_named_with_the_line_and_the_remedy(tmp_path, name, content, message):
    path = write(tmp_path, name, content)
    with pytest.raises(TableError, match=message) as caught:
        read_rows(path)
    assert path in str(caught.value)
    assert len(str(caught.value)) < len(path) + 300


@pytest.mark.parametrize(("name", "message"), [
    ("there.txt", "there.txt: there is no such file"),
    ("folder", "folder is a folder; give the path of a file in it"),
    ("", "the path of a file is empty: name the file"),
    ("x\0.json", "neither a path nor an address"),
])  # fmt: skip
def test_a_path_without_a_file_is_no_question_of_formats(tmp_path, name, message):
    (tmp_path / "folder").mkdir()
    with pytest.raises(TableError, match=message):
        read_rows(name and str(tmp_path / name))


def test_an_address_that_nothing_opens_is_told_in_words():
    for read in (read_rows, digest):
        with pytest.raises(TableError, match=r"'foo://x/t\.json' is neither a path nor an address"):
            read("foo://x/t.json")


def raw(*cells):
    """Text cells of any bytes, which no library checks when it writes or reads them."""
    made = pa.array(cells, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(made), made.buffers())


def test_text_of_a_parquet_file_that_is_no_utf8_has_its_row_and_column(tmp_path):
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"id": ["a", "b"], "response": raw(b"dog", b"\xff dog")}), path)
    for read in (read_rows, lambda name: list(stream_rows(name))):
        with pytest.raises(
            TableError, match=r"t\.parquet, row 2, column 'response': byte 0xff is not UTF-8; write"
        ):
            read(path)


def test_broken_lines_can_be_kept_and_name_themselves(tmp_path):
    path = write(tmp_path, "t.jsonl", '{"id": "a"}\n{"id": \n{"id": "c"}\n')
    rows = read_rows(path, keep_broken=True)
    assert [dict(row) for row in rows] == [{"id": "a"}, {}, {"id": "c"}]
    assert rows[0].problem is None
    assert rows[1].problem.startswith("malformed_json: ")
    assert rows[1].place == "line 2"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("t.csv", b"id,text\na,b\nc,d,e\nf,g\n", "wrong_fields: 3 fields, but the header has 2; put cells"),
        ("t.tsv", b"id\ttext\na\tb\nc\nf\tg\n", "wrong_fields: 1 fields, but the header has 2; put cells"),
        ("t.csv", b"id,text\na,b\nc,\xe9\nf,g\n", "not_utf8: byte 0xe9 is not UTF-8; save the file as UTF-8"),
        (
            "t.jsonl",
            b'{"id": "a", "text": "b"}\n{"id": "\xe9"}\n{"id": "f", "text": "g"}\n',
            "not_utf8: byte 0xe9 is not UTF-8; save the file as UTF-8",
        ),
    ],
)
def test_one_bad_row_costs_no_other_row(tmp_path, name, content, problem):
    path = write(tmp_path, name, content)
    rows = read_rows(path, keep_broken=True)
    assert [dict(row) for row in rows] == [{"id": "a", "text": "b"}, {}, {"id": "f", "text": "g"}]
    assert rows[1].problem.startswith(problem) and rows[1].place == f"line {2 + (name != 't.jsonl')}"
    assert [(row, row.problem) for row in stream_rows(path)] == [(row, row.problem) for row in rows]
    with pytest.raises(TableError, match=problem.split(":")[0]):
        read_rows(path)


def test_a_header_that_is_not_utf8_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"line 1: not_utf8: byte 0xe9"):
        read_rows(write(tmp_path, "t.csv", b"id,caf\xe9\na,b\n"), keep_broken=True)


def test_a_file_of_another_format_is_refused_even_so(tmp_path):
    with pytest.raises(TableError, match=r"\(2 of 3 rows are like this\)"):
        read_rows(write(tmp_path, "t.jsonl", '{"id": "a"}\nx\ny\n'), keep_broken=True)


def test_a_missing_file_names_the_nearest_one_and_the_folder(tmp_path):
    write(tmp_path, "my_items.jsonl", "")
    with pytest.raises(TableError, match=r"no such file; did you mean .*my_items\.jsonl\?"):
        read_rows(str(tmp_path / "my_item.jsonl"))
    with pytest.raises(TableError, match=rf"no such file \(looked in {re.escape(str(tmp_path))}\)"):
        read_rows(str(tmp_path / "zzz.csv"))
    with pytest.raises(TableError, match=r"folder .*nowhere does not exist"):
        read_rows(str(tmp_path / "nowhere" / "zzz.csv"))
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(TableError, match="is a folder"):
        read_rows(str(tmp_path / "folder.csv"))


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("runs/my.jsonl", "my"),
        ("my.v2.csv.gz", "my.v2"),
        ("s3://bucket/runs/my.parquet?x=1", "my"),
        ("my", "my"),
    ],
)
def test_stem(path, name):
    assert stem(path) == name
    assert is_uri(path) == path.startswith("s3")


@pytest.mark.weights
def test_a_hundred_thousand_rows(tmp_path):
    path = write(
        tmp_path, "t.jsonl", "".join(f'{{"id": "{i}", "response": "text"}}\n' for i in range(100_000))
    )
    rows = read_rows(path)
    assert len(rows) == 100_000
    assert (rows[-1]["id"], rows[-1].place) == ("99999", "line 100000")


def cells_and_places(rows):
    return [(dict(row), row.place, row.problem) for row in rows]


def test_a_file_read_piece_by_piece_has_the_rows_of_the_file_read_whole(tmp_path):
    lines = '\ufeff{"a": "x\u2028y"}\n\n{"a": 1, "b": NaN}\r\n{broken\n{"b": [1]}'
    (tmp_path / "r.jsonl").write_bytes(lines.encode())
    (tmp_path / "r.ndjson.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    (tmp_path / "r.csv").write_text("a,b\n1,2\n")
    pq.write_table(pa.table({"a": [f"x{k}" for k in range(1500)]}), tmp_path / "r.parquet")
    for name in ("r.jsonl", "r.ndjson.gz", "r.csv", "r.parquet"):
        path = str(tmp_path / name)
        streamed, whole = stream_rows(path), cells_and_places(read_rows(path, keep_broken=True))
        assert cells_and_places(streamed) == whole and cells_and_places(streamed) == whole, (
            "any number of times"
        )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.jsonl", b""),
        ("r.jsonl", b"\xff\xfe{}"),
        ("r.jsonl", b'{"a": 1}\n{"a": "\xe9"}\n{"a": "\xe9"}'),
        ("r.jsonl", b'{"a": 1}\nno\nno'),
        ("r.jsonl.gz", b"no gzip"),
        ("r.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 99, mtime=0)[:-9]),
        ("r.parquet", b"PAR1 no"),
        ("r.txt", b"x"),
    ],
)
def test_what_cannot_be_read_piece_by_piece_is_refused_in_the_same_words(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(TableError) as whole:
        read_rows(str(path), keep_broken=True)
    with pytest.raises(TableError) as streamed:
        list(stream_rows(str(path)))
    assert str(streamed.value) == str(whole.value)
