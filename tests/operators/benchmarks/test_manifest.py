"""A user's own questions: names of columns, spellings of choices and answers, every kind of bad row."""

import json
import os
import pickle

import hydra
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hydra.core.global_hydra import GlobalHydra
from omegaconf import OmegaConf
from pydantic import ValidationError

from operators.benchmarks.choices import choices_of, gold_of
from operators.benchmarks.locations import folder_of, locate
from operators.benchmarks.manifest import Manifest
from operators.columns import RowError
from operators.schema import ITEM
from operators.tables import TableError
from tests.shared_data import shared

GOOD = {"id": "q1", "question": "What?", "choices": ["dog", "cat"], "answer": "cat", "audio": "a.wav"}


def write(folder, rows, name="my.jsonl"):
    path = folder / name
    path.write_text("".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def load(folder, *rows, **options):
    return Manifest(write(folder, rows), **options).load().to_pylist()


@pytest.mark.parametrize("name", ["category", "overall"])
def test_groups_that_results_are_told_by_anyway_are_refused(tmp_path, name):
    with pytest.raises(TableError, match=rf"benchmark\.groups names '{name}', .* leave it out"):
        load(tmp_path, {**GOOD, name: "sound", "source": "field"}, groups=("source", name))


def test_a_good_row_becomes_an_item(tmp_path):
    table = Manifest(write(tmp_path, [{**GOOD, "category": "sound", "license": "ignored"}])).load()
    assert table.schema.equals(ITEM)
    assert table.to_pylist() == [
        {
            "item_id": "q1",
            "benchmark": "my",
            "question": "What?",
            "choices": ["dog", "cat"],
            "gold_index": 1,
            "audio_uris": [str(tmp_path / "a.wav")],
            "category": "sound",
            "groups": None,
            "item_error": None,
        }
    ]


def test_the_config_touches_no_disk_and_survives_pickling():
    config = Manifest("/nowhere/x.jsonl", columns={"id": "key"})
    assert pickle.loads(pickle.dumps(config)) == config
    with pytest.raises(TableError, match="does not exist"):
        config.load()
    assert config.yardsticks() == {}


def test_without_a_path_the_columns_are_explained():
    with pytest.raises(TableError, match=r"benchmark\.path=(.|\n)*Expected columns(.|\n)*q1(.|\n)*q2"):
        Manifest().load()


@pytest.mark.parametrize(
    ("group", "target"), [("benchmark/manifest", "Manifest"), ("model/recorded", "Recorded")]
)
def test_the_shipped_config_constructs(group, target):
    conf = os.path.join(os.path.dirname(__file__), "..", "..", "..", "conf", f"{group}.yaml")
    built = hydra.utils.instantiate(OmegaConf.load(conf))
    assert type(built).__name__ == target
    assert built.path is None
    assert not GlobalHydra.instance().is_initialized()


@pytest.mark.parametrize(
    "wrong", [{"limit": 0}, {"colums": {}}, {"columns": {"anser": "x"}}, {"allow_outside": "perhaps"}]
)
def test_a_wrong_option_is_refused(wrong):
    with pytest.raises(ValidationError):
        Manifest("x.jsonl", **wrong)


def test_csv_and_parquet_give_the_same_items_as_jsonl(tmp_path):
    (tmp_path / "my.csv").write_text(
        'id,question,choices,answer,audio\nq1,What?,"[""dog"", ""cat""]",cat,a.wav\n'
    )
    pq.write_table(pa.Table.from_pylist([GOOD]), tmp_path / "my.parquet")
    expected = load(tmp_path, GOOD)
    assert Manifest(str(tmp_path / "my.csv")).load().to_pylist() == expected
    assert Manifest(str(tmp_path / "my.parquet")).load().to_pylist() == expected


# Columns


@pytest.mark.parametrize(
    "renamed",
    [
        {"id": "item_id", "choices": "options", "answer": "gold", "audio": "audio_path"},
        {
            "id": "Question ID",
            "question": "QUESTION",
            "choices": "answer-choices",
            "answer": "Correct Answer",
        },
        {"audio": "audio_id"},
    ],
)
def test_other_names_for_columns(tmp_path, renamed):
    row = {renamed.get(name, name): cell for name, cell in GOOD.items()}
    assert load(tmp_path, row) == load(tmp_path, GOOD)


def test_two_columns_that_could_be_the_answer_are_not_guessed_between(tmp_path):
    row = {**GOOD, "answer": "dog", "gold": "cat"}
    with pytest.raises(
        TableError, match=r"'answer' and 'gold' could both be 'answer', and differ; .*columns\.answer=gold"
    ):
        load(tmp_path, row)
    assert load(tmp_path, row, columns={"answer": "gold"})[0]["gold_index"] == 1
    assert load(tmp_path, {**GOOD, "gold": "cat"})[0]["gold_index"] == 1


def test_a_column_given_by_name(tmp_path):
    row = {**GOOD, "clip": GOOD["audio"]}
    del row["audio"]
    assert load(tmp_path, row, columns={"audio": "clip", "id": None}) == load(tmp_path, GOOD)
    with pytest.raises(
        TableError, match=r"my\.jsonl has no column for benchmark\.columns\.audio=klip; .*question"
    ):
        load(tmp_path, row, columns={"audio": "klip"})


def test_missing_columns_are_named_with_the_nearest_and_an_example(tmp_path):
    row = {"id": "q1", "qestion": "What?", "choises": ["a", "b"], "answer": "a"}
    with pytest.raises(TableError) as caught:
        load(tmp_path, row)
    message = str(caught.value)
    assert "my.jsonl: no column for 'question', 'choices', 'audio'" in message
    assert "did you mean 'qestion'? Rename it, or set 'benchmark.columns.question=qestion'" in message
    assert "did you mean 'choises'?" in message
    assert "benchmark.require_audio=false" in message
    examples = [line for line in message.splitlines() if line.startswith("{")]
    assert len(examples) == 2
    path = write(tmp_path, [f"{line}\n" for line in examples], "example.jsonl")
    assert [row["item_error"] for row in Manifest(path).load().to_pylist()] == [None, None]


def test_a_column_that_has_its_part_is_not_proposed_for_another(tmp_path):
    row = {name: cell for name, cell in GOOD.items() if name != "id"} | {"question_idx": 3}
    with pytest.raises(TableError, match="no column for 'id'") as caught:
        load(tmp_path, row)
    assert "did you mean 'question_idx'?" in str(caught.value), "it is close to question_id, as question is"
    del row["question_idx"]
    with pytest.raises(TableError, match="no column for 'id'") as caught:
        load(tmp_path, row)
    assert "did you mean" not in str(caught.value)


def test_a_column_that_only_some_rows_lack_costs_those_rows(tmp_path):
    first, second = load(
        tmp_path, GOOD, {"id": "q2", "question": "What?", "choices": ["a", "b"], "answer": "a"}
    )
    assert first["item_error"] is None
    assert second["item_error"] == "no_audio: the row names no audio (line 2)"


# Bad rows


BAD_ROWS = [
    ({"answer": "bird"}, "answer_not_in_choices: 'bird' is none of ['dog', 'cat'] (line 2)"),
    ({"answer": "C"}, "answer_not_in_choices"),
    ({"answer": "(A) cat"}, "answer_not_in_choices"),
    ({"answer": ""}, "missing_answer"),
    ({"answer": None}, "missing_answer"),
    ({"answer": ["cat"]}, "bad_answer: a text is expected, not ['cat'] (line 2)"),
    ({"answer": True}, "bad_answer"),
    ({"answer": 1}, "answer_not_in_choices"),
    ({"answer": None, "answer_index": 2}, "answer_not_in_choices"),
    ({"answer": "dog", "answer_index": 1}, "ambiguous_answer"),
    ({"answer_index": "second"}, "bad_answer_index"),
    ({"answer_index": -1}, "bad_answer_index"),
    ({"answer_index": True}, "bad_answer_index"),
    ({"choices": ["dog", " "]}, "empty_choice: number 2 of 2 is empty (line 2)"),
    ({"choices": ["dog", None]}, "empty_choice"),
    ({"choices": ["cat"]}, "fewer_than_two_choices"),
    ({"choices": []}, "fewer_than_two_choices"),
    ({"choices": "cat"}, "fewer_than_two_choices"),
    ({"choices": ["dog", "cat", "Dog "]}, "duplicate_choices: 'Dog' stands more than once (line 2)"),
    ({"choices": 4}, "bad_choices: a list of texts is expected, not 4; write a list, or a | b | c (line 2)"),
    ({"choices": None}, "bad_choices"),
    ({"choices": [["dog"], ["cat"]]}, "bad_choices"),
    ({"choices": {"A": "dog", "C": "cat"}}, "bad_choices"),
    ({"choices": '["dog", cat]'}, "bad_choices"),
    ({"question": ""}, "empty_question"),
    ({"question": " \n"}, "empty_question"),
    ({"question": None}, "empty_question"),
    ({"question": ["What?"]}, "bad_question"),
    ({"audio": ""}, "no_audio"),
    ({"audio": None}, "no_audio"),
    ({"audio": []}, "no_audio"),
    ({"audio": ["a.wav", ""]}, "no_audio"),
    ({"audio": 7}, "bad_audio"),
    ({"audio": ["a.wav", 7]}, "bad_audio"),
    ({"audio": {"bytes": None}}, "bad_audio"),
    ({"audio": "a\0.wav"}, "bad_audio"),
    ({"audio": "https://[x/a.wav"}, "bad_audio"),
    ({"audio": "../a.wav"}, "audio_outside_folder"),
    ({"category": ["x"]}, "bad_category"),
    ({"id": None}, "missing_id"),
    ({"id": "  "}, "missing_id"),
    ({"id": ["q2"]}, "bad_id"),
    ({"id": True}, "bad_id"),
]


@pytest.mark.parametrize(("change", "error"), BAD_ROWS)
def test_a_bad_row_is_kept_with_its_reason_and_its_mates_are_untouched(tmp_path, change, error):
    good = {**GOOD, "category": "sound"}
    mates = [{**good, "id": "first"}, {**good, "id": "last"}]
    rows = load(tmp_path, mates[0], {**good, "id": "q2", **change}, mates[1])
    assert len(rows) == 3
    assert [rows[0]["item_error"], rows[2]["item_error"]] == [None, None]
    assert [rows[0]["gold_index"], rows[2]["gold_index"]] == [1, 1]
    assert rows[1]["item_error"].startswith(error)
    assert rows[1]["item_error"].endswith("(line 2)")
    assert rows[1]["gold_index"] is None
    assert rows[1]["item_id"] == ("q2" if "id" not in change else "[line 2]")


def test_a_malformed_line_is_a_bad_row(tmp_path):
    rows = load(tmp_path, GOOD, '{"id": "q2", "question"\n', {**GOOD, "id": "q3"})
    assert [row["item_id"] for row in rows] == ["q1", "[line 2]", "q3"]
    assert rows[1]["item_error"].startswith("malformed_json: ")
    assert rows[1]["item_error"].endswith("(line 2)")


def test_a_bad_row_keeps_what_could_be_read(tmp_path):
    row = load(tmp_path, {**GOOD, "answer": "bird"})[0]
    assert (row["question"], row["choices"]) == ("What?", ["dog", "cat"])


def test_different_rows_under_one_id_are_all_refused_and_told_apart(tmp_path):
    rows = load(
        tmp_path, GOOD, {**GOOD, "id": "q2"}, {**GOOD, "question": "Which?"}, {**GOOD, "answer": "dog"}
    )
    assert [row["item_id"] for row in rows] == ["q1 [line 1]", "q2", "q1 [line 3]", "q1 [line 4]"]
    assert rows[1]["item_error"] is None
    for row, line in ((rows[0], 1), (rows[2], 3), (rows[3], 4)):
        assert row["item_error"].startswith(
            "duplicate_id: 'q1' names different rows: line 1, line 3, line 4;"
        )
        assert row["item_error"].endswith(f"(line {line})")
        assert row["gold_index"] is None


def test_rows_that_repeat_one_another_count_once_and_are_counted(tmp_path):
    table = Manifest(
        write(tmp_path, [GOOD, {**GOOD, "model": "x", "answer": "B"}, {**GOOD, "id": "q2"}, GOOD])
    ).load()
    assert table.column("item_id").to_pylist() == ["q1", "q2"]
    assert table.column("item_error").null_count == 2
    (note,) = json.loads(table.schema.metadata[b"notes"])
    assert note.endswith("my.jsonl: 2 rows repeat an earlier row and count once")
    assert json.loads(Manifest(write(tmp_path, [GOOD])).load().schema.metadata[b"notes"]) == []


def test_many_rows_under_one_id_stay_quick_and_brief(tmp_path):
    rows = load(tmp_path, *({**GOOD, "question": f"What {i}?"} for i in range(3000)))
    assert len({row["item_id"] for row in rows}) == 3000
    assert max(len(row["item_error"]) for row in rows) < 200


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (7, "7"),
        (7.0, "7"),
        (" 7 ", "7"),
        ("\u202eש\U0001f40a\x07", "\u202eש\U0001f40a\x07"),
        ("\ud800x", "\ufffdx"),
    ],
)
def test_ids_are_any_text_or_number(tmp_path, cell, text):
    row = load(tmp_path, {**GOOD, "id": cell})[0]
    assert (row["item_id"], row["item_error"]) == (text, None)


