"""Existing outputs of models: several systems and trials in one file, gaps, clashes, unusable rows."""

import hashlib
import json
import pickle
from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import ValidationError

from operators.benchmarks.manifest import Manifest
from operators.lalms.recorded import Recorded
from operators.schema import RESPONSE
from operators.tables import TableError
from tests.shared_data import shared

ITEMS = pa.table({"item_id": ["q1", "q2", "q3"]})


def write(folder, rows, name="mine.jsonl"):
    path = folder / name
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def read(folder, *rows, items=ITEMS, **options):
    return Recorded(write(folder, rows), **options).responses(items)


def said(found):
    return [(row["model"], row["item_id"], row["trial"], row["response"]) for row in found.table.to_pylist()]


def test_responses_follow_the_order_of_the_benchmark(tmp_path):
    found = read(
        tmp_path, {"id": "q3", "response": "c"}, {"id": "q1", "response": "a"}, {"id": "q2", "response": "b"}
    )
    assert found.table.schema.equals(RESPONSE)
    assert said(found) == [("mine", "q1", 0, "a"), ("mine", "q2", 0, "b"), ("mine", "q3", 0, "c")]
    assert found.table.column("response_error").null_count == 3
    assert found.warnings() == []


def test_the_config_touches_no_disk_and_survives_pickling():
    config = Recorded("/nowhere/x.jsonl", name="m")
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(TableError, match="does not exist"):
        config.responses(ITEMS)
    with pytest.raises(TableError, match=r"model\.path=(.|\n)*Expected columns"):
        Recorded().responses(ITEMS)
    with pytest.raises(ValidationError):
        Recorded("x.jsonl", modle="m")
    with pytest.raises(ValidationError):
        Recorded("x.jsonl", columns={"respons": "x"})


def test_identity_is_the_content_and_not_the_place(tmp_path):
    rows = [{"id": "q1", "response": "a"}]
    first, second = write(tmp_path, rows, "a.jsonl"), write(tmp_path, rows, "b.jsonl")
    expected = hashlib.sha256(b'{"id": "q1", "response": "a"}\n').hexdigest()
    assert Recorded(first).identity() == Recorded(second).identity() == expected
    assert Recorded(write(tmp_path, [*rows, *rows], "c.jsonl")).identity() != expected


@pytest.mark.parametrize(
    "column", ["response", "raw_output", "Output", "prediction", "model-output", "generated_text"]
)
def test_other_names_for_the_response(tmp_path, column):
    assert said(read(tmp_path, {"item_id": "q1", column: "a"}))[0] == ("mine", "q1", 0, "a")


def test_two_columns_that_could_be_the_response_are_not_guessed_between(tmp_path):
    row = {"id": "q1", "raw_output": "because ... A", "prediction": "A"}
    with pytest.raises(
        TableError, match=r"'raw_output' and 'prediction' .*model\.columns\.response=raw_output"
    ):
        read(tmp_path, row)
    assert said(read(tmp_path, row, columns={"response": "prediction"}))[0][-1] == "A"


def test_missing_columns_are_named_with_the_nearest_and_an_example(tmp_path):
    with pytest.raises(TableError) as caught:
        read(tmp_path, {"idx": "q1", "respnse": "a"})
    message = str(caught.value)
    assert "mine.jsonl: no column for 'id', 'response'; its columns are 'idx', 'respnse'" in message
    assert "did you mean 'respnse'? Rename it, or set 'model.columns.response=respnse'" in message
    examples = [json.loads(line) for line in message.splitlines() if line.startswith("{")]
    assert said(read(tmp_path, *examples))[:1] == [("mine", "q1", 0, examples[0]["response"])]


def test_several_systems_in_one_file_each_answer_every_item(tmp_path):
    found = read(
        tmp_path,
        {"model": "x", "id": "q1", "response": "x1"},
        {"model": "y", "id": "q2", "response": "y2"},
        {"model": "x", "id": "q2", "response": "x2"},
    )
    assert said(found) == [
        ("x", "q1", 0, "x1"), ("x", "q2", 0, "x2"), ("x", "q3", 0, None),
        ("y", "q1", 0, None), ("y", "q2", 0, "y2"), ("y", "q3", 0, None),
    ]  # fmt: skip
    errors = found.table.column("response_error").to_pylist()
    assert errors == [
        None,
        None,
        "no_recorded_response",
        "no_recorded_response",
        None,
        "no_recorded_response",
    ]


