"""The MUGEN layout: what is read, and a named reason for every row that cannot be used."""

import json

import pytest

from operators.benchmarks.identity import notes_of
from operators.benchmarks.mugen import Mugen, dimension_of
from operators.mugen.presentation import MUGEN_ITEM
from operators.tables import TableError


def row(**parts):
    plain = {
        "id": "q",
        "question": "Select the dog.",
        "candidates": ["a.wav", "b.wav", "c.wav"],
        "answer_index": 1,
    }
    return {**plain, "dimension": "Music Analysis", "reference": [], "ranking": False, **parts}


def load(folder, *rows, **fields):
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return Mugen(path=str(path), **fields).load()


def test_an_item_with_reference(tmp_path):
    table = load(
        tmp_path, row(reference=["r.wav"], task="bark", ranking=True, licence="CC0", source=["x", "y"])
    )
    assert table.schema.equals(MUGEN_ITEM)
    (item,) = table.to_pylist()
    assert item["audio_uris"] == [str(tmp_path / name) for name in ("r.wav", "a.wav", "b.wav", "c.wav")]
    assert item["choices"] == ["Audio 1", "Audio 2", "Audio 3"], "the reference is not counted"
    assert (item["gold_index"], item["n_reference"], item["ranking"], item["task"]) == (1, 1, True, "bark")
    assert (
        item["category"] == "Music Analysis" and item["source"] == '["x", "y"]' and item["item_error"] is None
    )


def test_six_clips_and_columns_of_another_name(tmp_path):
    six = row(id="six", candidates=[f"{i}.wav" for i in range(5)], reference=["r.wav"])
    six["my clips"] = six.pop("candidates")
    (item,) = load(tmp_path, six, columns={"candidates": "my clips"}, name="mine").to_pylist()
    assert len(item["audio_uris"]) == 6 and item["benchmark"] == "mine"


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"answer_index": 3}, "gold_out_of_range: answer_index 3 (from 0) of 3 candidates"),
        ({"answer_index": -1}, "bad_answer_index"),
        ({"answer_index": "first"}, "bad_answer_index"),
        ({"candidates": ["a.wav"], "answer_index": 0}, "too_few_candidates: 1"),
        ({"candidates": []}, "too_few_candidates: 0"),
        (
            {"candidates": ["a.wav", "b.wav", "a.wav"]},
            "same_clip_twice: candidates 1 (a.wav) and 3 (a.wav) are",
        ),
        (
            {"candidates": ["a.wav", "x/../a.wav"], "answer_index": 0},
            "same_clip_twice: candidates 1 (a.wav) and 2 (x/../a.wav) are the same file",
        ),
        ({"candidates": ["a.wav", 7]}, "bad_candidates"),
        ({"candidates": ["a.wav", "../../etc/passwd"], "answer_index": 0}, "audio_outside_folder"),
        ({"question": " "}, "empty_question"),
        ({"id": None}, "missing_id"),
        ({"ranking": "perhaps"}, "bad_ranking"),
    ],
)
def test_a_bad_row_says_why_and_where_and_keeps_its_place(tmp_path, parts, reason):
    table = load(tmp_path, row(id="first"), row(**parts), row(id="last"))
    errors = table["item_error"].to_pylist()
    assert errors[0] is None and errors[2] is None
    assert errors[1].startswith(reason) and "line 2" in errors[1]
    assert table["gold_index"].to_pylist() == [1, None, 1]


def test_both_names_of_a_clip_that_comes_twice(tmp_path):
    (item,) = load(tmp_path, row(candidates=["a.wav", "b.wav", "a.wav"])).to_pylist()
    assert item["item_error"].count("a.wav") == 2


def test_rows_that_differ_under_one_id_are_all_refused_and_repeats_count_once(tmp_path):
    table = load(tmp_path, row(), row(answer_index=2), row(id="other"), row(id="other"))
    items = table.to_pylist()
    assert [item["item_id"] for item in items] == ["q [line 1]", "q [line 2]", "other"]
    assert ["line 1, line 2" in (item["item_error"] or "") for item in items] == [True, True, False]
    (note,) = notes_of(table)
    assert note.endswith("m.jsonl: 1 rows repeat an earlier row and count once")


def test_dimensions_under_any_of_their_names():
    for name in ("S&P", "Semantics & Pragmatics", "semantics_and_pragmatics", "SEMANTICS AND PRAGMATICS"):
        assert dimension_of(name) == "Semantics & Pragmatics"
    assert dimension_of("Affective & Paralinguistic") == "Affective & Paralinguistic State"
    assert dimension_of("My own") == "My own"


def test_a_file_without_candidates_names_what_is_expected(tmp_path):
    with pytest.raises(TableError, match="candidates"):
        load(tmp_path, {"id": "q", "question": "?", "answer_index": 0})
    with pytest.raises(TableError, match=r"benchmark\.path"):
        Mugen().load()


def test_the_tasks_that_rank_can_be_named_instead_of_the_column(tmp_path):
    rows = [row(id="q1", task="longest", ranking=True), row(id="q2", task="third")]
    assert load(tmp_path, *rows)["ranking"].to_pylist() == [True, False]
    assert load(tmp_path, *rows, ranking_tasks=("third",))["ranking"].to_pylist() == [False, True]