def test_hostile_text_passes_through_as_text(tmp_path):
    question = "\u202e{x} %s ${oc.env:HOME} \x00\x1b[31m \ud83d <script> 🐊"
    row = load(tmp_path, {**GOOD, "question": question})[0]
    assert row["question"] == question.replace("\ud83d", "\ufffd")


def test_limit_and_name(tmp_path):
    rows = load(tmp_path, GOOD, GOOD, {**GOOD, "id": "q2"}, {**GOOD, "id": "q3"}, limit=2, name="mine")
    assert [(row["item_id"], row["benchmark"]) for row in rows] == [("q1", "mine"), ("q2", "mine")]


# Choices and answers


@pytest.mark.parametrize(
    "cell",
    [
        ["dog", "black cat", "it's"],
        ("dog", "black cat", "it's"),
        [" dog", "black cat ", "it's\n"],
        '["dog", "black cat", "it\'s"]',
        "['dog', 'black cat', \"it's\"]",
        "['dog' 'black cat' \"it's\"]",
        "['dog'\n 'black cat'\n \"it's\"]",
        "dog|black cat | it's",
        {"A": "dog", "b": "black cat", "C": "it's"},
        '{"A": "dog", "C": "it\'s", "B": "black cat"}',
        ["(A) dog", "(B) black cat", "(C)it's"],
        ["a. dog", "b. black cat", "c. it's"],
        "A) dog | B) black cat | C) it's",
    ],
)
def test_spellings_of_choices(cell):
    assert choices_of(cell) == ["dog", "black cat", "it's"]


