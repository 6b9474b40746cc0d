"""Reading back what a run left: the newest or a named folder, rows of older makes, damage."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from omegaconf import OmegaConf

from operators.frames import TEXT_ERROR, with_columns
from operators.schema import result_schema
from operators.tables import TableError
from pipelines.config import ConfigError
from pipelines.runs import (
    SCORING,
    find_run,
    named,
    read_record,
    read_results,
    refuse_other_scorers,
    rows_of_runs,
    say_unreadable,
)
from tests.operators.analysis.made import scored_rows
from tests.operators.test_tables import raw


def made(folder, drop=()):
    folder.mkdir(parents=True)
    table = scored_rows([("A", "x", "i", 0.5)], trial=0).select(result_schema().names)
    pq.write_table(table.drop_columns(list(drop)), folder / "results.parquet")
    return folder


def test_the_newest_run_is_found_and_other_folders_are_not(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TableError, match="runs/ holds no run"):
        find_run(None)
    for age, name in enumerate(("new", "old")):
        path = made(tmp_path / "runs" / name) / "results.parquet"
        os.utime(path, (1e9 - age, 1e9 - age))
    (tmp_path / "runs" / "stress").mkdir()
    for name, file in (("many", "votes"), ("audit", "verdicts"), ("changes", "stress")):
        (tmp_path / "runs" / name).mkdir()
        (tmp_path / "runs" / name / f"{file}.parquet").touch()
    (tmp_path / "runs" / "night").mkdir()
    (tmp_path / "runs" / "night" / "drift.json").touch()
    with pytest.raises(TableError, match=r"is a file; run= names the folder that it is in: run=runs/old"):
        find_run("runs/old/results.parquet")
    assert find_run(None).name == "new" and find_run("runs/old").name == "old"
    for name, told in (
        ("runs/none", "no such folder"), ("runs/stress", "holds no results.parquet: it is not the folder of a finished run"),
        ("runs/many", "pipelines.mugen_eval, which has no chains to score: pipelines.report"), ("runs/audit", "judge_audit"),
        ("runs/night", "run it again with results=true"), ("runs/changes", "the run that it was made from"),
    ):  # fmt: skip
        with pytest.raises(TableError, match=told):
            find_run(name)


def test_a_column_that_older_runs_lack_is_null_and_one_that_none_lacks_is_an_error(tmp_path):
    older = read_results(made(tmp_path / "older", ["audio_seconds"]))
    assert older.select(result_schema().names).schema.equals(result_schema())
    assert older[TEXT_ERROR].to_pylist() == [None] and older["audio_seconds"].null_count == 1
    with pytest.raises(TableError, match="lacks the columns response"):
        read_results(made(tmp_path / "other", ["response"]))


def test_damage_is_named(tmp_path):
    folder = made(tmp_path / "run")
    assert read_record(folder) == {}
    (folder / "run.json").write_text("{", encoding="utf-8")
    with pytest.raises(TableError, match="no whole JSON file"):
        read_record(folder)
    data = (folder / "results.parquet").read_bytes()
    (folder / "results.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(TableError, match="cannot be read"):
        read_results(folder)


@pytest.mark.parametrize("groups", ["{cut", "[1]", '{"level": 5}', "[" * 100_000])
def test_broken_groups_are_named_with_their_row(tmp_path, groups):
    path = made(tmp_path / "run") / "results.parquet"
    table = pq.read_table(path)
    pq.write_table(with_columns(table, {"groups": pa.array([groups], pa.string())}), path)
    with pytest.raises(
        TableError, match=r"results\.parquet, row 1, column 'groups': .* is no JSON object of texts"
    ):
        read_results(tmp_path / "run")


def test_a_number_that_no_other_file_may_hold_stays_what_was_written(tmp_path):
    (tmp_path / "run.json").write_text('{"config": {"a": 1e999, "b": NaN, "c": 1.5}}', encoding="utf-8")
    assert read_record(tmp_path)["config"] == {"a": "1e999", "b": "NaN", "c": 1.5}


def test_runs_are_named_by_one_folder_or_several(tmp_path):
    assert named(None) == [None] and named("runs/a") == ["runs/a"]
    assert named(["a", "b"]) == named(OmegaConf.create(["a", "b"])) == ["a", "b"]
    for wrong, told in (
        ([], "or a list of folders"),
        (7, "not 7"),
        (["a", None], "or a list"),
        (["a", "./a"], "twice"),
    ):
        with pytest.raises(ConfigError, match=f"config key run: .*{told}"):
            named(wrong)


def test_two_questions_of_one_name_are_not_one_item(tmp_path):
    """Of other models, so that no row stands there twice; clips that a run did not decode are not compared."""

    def run(name, **changed):
        (tmp_path / name).mkdir()
        rows = scored_rows([(name, "x", "i", 0.5)], **changed).select(result_schema().names)
        pq.write_table(rows, tmp_path / name / "results.parquet")
        return tmp_path / name

    heard = run("heard", audio_hashes=["one"])
    assert (
        rows_of_runs(
            [heard, run("unheard", audio_hashes=[None]), run("alike", audio_hashes=["one"])]
        ).num_rows
        == 3
    )
    for name, changed in (
        ("asks", {"question": "Which?"}),
        ("offers", {"choices": ["a", "b"]}),
        ("plays", {"audio_hashes": ["two"]}),
    ):
        with pytest.raises(
            TableError, match=rf"heard and .*{name} ask different questions under one name \('x', 'i'\)"
        ):
            rows_of_runs([heard, tmp_path / "unheard", run(name, **{"audio_hashes": ["one"]} | changed)])


def test_text_that_is_no_utf8_stops_no_reader_and_is_named_in_its_row(tmp_path, capsys):
    """Bytes that another tool wrote into columns of text, and a column of bytes where text belongs."""
    table = pa.concat_tables([scored_rows([("A", "x", name, 0.5)], trial=0) for name in "ijk"])
    said = raw("caf\u00e9".encode(), b"\xff dog", None)
    choices = pa.array([[b"a", b"b"], [b"a", b"b\xe9"], None], pa.list_(pa.binary()))
    columns = {"response": said, "choices": choices}
    folder = tmp_path / "run"
    folder.mkdir()
    pq.write_table(with_columns(table.select(result_schema().names), columns), folder / "results.parquet")
    rows = rows_of_runs([folder])
    assert rows["response"].to_pylist() == ["caf\u00e9", "\ufffd dog", None]
    assert rows["choices"].to_pylist() == [["a", "b"], ["a", "b\ufffd"], None]
    assert rows[TEXT_ERROR].to_pylist() == [None, "not_utf8: choices, response", None]
    for part in (rows, rows.slice(2)):
        say_unreadable(part)
    told = "1 row holds text that is not UTF-8: \ufffd stands for what could not be read"
    assert capsys.readouterr().err == f"note: {told}\n"


def test_runs_are_seen_together_only_where_their_scorers_are_known_to_be_the_same():
    same, other = ({"fingerprints": dict.fromkeys(SCORING, name)} for name in ("one", "two"))
    refuse_other_scorers({"a": same, "b": same}, "force")
    refuse_other_scorers({"a": {}}, "force")
    for pair in ((same, other), (same, {}), ({}, {})):
        with pytest.raises(ConfigError, match=r"m1: a (.|\n)*b (.|\n)*force=true"):
            refuse_other_scorers(dict(zip("ab", pair, strict=True)), "force")
