"""Recorded trials: what the columns say, what is derived without them, and what is refused."""

import json

import pyarrow as pa
import pytest

from operators.lalms.recorded import Recorded
from operators.mugen.presentation import MUGEN_ITEM, GenerationSet, orders
from operators.mugen.recorded import read_trials
from operators.tables import TableError

SC, APSC = (GenerationSet("mugen_direct", permute, False) for permute in (False, True))
COT = GenerationSet("mugen_cot", True, False)


def items(*names, n=4, ranking=False):
    uris = [f"{i}.wav" for i in range(n)]
    rows = [
        {"item_id": name, "benchmark": "b", "question": "?", "choices": [], "gold_index": 1, "audio_uris": uris,
         "n_reference": 0, "ranking": ranking} for name in names
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, schema=MUGEN_ITEM)


def read(folder, rows, sets, table=None, counts=(None,), seed=5, **fields):
    path = folder / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_trials(Recorded(path=str(path), **fields), table or items("q"), sets, list(counts), seed)
    return found._replace(rows=list(found.rows))


def said(trial, response="Audio 1", **other):
    return {"id": "q", "trial": trial, "response": response, **other}


def test_orders_are_derived_where_all_strategies_permute(tmp_path):
    found = read(tmp_path, [said(0), said(1)], {APSC: 2})
    assert [row["audio_order"] for row in found.rows] == orders(items("q").to_pylist()[0], 2, 5, True, None)
    assert [row["model"] for row in found.rows] == ["mine", "mine"] and not found.notes


def test_orders_of_the_file_count_and_null_is_the_original(tmp_path):
    rows = [
        said(0, "Audio 2", audio_order=[3, 0, 1, 2]),
        said(1, audio_order="2 1 0 3"),
        said(0, audio_order=None),
    ]
    found = read(tmp_path, rows, {SC: 1, APSC: 2}).rows
    assert [(row["permuted"], row["audio_order"]) for row in found] == [
        (False, [0, 1, 2, 3]),
        (True, [3, 0, 1, 2]),
        (True, [2, 1, 0, 3]),
    ]


def test_an_order_that_does_not_fit_is_an_error_of_its_row(tmp_path):
    found = read(
        tmp_path, [said(0, audio_order=[0, 1, 2]), said(1, audio_order=[0, 1, 2, 3])], {APSC: 2}
    ).rows
    assert found[0]["response"] is None and found[0]["response_error"].startswith("bad_audio_order")
    assert found[1]["response"] == "Audio 1"


def test_strategies_that_differ_need_the_columns(tmp_path):
    with pytest.raises(TableError, match="no column 'audio_order'"):
        read(tmp_path, [said(0)], {SC: 1, APSC: 10})
    with pytest.raises(TableError, match="no column 'prompt'"):
        read(tmp_path, [said(0)], {APSC: 10, COT: 10})
    with pytest.raises(TableError, match="no responses for mugen_cot, permuted"):
        read(tmp_path, [said(0, prompt="mugen_direct")], {APSC: 10, COT: 10})


def test_missing_trials_are_rows_with_a_reason_and_a_short_file_lowers_the_expectation(tmp_path):
    found = read(tmp_path, [said(0), said(2)], {APSC: 10})
    assert [row["response_error"] for row in found.rows] == [None, "no_recorded_response", None]
    assert any("3 trials of 10" in note for note in found.notes)


def test_two_different_responses_under_one_trial_are_neither(tmp_path):
    found = read(tmp_path, [said(0), said(0, "Audio 2"), said(1), said(1)], {APSC: 2}).rows
    assert found[0]["response"] is None and "duplicate_response" in found[0]["response_error"]
    assert found[1]["response"] == "Audio 1", "word for word the same counts once"


def test_several_models_unknown_ids_and_broken_rows(tmp_path):
    rows = [
        said(0, model="a"),
        said(0, model="b"),
        said(0, model="a") | {"id": "z"},
        {"response": "x", "model": "a"},
    ]
    found = read(tmp_path, rows, {APSC: 1})
    assert [row["model"] for row in found.rows] == ["a", "b"]
    assert any("missing_id" in note for note in found.notes) and any("z" in note for note in found.notes)


def test_usage_is_an_object_its_text_or_nothing(tmp_path):
    given = [{"prompt_tokens": 3}, '{"prompt_tokens": 3}', "{broken", 7, None]
    rows = [said(trial, usage=usage) for trial, usage in enumerate(given)]
    found = read(tmp_path, rows, {APSC: 5}).rows
    assert [row["usage"] for row in found] == ['{"prompt_tokens": 3}'] * 2 + [None] * 3
    assert all(row["response"] for row in found)


def test_a_scaling_study_reads_the_number_of_candidates(tmp_path):
    rows = [said(0, "Audio 1", n_candidates=2), said(0, "Audio 2", n_candidates=3)]
    found = read(tmp_path, rows, {SC: 1}, counts=(2, 3)).rows
    assert [(row["n_candidates"], len(row["audio_order"]), row["response"]) for row in found] == [
        (2, 2, "Audio 1"),
        (3, 3, "Audio 2"),
    ]
    assert not read(tmp_path, rows, {SC: 1}, table=items("q", ranking=True), counts=(2, 3)).rows


def test_numbers_of_candidates_that_no_trial_is_of_are_named(tmp_path):
    rows = [said(0, n_candidates=2), said(0)]
    assert not read(tmp_path, rows, {SC: 1}, counts=(2,)).notes
    (note,) = read(tmp_path, rows, {SC: 1}, counts=(2, 3, 4)).notes
    assert note.endswith(
        "no trial is of 3, 4 (column n_candidates, empty for all); it has all candidates, n_candidates=2"
    )
    with pytest.raises(TableError, match=r"no trial is of 3 .* it has all candidates, n_candidates=2"):
        read(tmp_path, rows, {SC: 1}, counts=(3,))
    with pytest.raises(TableError, match="no trial is of all candidates"):
        read(tmp_path, rows[:1], {SC: 1})


def test_a_file_for_another_benchmark_is_refused(tmp_path):
    with pytest.raises(TableError, match="none of its ids is in the benchmark; there: q; in the file: z"):
        read(tmp_path, [said(0) | {"id": "z"}], {SC: 1})
    with pytest.raises(
        TableError,
        match=r"no row can be used: line 1: bad_audio_order(.|\n)*counted from 0(.|\n)*\[4, 0, 2, 1, 3\]",
    ):
        read(tmp_path, [said(0) | {"audio_order": "x"}], {SC: 1})
    with pytest.raises(TableError, match=r"model\.path"):
        read_trials(Recorded(), items("q"), {SC: 1}, [None], 0)