@pytest.mark.parametrize(
    "choices",
    [
        ["A.M.", "B.C."],
        ["B. x", "A. y"],
        ["A. x", "y"],
        ["A", "B"],
        ["(A)", "(B)"],
        ["A major", "B minor"],
        ["[", "]"],
    ],
)
def test_letters_that_are_no_labels_stay(choices):
    assert choices_of(choices) == choices


@pytest.mark.parametrize(
    "cell", ["['dog' 'cat', 'cow']", "['dog' ... 'cow']", "{'A': 'dog' 'cat', 'B': 'cow'}"]
)
def test_texts_side_by_side_are_never_joined(cell):
    with pytest.raises(
        RowError, match=r"^bad_choices: a list of texts is expected, not .*; write a list, or a \| b"
    ):
        choices_of(cell)


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\u200b \x00", None])
def test_a_choice_that_shows_nothing_is_empty(blank):
    with pytest.raises(RowError, match=r"^empty_choice: number 2 of 3 is empty"):
        choices_of(["dog", blank, "cat"])


def test_numbers_are_choices_too():
    assert choices_of([1, 2.5, "x"]) == ["1", "2.5", "x"]
    assert gold_of(0, ["0", "1"]) == 0
    assert gold_of(2.0, ["1", "2"]) == 1