def test_the_name_of_the_model(tmp_path):
    named, unnamed = {"model": "x", "id": "q1", "response": "a"}, {"id": "q2", "response": "b"}
    assert {row[0] for row in said(read(tmp_path, named))} == {"x"}
    assert {row[0] for row in said(read(tmp_path, named, name="mine too"))} == {"mine too"}
    assert said(read(tmp_path, named, name="mine too"))[0][-1] == "a"
    assert {row[0] for row in said(read(tmp_path, named, unnamed))} == {"x", "mine"}
    assert {row[0] for row in said(read(tmp_path, {**named, "model": None}))} == {"mine"}
    with pytest.raises(TableError, match=r"holds 2 models, which model\.name would merge"):
        read(tmp_path, named, {**named, "model": "y"}, name="z")


def test_trials_are_rows_of_their_own(tmp_path):
    rows = [{"id": "q1", "response": f"t{int(t)}", "trial": t} for t in (2, "0", 1.0)] + [
        {"id": "q2", "response": "b"}
    ]
    assert said(read(tmp_path, *rows))[:4] == [
        ("mine", "q1", 0, "t0"), ("mine", "q1", 1, "t1"), ("mine", "q1", 2, "t2"), ("mine", "q2", 0, "b"),
    ]  # fmt: skip


def test_finish_reason_is_kept(tmp_path):
    found = read(
        tmp_path, {"id": "q1", "response": "a", "stop_reason": "length"}, {"id": "q2", "response": "b"}
    )
    assert found.table.column("finish_reason").to_pylist() == ["length", None, None]


@pytest.mark.parametrize(
    ("response", "error"),
    [
        (None, "no_recorded_response: the response is null (line 1)"),
        (7, "bad_response_type: a text is expected, not 7 (line 1)"),
        (["a"], "bad_response_type: a text is expected, not ['a'] (line 1)"),
        ({"text": "a"}, "bad_response_type: a text is expected, not {'text': 'a'} (line 1)"),
        (True, "bad_response_type: a text is expected, not True (line 1)"),
    ],
)
def test_what_is_no_text_is_a_named_error_of_its_row(tmp_path, response, error):
    rows = read(tmp_path, {"id": "q1", "response": response}, {"id": "q2", "response": "b"}).table.to_pylist()
    assert (rows[0]["response"], rows[0]["response_error"]) == (None, error)
    assert (rows[1]["response"], rows[1]["response_error"]) == ("b", None)


@pytest.mark.parametrize(
    "response",
    [
        "",
        " \n",
        "word " * 20_000,
        "🐊 \u202eאבג\u202c \x00\x07\x1b[2J",
        "${oc.env:HOME} {x} %s __import__('os')",
        "[ANSWER",
    ],
)
def test_untrusted_text_comes_through_as_it_is(tmp_path, response):
    rows = read(tmp_path, {"id": "q1", "response": response}).table.to_pylist()
    assert (rows[0]["response"], rows[0]["response_error"]) == (response, None)


def test_a_lone_surrogate_becomes_the_replacement_character(tmp_path):
    assert said(read(tmp_path, {"id": "q1", "response": "a\ud800b"}))[0][-1] == "a\ufffdb"


def test_a_repeat_counts_once_and_a_clash_is_an_error_of_its_item(tmp_path):
    found = read(
        tmp_path,
        {"id": "q1", "response": "a"},
        {"id": "q2", "response": "b"},
        {"id": "q1", "response": "a"},
        {"id": "q2", "response": "other"},
        {"id": "q3", "response": 7},
        {"id": "q3", "response": 7},
    )
    rows = found.table.to_pylist()
    assert (rows[0]["response"], rows[0]["response_error"]) == ("a", None)
    assert (rows[1]["response"], rows[1]["response_error"]) == (
        None,
        "duplicate_response: different responses on line 2, line 4",
    )
    assert rows[2]["response_error"] == "bad_response_type: a text is expected, not 7 (line 5)"
    assert found.n_repeats == 2
    assert found.warnings()[0].endswith("mine.jsonl: 2 rows repeat an earlier row and count once")


def test_a_failed_attempt_beside_one_that_worked_is_no_clash(tmp_path):
    found = read(tmp_path, {"id": "q1", "response": None}, {"id": "q1", "response": "a"})
    assert said(found)[0][-1] == "a"


def test_unknown_ids_are_counted_and_a_few_named(tmp_path):
    found = read(
        tmp_path, {"id": "q1", "response": "a"}, *({"id": f"z{i}", "response": ""} for i in range(7))
    )
    assert found.unknown_ids == tuple(f"z{i}" for i in range(7))
    assert found.warnings()[0].endswith("mine.jsonl: 7 ids are not in the benchmark: z0, z1, z2, ...")
    assert found.describe()["n_unknown_ids"] == 7
    assert json.loads(json.dumps(found.describe()))["unknown_ids"] == ["z0", "z1", "z2", "z3", "z4"]
    assert len(said(found)) == 3


