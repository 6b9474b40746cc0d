"""Replies recorded earlier become the same verdicts, or say why they do not."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.audit.outcomes import VERDICT, instances
from operators.audit.presentation import CUES, PROBES, Design, planned_calls
from operators.audit.recorded import read_verdicts
from operators.audit.tables import tables
from operators.benchmarks.emotions import EmotionAudit
from operators.lalms.recorded import Recorded
from operators.tables import TableError
from tests.audit_toys import judge, positional, reply, single, write

KEY = ("model", "item_id", "control", "probe", "cue", "branch", "order")


def ordered(rows):
    return sorted(rows, key=lambda row: str([row[name] for name in KEY]))


@pytest.fixture
def table(tmp_path):
    lines = [positional("p1"), positional("p2", (3, 2))]
    return EmotionAudit("positional_emotion", write(tmp_path / "audit.jsonl", lines)).load()


@pytest.fixture
def calls(table):
    design = Design(PROBES, CUES, 7, counterbalance=True)
    return [call for item in table.to_pylist() for call in planned_calls(item, design)]


def read(path, table, probes=PROBES, cues=CUES, seed=7, **settings):
    return read_verdicts(Recorded(path=str(path), **settings), table, probes, cues, seed)


@pytest.mark.parametrize("seed", [7, 8])
def test_the_verdicts_of_a_run_can_be_read_again_whatever_the_seed(tmp_path, table, calls, seed):
    verdicts = judge(calls, lambda call: call["branch"] != 1 or call["probe"] == "oracle")
    pq.write_table(pa.Table.from_pylist(verdicts, schema=VERDICT), tmp_path / "verdicts.parquet")
    found = read(tmp_path / "verdicts.parquet", table, seed=seed)
    assert found.notes == []
    same = [name for name in VERDICT.names if name != "n_attempts"]
    for a, b in zip(ordered(found.rows), ordered(verdicts), strict=True):
        assert {n: a[n] for n in same} == {n: b[n] for n in same}
    again, first = (tables(rows, instances(rows), 50) for rows in (ordered(found.rows), ordered(verdicts)))
    assert again == first


def test_replies_to_our_own_prompts_need_no_order(tmp_path, table, calls):
    lines = [
        {k: call[k] for k in ("probe", "cue", "branch", "order")}
        | {"id": call["item_id"], "response": reply(call, call["gold"])}
        for call in calls
    ]
    found = read(write(tmp_path / "mine.jsonl", lines), table)
    assert {row["model"] for row in found.rows} == {"mine"}
    assert all(row["correct"] for row in found.rows) and len(found.rows) == len(calls)
    assert not all(row["correct"] for row in read(tmp_path / "mine.jsonl", table, seed=8).rows)


def test_a_missing_reply_is_a_null_with_a_reason_and_never_dropped(tmp_path, table):
    lines = [{"id": "p1", "probe": "pointwise", "branch": 0, "response": '{"pred": "R1"}', "swapped": False}]
    found = read(write(tmp_path / "few.jsonl", lines), table, probes=("pointwise", "oracle"), cues=("none",))
    by_key = {(row["item_id"], row["branch"]): row for row in found.rows}
    assert len(by_key) == 4 and by_key["p1", 0]["correct"] is True
    assert {row["reason"] for key, row in by_key.items() if key != ("p1", 0)} == {"no_recorded_response"}
    assert any("no replies to oracle" in note for note in found.notes)


def test_the_first_attempt_that_can_be_read_counts(tmp_path, table):
    line = {"id": "p1", "probe": "pointwise", "branch": 0, "swapped": False}
    said = ["I cannot decide", '{"pred": "R2"}', '{"pred": "R1"}']
    lines = [line | {"trial": trial, "response": text} for trial, text in reversed(list(enumerate(said)))]
    (row,) = [r for r in read(write(tmp_path / "a.jsonl", lines), table).rows if r["response"]]
    assert (row["pred"], row["correct"]) == ("R2", False)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"probe": "pairs"}, "bad_probe"),
        ({"cue": "loud"}, "bad_cue"),
        ({"branch": None}, "bad_branch"),
        ({"branch": 2}, "bad_branch"),
        ({"order": "x"}, "bad_order"),
        ({"swapped": "maybe"}, "bad_swapped"),
        ({"control": "deaf"}, "bad_control"),
        ({"id": ""}, "missing_id"),
    ],
)
def test_a_row_that_belongs_to_no_call_is_named(tmp_path, table, changes, reason):
    good = {"id": "p1", "probe": "pointwise", "branch": 0, "response": "{}", "order": 0, "swapped": True, "cue": "none", "control": "none"}  # fmt: skip
    found = read(write(tmp_path / "a.jsonl", [good, good | {"branch": 1}, good | changes]), table)
    assert f"line 3: {reason}" in found.notes[0]


def test_an_attempt_in_another_order_is_not_read_in_the_first_ones(tmp_path, table):
    """R1 of the second attempt is the other response: read as the first one's R1 it would be right where it is wrong."""
    line = {"id": "p1", "probe": "pointwise", "branch": 0}
    lines = [
        line | {"trial": 0, "response": "no JSON", "swapped": False},
        line | {"trial": 1, "response": '{"pred": "R1"}', "swapped": True},
    ]
    rows = read(write(tmp_path / "r.jsonl", lines), table).rows
    row = next(row for row in rows if (row["item_id"], row["branch"]) == ("p1", 0))
    assert row["correct"] is None and row["reason"].startswith("other_order")