@pytest.mark.parametrize("label", [2, 2.0, "2", " 2 "])
def test_a_number_that_is_a_text_and_another_index_is_not_guessed(tmp_path, label):
    row = {**GOOD, "choices": ["1", "2", "3", "4"], "answer": label}
    error = load(tmp_path, row)[0]["item_error"]
    assert error.startswith("ambiguous_answer: ")
    assert "'2' (answer_index 1) or '3' (answer_index 2); say which with answer_index" in error
    assert [load(tmp_path, {**row, "answer_index": i})[0]["gold_index"] for i in range(4)] == [
        None,
        1,
        2,
        None,
    ]
    # Both readings agree on 2 here, and 4 counts no choice.
    assert load(tmp_path, {**row, "choices": ["0", "1", "2", "3"]})[0]["gold_index"] == 2
    assert load(tmp_path, {**row, "answer": 4})[0]["gold_index"] == 3


def test_digits_are_texts_in_a_column_of_texts(tmp_path):
    row = {**GOOD, "choices": ["1", "2", "3", "4"], "answer": "2"}
    rows = load(tmp_path, row, {**GOOD, "id": "q2"})
    assert [item["gold_index"] for item in rows] == [1, 1]
    rows = load(tmp_path, {**row, "answer": 2}, {**GOOD, "id": "q2"})
    assert rows[0]["item_error"].startswith("ambiguous_answer"), "a bare number among texts stays open"
    path = tmp_path / "my.csv"
    path.write_text("id,question,choices,answer,audio\nq1,How many?,1|2|3|4,2,a.wav\n")
    assert Manifest(str(path)).load()["item_error"][0].as_py().startswith("ambiguous_answer")