def test_no_id_in_common_is_an_error_that_shows_both_sides(tmp_path):
    rows = [{"id": f"z{i}", "response": "a"} for i in range(4)]
    with pytest.raises(
        TableError, match=r"none of its ids is in the benchmark(.|\n)*z0, z1\n(.|\n)*q1, q2\n"
    ):
        read(tmp_path, *rows)
    with pytest.raises(TableError, match=r"column 'key' holds 1 of them: set model\.columns\.id=key"):
        read(tmp_path, *({**row, "key": f"q{i}"} for i, row in enumerate(rows[:2])))


def test_ids_match_as_text_whatever_their_type(tmp_path):
    items = pa.table({"item_id": ["1", "2", "ü🐊"]})
    rows = [{"id": 1, "response": "a"}, {"id": " 2", "response": "b"}, {"id": "ü🐊", "response": "c"}]
    assert [row[-1] for row in said(read(tmp_path, *rows, items=items))] == ["a", "b", "c"]


def test_rows_that_belong_to_no_item_are_named(tmp_path):
    found = read(
        tmp_path,
        {"id": "q1", "response": "a"},
        '{"id": "q2", "response": "cut o\n',
        {"id": None, "response": "b"},
        {"id": "q3", "response": "c", "trial": "first"},
        {"id": ["q3"], "response": "c"},
        {"id": "q2", "response": "b"},
        {"id": "q3", "response": "c"},
        {"id": "q1", "response": "d", "model": {"name": "x"}},
        {"id": "z", "response": "e"},
    )
    reasons = [problem.split(":")[:2] for problem in found.unusable]
    assert reasons == [
        ["line 2", " malformed_json"], ["line 3", " missing_id"], ["line 4", " bad_trial"],
        ["line 5", " bad_id"], ["line 8", " bad_model"],
    ]  # fmt: skip
    assert [row[-1] for row in said(found)] == ["a", "b", "c"]
    assert "5 rows belong to no item: line 2: malformed_json" in found.warnings()[1]


def test_a_line_that_is_cut_short_changes_no_word_of_the_lines_after_it(tmp_path):
    texts = ["either [dog, cat, ] or {a,}", "and, ]"]
    found = read(
        tmp_path,
        '{"id": "q1", "response": "cut, o\n',
        *({"id": f"q{n}", "response": text} for n, text in enumerate(texts, 2)),
    )
    assert [row[-1] for row in said(found)] == [None, *texts]


def test_a_chain_that_stands_apart_from_the_answer_is_not_passed_over_in_silence(tmp_path):
    row = {"id": "q1", "thinking_prediction": "I hear a bark.", "answer_prediction": "dog"}
    found = read(tmp_path, row)
    assert said(found)[0][-1] == "dog"
    assert "the column 'thinking_prediction' is not read" in found.warnings()[0]
    chains = read(tmp_path, row, columns={"response": "thinking_prediction"})
    assert said(chains)[0][-1] == "I hear a bark." and chains.warnings() == []


def test_a_file_without_one_usable_row_is_refused(tmp_path):
    with pytest.raises(TableError, match="none of its 2 rows can be used: line 1: missing_id"):
        read(tmp_path, {"id": "", "response": "a"}, {"id": None, "response": "b"})


def test_csv_and_parquet(tmp_path):
    (tmp_path / "mine.csv").write_text('id,response,trial\nq1,"a, ""b""\nc",\nq2,,1\n', "utf-8")
    rows = Recorded(str(tmp_path / "mine.csv")).responses(ITEMS).table.to_pylist()
    assert [(row["trial"], row["response"]) for row in rows] == [(0, 'a, "b"\nc'), (1, ""), (0, None)]
    pq.write_table(
        pa.table({"id": [1, 2], "response": ["a", None], "trial": [0.0, float("nan")]}),
        tmp_path / "m.parquet",
    )
    found = Recorded(str(tmp_path / "m.parquet")).responses(pa.table({"item_id": ["1", "2"]}))
    assert said(found) == [("m", "1", 0, "a"), ("m", "2", 0, None)]


def test_an_empty_benchmark_has_no_rows(tmp_path):
    items = pa.table({"item_id": pa.array([], pa.string())})
    assert read(tmp_path, {"id": "q1", "response": "a"}, items=items).table.num_rows == 0


def test_real_outputs_of_six_systems():
    path = shared("real_outputs/mmau_mini.jsonl")
    items = Manifest(str(path), require_audio=False).load()
    found = Recorded(str(path)).responses(items)
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    expected = {(row["model"], row["id"]): row["raw_output"] for row in rows}
    got = {(model, item): text for model, item, _, text in said(found) if text is not None}
    assert got == expected
    # Six systems by 625 questions; each answered 150 of them.
    assert found.table.num_rows == 6 * 625
    errors = Counter(found.table.column("response_error").to_pylist())
    assert errors == {None: 900, "no_recorded_response": 6 * 625 - 900}
    assert found.warnings() == []
