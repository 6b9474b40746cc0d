"""Audit items: what is read, and every way in which a tuple is refused."""

import copy
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.benchmarks.emotions import AUDIT_ITEM, EmotionAudit, emotion_name, human_emotions
from operators.tables import TableError
from pipelines.config import ConfigError
from pipelines.responses import load_questions
from tests.audit_toys import positional, single, turn, write


def load(tmp_path, lines, kind="single_turn_emotions", **settings):
    return EmotionAudit(kind, write(tmp_path / "audit.jsonl", lines), **settings).load()


def error_of(tmp_path, line, kind="single_turn_emotions"):
    (found,) = load(tmp_path, [line], kind)["item_error"].to_pylist()
    return found


def test_a_line_becomes_a_tuple_with_its_clips_in_order(tmp_path):
    table = load(tmp_path, [single()])
    assert table.schema == AUDIT_ITEM
    (item,) = table.to_pylist()
    assert item["item_error"] is None and item["benchmark"] == "audit"
    assert item["kind"] == "single_turn_emotions" and item["source"] == "written for this project"
    assert [[t["emotion"] for t in branch] for branch in item["branches"]] == [["angry"], ["sad"]]
    names = [uri.rsplit("/", 1)[-1] for uri in item["audio_uris"]]
    assert names == ["s1-0.wav", "s1-1.wav", "s1-r0.wav", "s1-r1.wav"]
    assert item["audio_uris"][0] == str((tmp_path / "s1-0.wav").resolve())


def test_a_dialogue_keeps_its_trajectories_and_reads_the_papers_speakers(tmp_path):
    (item,) = load(tmp_path, [positional()], "positional_emotion").to_pylist()
    assert item["item_error"] is None
    assert [human_emotions(branch) for branch in item["branches"]] == [
        ["happy", "angry", "angry"],
        ["happy", "happy", "angry"],
    ]
    assert {t["speaker"] for t in item["branches"][0]} == {"user", "assistant"}
    assert len(item["audio_uris"]) == 5 + 5 + 2


def test_parquet_and_json_lists_hold_the_same_items(tmp_path):
    lines = [single("s1"), single("s2", ("happy", "neutral"))]
    expected = load(tmp_path, lines).to_pylist()
    (tmp_path / "audit.json").write_text(json.dumps(lines))
    pq.write_table(pa.Table.from_pylist(lines), tmp_path / "audit.parquet")
    for ending in ("json", "parquet"):
        found = EmotionAudit("single_turn_emotions", str(tmp_path / f"audit.{ending}")).load().to_pylist()
        assert found == expected


@pytest.mark.parametrize("spelled", ["hesistant", "hesitant", " Hesitant ", "HESISTANT"])
def test_both_spellings_of_hesitant_are_one(spelled):
    assert emotion_name(spelled) == "hesitant"


def test_names_of_one_state_are_one_and_others_stay():
    assert [emotion_name(e) for e in ("anger", "Angry", "apologetic/empathetic/reassuring", "wistful")] == [
        "angry",
        "angry",
        "empathetic",
        "wistful",
    ]


def test_transcripts_that_differ_are_refused_with_the_first_difference(tmp_path):
    line = single()
    line["branches"][1][0]["text"] = "It is early, and late."
    assert error_of(tmp_path, line) == (
        "transcripts_differ: turn 1, word 3: 'late.' against 'early,' (line 1)"
    )
    shorter = positional()
    del shorter["branches"][1][-2:]
    assert "one branch has 5 turns, the other 3" in error_of(tmp_path, shorter, "positional_emotion")
    cut = single()
    cut["branches"][1][0]["text"] = "It is"
    assert "turn 1, word 3: 'late.' against nothing" in error_of(tmp_path, cut)
    other = positional()
    other["branches"][1][1]["speaker"] = "human"
    assert "turn 2 is the assistant's in one branch" in error_of(tmp_path, other, "positional_emotion")


def test_white_space_is_no_difference(tmp_path):
    line = single()
    line["branches"][1][0]["text"] = " It  is\nlate. "
    assert error_of(tmp_path, line) is None


@pytest.mark.parametrize("emotions", [("sad", "sad"), ("anger", "Angry"), ("hesistant", "hesitant")])
def test_one_emotion_on_both_sides_is_refused(tmp_path, emotions):
    assert error_of(tmp_path, single(emotions=emotions)).startswith("same_emotion: ")


@pytest.mark.parametrize("audio", [None, "", "  "])
def test_a_turn_or_a_response_without_audio_is_refused(tmp_path, audio):
    line = single()
    line["branches"][1][0]["audio"] = audio
    assert error_of(tmp_path, line) == "no_audio: branch 1 turn 1 has no audio (line 1)"
    line = single()
    line["responses"][0]["audio"] = audio
    assert error_of(tmp_path, line) == "no_audio: response 0 has no audio (line 1)"
    line = positional()
    del line["branches"][0][1]["audio"]
    assert "branch 0 turn 2" in error_of(tmp_path, line, "positional_emotion")


def test_responses_that_name_the_other_branch_are_refused(tmp_path):
    line = single()
    line["responses"].reverse()
    assert error_of(tmp_path, line).startswith("responses_swapped: response 0 says it answers branch 1")


def test_items_that_pair_the_same_responses_the_other_way_contradict_each_other(tmp_path):
    first, second = single("s1"), single("s1")
    second["id"] = "s2"
    second["responses"].reverse()
    for reply in second["responses"]:
        del reply["branch"]
    errors = load(tmp_path, [first, second])["item_error"].to_pylist()
    assert errors[0] is None and errors[1].startswith("responses_swapped: 's1' pairs the same responses")