def test_a_letter_is_no_text_for_certain_in_a_column_that_holds_labels(tmp_path):
    notes = {**GOOD, "id": "q2", "choices": ["G", "C", "A"], "answer": "A"}
    labelled = {**GOOD, "answer": "B"}
    assert [item["gold_index"] for item in load(tmp_path, GOOD, notes)] == [1, 2]
    rows = load(tmp_path, labelled, notes, {**notes, "id": "q3", "answer_index": 0})
    assert [item["gold_index"] for item in rows] == [1, None, 0]
    rows = load(
        tmp_path,
        {**notes, "choices": ["(A) G", "(B) C", "(C) A"]},
        {**notes, "choices": ["G ", " C", "A"], "id": "q3"},
    )
    assert [item["gold_index"] for item in rows] == [None, 2], "a row's own labels are as good a sign"
    either = "'A' may mean 'G' (answer_index 0) or 'A' (answer_index 2); say which with answer_index"
    assert rows[0]["item_error"].startswith(f"ambiguous_answer: {either}")


def test_answer_index_settles_a_label_that_is_also_a_text(tmp_path):
    row = {**GOOD, "choices": ["B", "A"], "answer": "a"}
    assert load(tmp_path, row)[0]["item_error"].startswith("ambiguous_answer")
    assert load(tmp_path, {**row, "answer_index": 1})[0]["gold_index"] == 1


def test_nothing_in_a_cell_is_executed(tmp_path):
    cell = f"[__import__('pathlib').Path('{tmp_path}/made').touch(), 'b']"
    with pytest.raises(RowError, match="bad_choices"):
        choices_of(cell)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize("deep", ["[" * 5000 + "]" * 5000, "['a', " + "(" * 300 + ")" * 300 + "]"])
def test_a_bomb_of_brackets_is_a_bad_cell(deep):
    with pytest.raises(RowError, match="bad_choices"):
        choices_of(deep)


def test_choices_in_columns_of_their_own(tmp_path):
    path = tmp_path / "my.csv"
    path.write_text(
        "id,question,choice_a,choice_b,Choice_C,answer,audio\n"
        "q1,What?,dog,cat,bird,C,a.wav\nq2,What?,dog,cat,,B,a.wav\nq3,What?,dog,,bird,A,a.wav\n"
    )
    rows = Manifest(str(path)).load().to_pylist()
    assert [row["choices"] for row in rows[:2]] == [["dog", "cat", "bird"], ["dog", "cat"]]
    assert [row["gold_index"] for row in rows] == [2, 1, None]
    assert rows[2]["item_error"] == "empty_choice: number 2 of 3 is empty (line 4)"