def test_two_replies_to_one_call_count_as_none(tmp_path, table):
    line = {"id": "p1", "probe": "pointwise", "branch": 0, "response": '{"pred": "R1"}', "swapped": False}
    other = line | {"response": '{"pred": "R2"}'}
    rows = read(write(tmp_path / "a.jsonl", [line, line, other]), table).rows
    (row,) = [r for r in rows if r["item_id"] == "p1" and r["branch"] == 0]
    assert row["correct"] is None and row["reason"].startswith("duplicate_response")


def test_replies_of_the_wrong_type_and_nulls_are_missing(tmp_path, table):
    lines = [
        {"id": "p1", "probe": "pointwise", "branch": branch, "response": said}
        for branch, said in enumerate([{"pred": "R1"}, None])
    ]
    rows = read(write(tmp_path / "a.jsonl", lines), table).rows
    reasons = [row["reason"].split(":")[0] for row in rows if row["item_id"] == "p1"]
    assert reasons == ["bad_response_type", "no_recorded_response"]


def test_a_file_about_something_else_is_refused_with_an_example(tmp_path, table):
    with pytest.raises(TableError, match=r"no column for 'probe'(.|\n)*Expected columns: id, probe"):
        read(write(tmp_path / "a.jsonl", [{"id": "p1", "response": "x"}]), table)
    with pytest.raises(TableError, match="none of its rows is about an item and probe of this run"):
        read(
            write(tmp_path / "b.jsonl", [{"id": "z", "probe": "oracle", "branch": 0, "response": "x"}]), table
        )
    with pytest.raises(TableError, match=r"model\.path="):
        read_verdicts(Recorded(), table, PROBES, CUES, 0)


def test_several_judges_in_one_file_stay_apart(tmp_path, table):
    lines = [
        {
            "id": item,
            "probe": "pointwise",
            "branch": branch,
            "response": json.dumps({"pred": pred}),
            "model": name,
        }
        for item in ("p1", "p2")
        for branch in (0, 1)
        for name, pred in (("a", "R1"), ("b", "R2"))
    ]
    rows = read(write(tmp_path / "a.jsonl", lines), table).rows
    assert {row["model"]: row["pred"] for row in rows} == {"a": "R1", "b": "R2"} and len(rows) == 8


def test_an_item_that_is_refused_is_not_expected(tmp_path):
    lines = [single("s1"), single("s2", ("sad", "sad"))]
    table = EmotionAudit("single_turn_emotions", write(tmp_path / "audit.jsonl", lines)).load()
    said = [
        {"id": name, "probe": "pointwise", "branch": 0, "response": '{"pred": "R1"}'} for name in ("s1", "s2")
    ]
    rows = read(write(tmp_path / "a.jsonl", said), table).rows
    assert {row["item_id"] for row in rows} == {"s1"}