def test_a_duplicated_item_weighs_once(tmp_path):
    copied = single("s1") | {"id": "s9"}
    mirrored = copy.deepcopy(copied) | {"id": "s10"}
    mirrored["branches"].reverse()
    mirrored["responses"] = [
        {k: v for k, v in reply.items() if k != "branch"} for reply in reversed(mirrored["responses"])
    ]
    table = load(tmp_path, [single("s1"), single("s1"), copied, mirrored])
    assert table["item_id"].to_pylist() == ["s1", "s9", "s10"]
    errors = table["item_error"].to_pylist()
    assert errors[0] is None
    assert all(e.startswith("duplicate_item: the same clips and responses as 's1'") for e in errors[1:])
    assert "1 lines repeat an earlier one and count once" in table.schema.metadata[b"notes"].decode()


def test_different_items_under_one_id_are_all_refused(tmp_path):
    table = load(tmp_path, [single("s1"), single("s1", ("happy", "sad"))])
    assert table["item_id"].to_pylist() == ["s1 [line 1]", "s1 [line 2]"]
    assert all(e.startswith("duplicate_id: 's1'") for e in table["item_error"].to_pylist())


@pytest.mark.parametrize(
    ("line", "kind", "reason"),
    [
        (positional(), "single_turn_emotions", "not_single_turn: 5 turns"),
        (single(), "positional_emotion", "not_positional: 0 shifts"),
        (positional(onsets=(2, 9)), "positional_emotion", "not_positional: 0 shifts"),
        (positional(onsets=(1, 3)), "positional_emotion", "not_positional: 0 shifts"),
        (positional(onsets=(2, 2)), "positional_emotion", "same_emotion"),
        (single(branches=None), "single_turn_emotions", "bad_branches"),
        (single(branches=[[], []]), "single_turn_emotions", "bad_branches"),
        (single(branches=[[1], [2]]), "single_turn_emotions", "bad_turn"),
        (single(branches=[[turn("sad", "a.wav", speaker="narrator")]] * 2), "single_turn_emotions", "bad_speaker"),
        (single(branches=[[turn(" ", "a.wav")]] * 2), "single_turn_emotions", "missing_emotion"),
        (single(branches=[[turn(3.5, "a.wav", text={})]] * 2), "single_turn_emotions", "bad_text"),
        (single(responses=[{"text": "x", "audio": "x.wav"}]), "single_turn_emotions", "bad_responses"),
        (single(responses=[{"text": "x", "audio": "x.wav"}] * 2), "single_turn_emotions", "same_response"),
        (single(name=""), "single_turn_emotions", "missing_id"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_item_of_its_kind_says_why(tmp_path, line, kind, reason):
    assert error_of(tmp_path, line, kind).startswith(reason)


def test_shifts_between_other_emotions_or_back_are_not_positional(tmp_path):
    line = positional(n_user=4)
    line["branches"][0][-1]["emotion"] = "happy"
    assert error_of(tmp_path, line, "positional_emotion").startswith("not_positional: 2 shifts")
    line = positional()
    for t in line["branches"][0]:
        t["emotion"] = {"angry": "sad"}.get(t["emotion"], t["emotion"])
    told = error_of(tmp_path, line, "positional_emotion")
    assert told.startswith("not_positional: the branches shift from happy to sad and from happy to angry")


def test_a_conversation_ends_with_the_user(tmp_path):
    line = positional()
    for y, branch in enumerate(line["branches"]):
        branch.append(turn("neutral", f"end{y}.wav", "Good bye.", "assistant"))
    assert error_of(tmp_path, line, "emotional_conversations").startswith("no_user_turn_last")


def test_audio_stays_in_its_folder_and_keeps_no_secrets(tmp_path):
    line = single()
    line["branches"][0][0]["audio"] = "../outside.wav"
    assert error_of(tmp_path, line).startswith("audio_outside_folder")
    line["branches"][0][0]["audio"] = "s3://KEY:SECRET@bucket/a.wav"
    told = error_of(tmp_path, line)
    assert told.startswith("audio_uri_with_credentials") and "SECRET" not in told
    line["branches"][0][0]["audio"] = "../outside.wav"
    assert load(tmp_path, [line], allow_outside=True)["item_error"].to_pylist() == [None]


def test_a_file_without_the_columns_says_what_is_expected(tmp_path):
    with pytest.raises(
        TableError, match=r"no column for 'branches', 'responses'(.|\n)*Expected: id, branches"
    ):
        load(tmp_path, [{"id": "q1", "question": "Which?"}])


def test_broken_lines_keep_their_place(tmp_path):
    path = tmp_path / "audit.jsonl"
    path.write_text(json.dumps(single("s1")) + "\n{oops\n" + json.dumps(single("s2")) + "\n")
    table = EmotionAudit("single_turn_emotions", str(path)).load()
    assert table["item_id"].to_pylist() == ["s1", "[line 2]", "s2"]
    assert table["item_error"][1].as_py().startswith("malformed_json")


def test_the_other_commands_refuse_audit_items_and_name_the_right_one(tmp_path):
    benchmark = EmotionAudit("single_turn_emotions", write(tmp_path / "audit.jsonl", [single()]))
    with pytest.raises(ConfigError, match=r"pipelines\.judge_audit"):
        load_questions(benchmark)