def test_numbered_choice_columns_are_ordered_by_number(tmp_path):
    names = {f"option{i}": f"text {i}" for i in (10, 2, 1, 3, 4, 5, 6, 7, 8, 9)}
    row = {"id": 1, "question": "What?", "answer": "text 10", "audio": "a.wav", **names}
    item = load(tmp_path, row)[0]
    assert item["choices"] == [f"text {i}" for i in range(1, 11)]
    assert item["gold_index"] == 9


def test_a_gap_between_choice_columns_is_refused(tmp_path):
    row = {"id": 1, "question": "What?", "answer": "x", "audio": "a.wav", "choice_a": "x", "choice_c": "y"}
    with pytest.raises(TableError, match="without a gap, not choice_a, choice_c"):
        load(tmp_path, row)


@pytest.mark.parametrize(
    ("answer", "choices", "index"),
    [
        ("cat", ["dog", "cat"], 1),
        (" CAT\n", ["dog", "cat"], 1),
        ("STRASSE", ["dog", "straße"], 1),
        ("cafe\u0301", ["dog", "caf\u00e9"], 1),
        ("(B) cat", ["dog", "cat"], 1),
        ("b. Cat", ["dog", "cat"], 1),
        ("B: cat", ["dog", "cat"], 1),
        ("B", ["dog", "cat"], 1),
        ("(b)", ["dog", "cat"], 1),
        ("B.", ["dog", "cat"], 1),
        ("F", list("123456"), 5),
        ("A", ["A major", "B minor"], 0),
        ("A", ["B", "A"], 1),  # the text, to the letter
        ("b", ["A", "B"], 1),  # text and label agree
        ("A. Vivaldi", ["B. Bach", "A. Vivaldi"], 1),
        ("male", ["female", "male"], 1),
    ],
)
def test_answers(answer, choices, index):
    assert gold_of(answer, choices) == index


@pytest.mark.parametrize(
    ("answer", "choices", "reason"),
    [
        ("a", ["B", "A"], "ambiguous_answer"),  # text of the second, label of the first
        ("(A)", ["B", "A"], "ambiguous_answer"),
        ("A.", ["x", "a"], "ambiguous_answer"),
        ("(A) cat", ["dog", "cat"], "answer_not_in_choices"),
        ("C", ["dog", "cat"], "answer_not_in_choices"),
        ("(C) cat", ["dog", "cat"], "answer_not_in_choices"),
        ("a cat", ["dog", "cat"], "answer_not_in_choices"),
        ("1", ["dog", "cat"], "answer_not_in_choices"),
        ("A or B", ["dog", "cat"], "answer_not_in_choices"),
        ("[", ["dog", "cat"], "answer_not_in_choices"),
    ],
)
def test_answers_that_are_not_guessed(answer, choices, reason):
    with pytest.raises(RowError, match=reason):
        gold_of(answer, choices)


@pytest.mark.parametrize("index", [1, "1", 1.0, " 1 "])
def test_answer_index_counts_from_zero(tmp_path, index):
    row = {**GOOD, "answer_index": index}
    assert load(tmp_path, row)[0]["gold_index"] == 1
    del row["answer"]
    assert load(tmp_path, row)[0]["gold_index"] == 1


# Audio


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("a.wav", ["a.wav"]),
        (["a.wav", "sub/b.wav"], ["a.wav", "sub/b.wav"]),
        ('["a.wav", "b.wav"]', ["a.wav", "b.wav"]),
        ("a.wav | b.wav", ["a.wav", "b.wav"]),
        ("./sub/../a.wav", ["a.wav"]),
        ("[a] clip.wav", ["[a] clip.wav"]),
        (["a|b.wav"], ["a|b.wav"]),
        ("..a.wav", ["..a.wav"]),
        ("~/a.wav", ["~/a.wav"]),
        ("ünï 🐊.wav", ["ünï 🐊.wav"]),
    ],
)
def test_audio_paths_start_from_the_folder_of_the_manifest(tmp_path, cell, names):
    row = load(tmp_path, {**GOOD, "audio": cell})[0]
    assert row["item_error"] is None
    assert row["audio_uris"] == [str(tmp_path / name) for name in names]


