"""The published MUGEN layout, written here as its cards describe it: Parquet files that hold the clips."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import soundfile

from operators.audio import decode
from operators.benchmarks.mugen import Mugen
from operators.benchmarks.mugen_published import RANKING_TASKS, TASKS
from operators.mugen.presentation import DIMENSIONS, MUGEN_ITEM, scalable
from operators.tables import TableError

AUDIO = pa.struct([("bytes", pa.binary()), ("path", pa.string())])


def clip(level):
    """A tone of this loudness, as the data set holds it."""
    sound = io.BytesIO()
    soundfile.write(sound, level * np.sin(np.arange(800) * 0.1), 16000, format="WAV")
    return {"bytes": sound.getvalue(), "path": f"{level}.wav"}


def row(**parts):
    clips = {f"audio{place}": clip(place / 10) for place in range(1, 6)}
    return {"id": 7, "instruction": "Select the loudest.", "answer": "(E)", **clips, **parts}


def publish(folder, task, *rows, split="test"):
    """One task; the columns stand in an order of their own, and some give the answer away."""
    names = [name for name in reversed(rows[0]) if name is not None]
    columns = {
        name: pa.array([one[name] for one in rows], AUDIO if "audio" in name else None) for name in names
    }
    columns["audio1_emotion"] = pa.array(["angry"] * len(rows))
    (folder / task / "data").mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), folder / task / "data" / f"{split}-00000-of-00001.parquet")
    return folder


def load(folder, **fields):
    return Mugen(path=str(folder), unpacked=str(folder / "clips"), **fields).load()


def test_six_clips_of_an_item_with_reference_in_the_order_of_their_names(tmp_path):
    publish(tmp_path, "Speaker_Verification", row(reference_audio=clip(0.9), answer="(B)"))
    table = load(tmp_path)
    assert table.schema.equals(MUGEN_ITEM)
    (item,) = table.to_pylist()
    heard = [round(float(np.abs(decode(uri).samples).max()), 1) for uri in item["audio_uris"]]
    assert heard == [0.9, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert (item["n_reference"], item["gold_index"], item["choices"][1]) == (1, 1, "Audio 2")
    assert item["item_id"] == "Speaker_Verification/7" and item["benchmark"] == "mugen"
    assert item["category"] == "Speaker & Demographics" and item["item_error"] is None


def test_a_reduced_split_lacks_candidates_and_the_letter_names_the_column(tmp_path):
    reduced = row(audio2=None, audio5=None, answer="(D)")
    publish(tmp_path, "Genre_Classification", row(), split="test")
    publish(tmp_path, "Genre_Classification", reduced, split="test_3")
    (item,) = load(tmp_path, split="test_3").to_pylist()
    assert len(item["choices"]) == 3
    assert item["gold_index"] == 2, "of audio1, audio3, audio4 the third"
    (whole,) = load(tmp_path).to_pylist()
    assert len(whole["choices"]) == 5, "split test is not mixed up with test_3"
    assert len(list((tmp_path / "clips").iterdir())) == 5, "a sound that both splits hold is written once"


def test_rows_without_id_and_ids_that_other_tasks_have_too(tmp_path):
    nameless = [{k: v for k, v in row(answer=f"({letter})").items() if k != "id"} for letter in "AB"]
    publish(tmp_path, "Key_Detection", *nameless)
    publish(tmp_path, "Music_Tagging", row())
    publish(tmp_path, "Vocal_Fry_Detection", row())
    table = load(tmp_path)
    assert table["item_id"].to_pylist() == [
        *("Key_Detection/1", "Key_Detection/2", "Music_Tagging/7", "Vocal_Fry_Detection/7")
    ]
    assert table["item_error"].null_count == 4
    assert load(tmp_path / "Music_Tagging")["task"].to_pylist() == ["Music_Tagging"], "one task alone"
    assert load(tmp_path, limit=2).num_rows == 2


def test_ranking_tasks_take_no_part_in_the_scaling_study(tmp_path):
    publish(tmp_path, "Duration_Ordinal_Selection", row())
    publish(tmp_path, "Duration_Extremes_Extraction", row())
    ordinal, extremes = sorted(load(tmp_path).to_pylist(), key=lambda item: item["task"], reverse=True)
    assert ordinal["ranking"] and not scalable(ordinal, 3)
    assert not extremes["ranking"] and scalable(extremes, 3)


@pytest.mark.parametrize(
    ("instruction", "ranks"),
    [
        ("Select the third longest audio.", True),
        ("Pick the 2nd-fastest speaker", True),
        ("Which is the second to last to speak?", True),
        ("Which clip has the Fourth most words?", True),
        ("Select the longest audio.", False),
        ("Which clip lasts 5 seconds at most?", False),
        ("Which clip has a second guest?", False),
        ("Select the third test tone.", False),
    ],
)
def test_what_asks_for_a_rank(tmp_path, instruction, ranks):
    publish(tmp_path, "Key_Detection", row(instruction=instruction))
    assert load(tmp_path)["ranking"].to_pylist() == [ranks]


def ranking(table):
    return {item["task"] for item in table.to_pylist() if item["ranking"]}


def test_a_task_also_ranks_where_an_instruction_says_so(tmp_path):
    third = row(id=2, instruction="Select the audio with the third highest pitch.")
    publish(tmp_path, "Pitch_Level_Distinction", row(id=1, instruction="Select the highest pitch."), third)
    publish(
        tmp_path, "Duration_Precise_Selection", row(instruction="Select the 5 second clip, not the last.")
    )
    assert ranking(load(tmp_path)) == {"Pitch_Level_Distinction"}
    assert load(tmp_path)["ranking"].to_pylist().count(True) == 2, "both of its rows"


def test_ranking_tasks_can_be_named(tmp_path):
    for task in ("Ordinal_Speaking_Rate", "Key_Detection", "Music_Tagging"):
        publish(tmp_path, task, row())
    assert ranking(load(tmp_path, ranking_tasks=("Key_Detection",))) == {"Key_Detection"}
    assert ranking(load(tmp_path, ranking_tasks=())) == set()
    with pytest.raises(
        TableError, match="no task 'Key'; there is Key_Detection, Music_Tagging, Ordinal_Speaking_Rate"
    ):
        load(tmp_path, ranking_tasks=("Key",))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"answer": "(F)"}, "gold_out_of_range: (F) is audio6"),
        ({"answer": "(C)", "audio3": None}, "gold_out_of_range: (C) is audio3"),
        ({"answer": "the loudest"}, "bad_answer"),
        ({"answer": None}, "bad_answer"),
        ({"instruction": " "}, "empty_question"),
        ({f"audio{place}": None for place in (2, 3, 4, 5)}, "too_few_candidates: 1"),
        (
            {"audio2": clip(0.5) | {"path": "x.wav"}},
            "same_clip_twice: candidates 2 (audio2: x.wav) and 5 (audio5: 0.5.wav) are the same file",
        ),
        ({"audio2": {"bytes": None, "path": "lost.wav"}}, "missing_file: the row names 'lost.wav'"),
    ],
)
def test_a_bad_row_says_why_and_where_and_keeps_its_place(tmp_path, parts, reason):
    rows = (row(id=1), row(id=2, **parts), row(id=3))
    publish(tmp_path, "Music_Tagging", *rows)
    table = load(tmp_path)
    errors = table["item_error"].to_pylist()
    assert errors[0] is None and errors[2] is None
    assert errors[1].startswith(reason) and errors[1].endswith(
        "(Music_Tagging/data/test-00000-of-00001.parquet, row 2)"
    )
    assert table["gold_index"].to_pylist() == [4, None, 4]


def test_another_layout_is_told_what_is_expected(tmp_path):
    with pytest.raises(TableError, match="instruction, answer, audio1"):
        load(tmp_path)
    other = publish(tmp_path, "Music_Tagging", row())
    with pytest.raises(TableError, match="no Parquet file of split 'train'"):
        load(other, split="train")
    lacking = {k: v for k, v in row().items() if k != "answer"}
    with pytest.raises(TableError, match="no column 'answer'"):
        load(publish(tmp_path / "more", "Music_Tagging", lacking))
    (tmp_path / "Music_Tagging" / "data" / "test-00000-of-00001.parquet").write_bytes(b"PAR1")
    with pytest.raises(TableError, match="not a whole Parquet file"):
        load(tmp_path)


def test_the_35_tasks_of_the_paper():
    # Figure 1: 3 + 4 + 8 + 5 + 5 + 5 + 5 = 35 tasks of 50 items.
    assert list(TASKS) == list(DIMENSIONS)
    assert [len(tasks) for tasks in TASKS.values()] == [3, 4, 8, 5, 5, 5, 5]
    assert set(RANKING_TASKS) <= {task for tasks in TASKS.values() for task in tasks}