def test_audio_root_is_another_folder_or_uri(tmp_path):
    assert load(tmp_path, GOOD, audio_root="/data/clips")[0]["audio_uris"] == ["/data/clips/a.wav"]
    assert load(tmp_path, GOOD, audio_root="s3://bucket/clips/")[0]["audio_uris"] == [
        "s3://bucket/clips/a.wav"
    ]
    assert load(tmp_path, GOOD, audio_root="https://host/clips")[0]["audio_uris"] == [
        "https://host/clips/a.wav"
    ]


def test_a_manifest_in_a_bucket_has_its_audio_beside_it():
    import fsspec

    with fsspec.open("memory://bucket/my.jsonl", "wb") as file:
        file.write(json.dumps(GOOD).encode())
    row = Manifest("memory://bucket/my.jsonl").load().to_pylist()[0]
    assert row["item_error"].startswith("audio_scheme_not_allowed: memory:// is none of file, s3, gs")
    row = Manifest("memory://bucket/my.jsonl", audio_root="gs://b").load().to_pylist()[0]
    assert row["audio_uris"] == ["gs://b/a.wav"]


def folders(tmp_path):
    """A manifest folder with links into and out of itself."""
    inside, outside = tmp_path / "in", tmp_path / "in_secret"
    inside.mkdir()
    outside.mkdir()
    (outside / "x.wav").write_bytes(b"")
    (inside / "x.wav").write_bytes(b"")
    (inside / "escape").symlink_to(outside)
    (inside / "escape.wav").symlink_to(outside / "x.wav")
    (inside / "link.wav").symlink_to("x.wav")
    (inside / "loop").symlink_to("loop")
    return inside


OUTSIDE = [
    "../../etc/passwd",
    "/etc/passwd",
    "file:///etc/passwd",
    "FILE:///etc/passwd",
    "../in_secret/x.wav",
    "sub/../../in_secret/x.wav",
    "escape/x.wav",
    "escape.wav",
    "https://169.254.169.254/latest",
    "http://localhost/x.wav",
]


@pytest.mark.parametrize("path", OUTSIDE)
def test_audio_outside_the_folder_is_refused_unless_allowed(tmp_path, path):
    inside = folders(tmp_path)
    row = load(inside, {**GOOD, "audio": ["x.wav", path]})[0]
    assert row["item_error"].startswith("audio_outside_folder: ")
    assert "benchmark.allow_outside=true" in row["item_error"]
    assert row["audio_uris"] == []
    allowed = load(inside, {**GOOD, "audio": ["x.wav", path]}, allow_outside=True)[0]
    assert allowed["item_error"] is None
    assert len(allowed["audio_uris"]) == 2


def test_audio_inside_the_folder_under_any_spelling(tmp_path):
    inside = folders(tmp_path)
    here = str(inside / "x.wav")
    paths = [here, f"file://{here}", "link.wav", "../in/x.wav", f"file://{tmp_path}/in/%78.wav"]
    row = load(inside, {**GOOD, "audio": paths})[0]
    assert row["audio_uris"] == [here] * 5
    assert load(inside, {**GOOD, "audio": "loop"})[0]["item_error"] is None  # decoding will say what it is


def test_a_folder_reached_through_a_link_is_itself(tmp_path):
    inside = folders(tmp_path)
    (tmp_path / "alias").symlink_to(inside)
    path = write(inside, [GOOD]).replace("/in/", "/alias/")
    assert Manifest(path).load().to_pylist()[0]["audio_uris"] == [str(inside / "a.wav")]


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("../b.wav", "audio_outside_folder"),
        ("x/../../b.wav", "audio_outside_folder"),
        ("%2e%2e/b.wav", "audio_outside_folder"),
        ("/etc/passwd", "audio_outside_folder"),
        ("file:///etc/passwd", "audio_outside_folder"),
        ("ftp://host/b.wav", "audio_scheme_not_allowed"),
        ("s3://bucket/b.wav::file:///etc/passwd", "audio_scheme_not_allowed"),
        ("simplecache::file:///etc/passwd", "audio_scheme_not_allowed"),
        ("s3://key:secret@bucket/b.wav", "audio_uri_with_credentials"),
        ("s3://bucket/b.wav?X-Amz-Signature=secret", "audio_uri_with_credentials"),
        ("b.wav?sv=1&sig=secret", "audio_uri_with_credentials"),
        ("https://key:secret@[x/b.wav", "bad_audio"),
        ("https://key:secret@h\u2100/b.wav", "bad_audio"),
    ],
)
def test_rules_below_a_uri(path, reason):
    with pytest.raises(RowError, match=reason) as caught:
        locate(path, "s3://bucket/clips")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "https://me:hidden@host/a.wav",
        "https://host/a.wav?X-Amz-Signature=hidden",
        "s3://bucket/a.wav?token=hidden",
    ],
)
def test_secrets_do_not_reach_the_items(tmp_path, uri):
    row, mate = load(tmp_path, {**GOOD, "audio": uri}, {**GOOD, "id": "q2"}, allow_outside=True)
    assert row["item_error"].startswith("audio_uri_with_credentials: ")
    assert "in the environment" in row["item_error"]
    assert "hidden" not in json.dumps(row)
    assert mate["item_error"] is None


def test_an_ordinary_query_is_part_of_the_address(tmp_path):
    uri = "https://host/get?id=3"
    assert load(tmp_path, {**GOOD, "audio": uri}, allow_outside=True)[0]["audio_uris"] == [uri]


@pytest.mark.parametrize(
    "root",
    [
        "https://h/dir?sig=hidden",
        "https://h/dir?hidden",
        "https://h/dir#hidden",
        "s3://key:hidden@bucket/dir",
        "https://key:hidden@[x/dir",
    ],
)
def test_an_audio_folder_has_neither_query_nor_credentials(tmp_path, root):
    with pytest.raises(TableError, match="audio folder ") as caught:
        load(tmp_path, GOOD, audio_root=root)
    assert "hidden" not in str(caught.value)


def test_the_folder_of_a_signed_manifest_is_taken_without_its_secret():
    assert folder_of("https://key:hidden@host/dir/my.jsonl?sig=hidden") == "https://host/dir"


def test_object_stores_are_deliberate_addresses(tmp_path):
    uris = ["s3://bucket/a.wav", "gs://bucket/b.wav"]
    assert load(tmp_path, {**GOOD, "audio": uris})[0]["audio_uris"] == uris
    assert locate("/etc/hosts", "s3://bucket", allow_outside=True) == os.path.realpath("/etc/hosts")


def test_audio_can_be_optional(tmp_path):
    row = {name: cell for name, cell in GOOD.items() if name != "audio"}
    for rows in ([row], [{**row, "audio": None}], [{**row, "audio": []}, GOOD | {"id": 2}]):
        item = load(tmp_path, *rows, require_audio=False)[0]
        assert (item["audio_uris"], item["item_error"], item["gold_index"]) == ([], None, 1)


# Real data


def test_real_outputs_are_a_manifest_without_audio():
    path = str(shared("real_outputs/mmau_mini.jsonl"))
    with pytest.raises(TableError, match="no column for 'audio'"):
        Manifest(path).load()
    table = Manifest(path, require_audio=False).load()
    items = {row["item_id"]: row for row in table.to_pylist()}
    # 900 rows, six systems, 625 ids: 275 = 900 - 625 repeats; 14 questions list one choice twice.
    assert table.num_rows == len(items) == 625
    assert "275 rows repeat" in json.loads(table.schema.metadata[b"notes"])[0]
    assert sum(row["item_error"] is not None for row in items.values()) == 14
    assert all(
        (row["item_error"] or "duplicate_choices").startswith("duplicate_choices") for row in items.values()
    )
    with open(path, encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    good = [row for row in rows if items[row["id"]]["item_error"] is None]
    assert all(items[row["id"]]["choices"] == [choice.strip() for choice in row["choices"]] for row in good)
    assert all(row["choices"][items[row["id"]]["gold_index"]] == row["gold"] for row in good)
