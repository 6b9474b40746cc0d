"""MMAR and MMAU test-mini as their authors lay them out: folder, tar, object store; per-group results; prediction files."""

import io
import json
import re
import tarfile
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import soundfile
from omegaconf import OmegaConf

from operators.aggregate import summarise
from operators.answers import extract_answer
from operators.benchmarks.archives import opened, unpacked
from operators.benchmarks.identity import notes_of
from operators.breakdown import breakdown
from operators.lalms.recorded import Recorded
from operators.schema import result_schema
from operators.tables import TableError
from pipelines.at_hand import probe_at_hand
from pipelines.config import CONF, build
from pipelines.phases import Journal
from pipelines.record import write_predictions
from pipelines.responses import load_questions

MMAR = [
    {
        "id": f"BV1_{n}",
        "audio_path": f"./audio/BV1_{n}.wav",
        "question": "Who speaks?",
        "choices": ["A man", "A woman", "A child"],
        "answer": "A woman",
        "modality": modality,
        "category": layer,
        "sub-category": "Speaker Analysis",
        "language": "en",
        "source": "internet",
        "url": "unknown",
        "timestamp": "00:00,00:02",
    }
    for n, (modality, layer) in enumerate(
        [("speech", "Perception Layer"), ("mix-sound-speech", "Semantic Layer")]
    )
]
MMAU = [
    {
        "id": "3f-1",
        "audio_id": "./test-mini-audios/3f-1.wav",
        "question": "What is the source?",
        "choices": ["Man", "Woman", "Child, or robot,]"],
        "answer": "Man",
        "dataset": "AudioSet",
        "task": "sound",
        "split": "test-mini",
        "category": "Reasoning",
        "sub-category": "Acoustic Source Inference",
        "difficulty": "medium",
    }
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("AUDIO_REASONING_CACHE", str(tmp_path / "cache"))


def benchmark(option, path, **fields):
    config = OmegaConf.load(CONF / "benchmark" / f"{option}.yaml")
    return build(OmegaConf.merge(config, {"path": str(path), **fields}), "benchmark")


def wav() -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.zeros(1600), 16000, format="WAV")
    return file.getvalue()


def tar(path, names, extra=()):
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = len(wav())
            archive.addfile(entry, io.BytesIO(wav()))
        for entry in extra:
            archive.addfile(entry)
    return path


def mmar_folder(folder, packed=True):
    folder.mkdir(exist_ok=True)
    (folder / "MMAR-meta.json").write_text(json.dumps(MMAR), "utf-8")
    if packed:
        tar(folder / "mmar-audio.tar.gz", [f"audio/BV1_{n}.wav" for n in range(2)])
    return folder


def test_mmar_is_read_from_its_folder_and_its_audio_from_the_tar(tmp_path):
    rows = benchmark("mmar", mmar_folder(tmp_path / "mmar")).load().to_pylist()
    assert [row["item_id"] for row in rows] == ["BV1_0", "BV1_1"]
    assert [row["gold_index"] for row in rows] == [1, 1]
    assert [row["category"] for row in rows] == ["Perception Layer", "Semantic Layer"]
    assert json.loads(rows[1]["groups"]) == {
        "modality": "mix-sound-speech",
        "sub-category": "Speaker Analysis",
    }
    for row in rows:
        assert soundfile.info(row["audio_uris"][0]).frames == 1600


def test_audio_that_lies_unpacked_is_used_where_it_is(tmp_path):
    folder = mmar_folder(tmp_path / "mmar")
    with tarfile.open(folder / "mmar-audio.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    row = benchmark("mmar", folder).load().to_pylist()[0]
    assert row["audio_uris"] == [str(folder / "audio" / "BV1_0.wav")]
    assert not (tmp_path / "cache").exists()


def test_the_file_and_a_tar_of_all_are_paths_too(tmp_path):
    folder = mmar_folder(tmp_path / "mmar", packed=False)
    by_file = benchmark("mmar", folder / "MMAR-meta.json").load()
    assert by_file["audio_uris"][0].as_py() == [str(folder / "audio" / "BV1_0.wav")]
    with tarfile.open(tmp_path / "all.tar", "w") as archive:
        archive.add(folder, "MMAR")
    by_tar = benchmark("mmar", tmp_path / "all.tar").load()
    assert by_tar.drop_columns("audio_uris").equals(by_file.drop_columns("audio_uris"))
    assert by_tar["audio_uris"][0].as_py()[0].endswith("/MMAR/audio/BV1_0.wav")


def test_an_object_store_is_read_as_a_folder(tmp_path):
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/mmar/MMAR-meta.json", json.dumps(MMAR).encode())
    try:
        questions, audio = opened("memory://bucket/mmar", ["MMAR-meta.json"])
        assert (questions, audio) == ("memory://bucket/mmar/MMAR-meta.json", "memory://bucket/mmar")
        files.pipe(
            "/bucket/mmar/mmar-audio.tar.gz", tar(tmp_path / "a.tar.gz", ["audio/BV1_0.wav"]).read_bytes()
        )
        _, audio = opened("memory://bucket/mmar", ["MMAR-meta.json"], ["mmar-audio.tar.gz"])
        assert soundfile.info(f"{audio}/audio/BV1_0.wav").frames == 1600
    finally:
        files.rm("/bucket", recursive=True)


def test_mmau_with_the_trailing_commas_seen_in_the_wild(tmp_path):
    text = json.dumps(MMAU, indent=1).replace("\n }", ",\n }").replace("]\n", ",\n]\n", 1)
    assert text.count(",\n }") == 1 and "Child, or robot,]" in text
    (tmp_path / "mmau-test-mini.json").write_text(text, "utf-8")
    row = benchmark("mmau_mini", tmp_path).load().to_pylist()[0]
    assert row["choices"] == ["Man", "Woman", "Child, or robot,]"]
    assert (row["category"], row["gold_index"], row["item_error"]) == ("sound", 0, None)
    assert json.loads(row["groups"])["difficulty"] == "medium"
    assert row["audio_uris"] == [str(tmp_path / "test-mini-audios" / "3f-1.wav")]


@pytest.mark.parametrize("where", ["", "deep/"])
def test_a_name_that_no_disk_takes_is_a_missing_clip(tmp_path, where):
    rows = [{**MMAR[0], "audio_path": f"{where}{'x' * 300}"}, MMAR[1]]
    (tmp_path / "MMAR-meta.json").write_text(json.dumps(rows))
    read = benchmark("mmar", tmp_path).load().to_pylist()
    assert [row["item_error"] for row in read] == [None, None]
    journal = Journal()
    heard = probe_at_hand(benchmark("mmar", tmp_path).load(), journal)
    assert heard.notes and "none of the 2 local clips is here" in heard.notes[0]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("foo://x/MMAR", r"'foo://x/MMAR\S*' is neither a path nor an address"),
        ("http://[x/MMAR", "is not an address"),
        ("foo://x/all.tar", "'foo://x/all.tar' is neither a path nor an address"),
        ("none", r"none is no folder with MMAR-meta\.json or MMAR-meta\.jsonl"),
        ("", r"say where mmar is: benchmark\.path="),
    ],
)
def test_a_path_that_leads_nowhere_is_told_in_words(path, said):
    with pytest.raises(TableError, match=said):
        benchmark("mmar", path).load()


def test_a_folder_may_be_called_like_an_archive_and_lie_at_home(tmp_path, monkeypatch):
    mmar_folder(tmp_path / "mmar.tar")
    assert benchmark("mmar", tmp_path / "mmar.tar").load().num_rows == len(MMAR)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert benchmark("mmar", "~/mmar.tar").load().num_rows == len(MMAR)


def test_an_exchanged_archive_is_unpacked_anew_and_an_equal_one_is_not(tmp_path):
    archive = tar(tmp_path / "a.tar.gz", ["one.wav"])
    first = unpacked(str(archive))
    assert unpacked(str(archive)) == first
    tar(archive, ["one.wav", "two.wav"])
    assert unpacked(str(archive)) != first


@pytest.mark.parametrize("name", ["../outside.wav", "/etc/outside.wav", "link"])
def test_an_archive_cannot_write_or_point_outside(tmp_path, name):
    evil = tarfile.TarInfo(name)
    if name == "link":
        evil.type, evil.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive = tar(tmp_path / "evil.tar.gz", ["audio/x.wav"], extra=[evil])
    if name.startswith("/"):
        assert (tmp_path / "cache") in Path(unpacked(str(archive))).parents
        assert not Path("/etc/outside.wav").exists()
    else:
        with pytest.raises(TableError, match=r"evil\.tar\.gz cannot be unpacked"):
            unpacked(str(archive))
        assert not (tmp_path / "cache" / "outside.wav").exists()
    assert not [path for path in (tmp_path / "cache" / "unpacked").iterdir() if path.name.startswith("tmp")]


def test_a_plan_leaves_the_audio_packed(tmp_path):
    folder = mmar_folder(tmp_path / "mmar")
    made = benchmark("mmar", folder)
    assert load_questions(made, to_plan=True).num_rows == len(MMAR)
    assert not (tmp_path / "cache").exists()
    assert load_questions(made).num_rows == len(MMAR) and (tmp_path / "cache" / "unpacked").is_dir()


def test_the_questions_may_be_lines(tmp_path):
    folder = mmar_folder(tmp_path / "mmar")
    rows = json.loads((folder / "MMAR-meta.json").read_text("utf-8"))
    (folder / "MMAR-meta.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    whole = benchmark("mmar", folder).load()
    (folder / "MMAR-meta.json").unlink()
    assert benchmark("mmar", folder).load()["item_id"].equals(whole["item_id"])


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(TableError, match=r"holds no MMAR-meta\.json or MMAR-meta\.jsonl; give the folder"):
        benchmark("mmar", tmp_path).load()
    with pytest.raises(TableError, match=r"benchmark\.path=<folder with mmau-test-mini\.json>"):
        build(OmegaConf.load(CONF / "benchmark" / "mmau_mini.yaml"), "benchmark").load()
    (tmp_path / "x.tar").write_bytes(b"no tar")
    with pytest.raises(TableError, match=r"x\.tar cannot be unpacked"):
        benchmark("mmar", tmp_path / "x.tar").load()


def results(items, answers, model="m"):
    """Rows of a run in which `model` chose `answers` (None: no answer)."""
    schema = result_schema()
    about = {"model": model, "trial": 0, "response": "x", "answer_reason": None}
    rows = [
        {**item, **about, "answer_index": index, "answer_index_paper": index}
        for item, index in zip(items.to_pylist(), answers, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=schema)


def official_match(answer, prediction, choices):
    """The rule of MMAU's and MMAR's scripts: all words of the answer, and none that only a wrong choice has."""
    words = [set(re.findall(r"\w+", text.lower())) for text in (answer, prediction)]
    wrong = set().union(*(set(re.findall(r"\w+", choice.lower())) for choice in choices)) - words[0]
    return bool(words[1]) and words[0] <= words[1] and not words[1] & wrong


def test_predictions_score_the_same_by_the_official_rule_and_are_read_back(tmp_path):
    made = benchmark("mmar", mmar_folder(tmp_path / "mmar"))
    items = made.load()
    files = made.predictions(results(items, [1, None]))
    assert list(files) == ["m"]
    keys = (
        "model_prediction",
        "answer_prediction",
        "model_output",
    )  # each is what some official script reads
    assert [{k: v for k, v in row.items() if k not in keys} for row in files["m"]] == MMAR
    assert [[row[key] for key in keys] for row in files["m"]] == [["A woman"] * 3, [""] * 3]
    right = [official_match(row["answer"], row["model_prediction"], row["choices"]) for row in files["m"]]
    overall = summarise(results(items, [1, None])).to_pylist()[0]
    assert sum(right) / len(right) == overall["accuracy"] == 0.5  # 1 of 2 questions

    (tmp_path / "m.json").write_text(json.dumps(files["m"]), "utf-8")
    back = Recorded(path=str(tmp_path / "m.json")).responses(items).table.to_pylist()
    assert [row["response"] for row in back] == ["A woman", ""]


def test_what_is_no_item_counts_neither_in_our_accuracy_nor_in_that_of_the_official_script(tmp_path):
    # The official scripts end at a question without choices or an answer, and pass over one without a prediction.
    without = {name: cell for name, cell in MMAR[1].items() if name != "choices"}
    rows = [MMAR[0], {**without, "id": "x"}, {**MMAR[1], "id": "y", "answer": None}, None]
    rows += [{**MMAR[1], "model_prediction": "of another run", "answer": "robot"}]
    (tmp_path / "MMAR-meta.json").write_text(json.dumps(rows))
    made = benchmark("mmar", tmp_path)
    items = made.load()
    table = results(items, [1, None, 0, None, 0])
    file = made.predictions(table)["m"]
    assert [row.get("id") for row in file] == ["BV1_0", "x", "y", "BV1_1"], "what is no question is left out"
    scored = [row for row in file if "answer_prediction" in row]
    assert scored == [row for row in file if "model_prediction" in row] and len(scored) == 1
    overall = summarise(table).to_pylist()[0]
    assert (overall["n_valid"], overall["accuracy"]) == (1, 1.0)
    assert official_match(scored[0]["answer"], scored[0]["answer_prediction"], scored[0]["choices"])


@pytest.mark.parametrize(
    ("choices", "answer"),
    [
        (["(A) A man", "(B) A woman"], "A woman"),
        (["A man", "A woman"], "B"),
        (["A man", "A woman"], "(B) A woman"),
    ],
)
def test_the_official_rule_agrees_where_only_choices_or_only_answers_have_labels(tmp_path, choices, answer):
    rows = [
        {**MMAR[0], "choices": choices, "answer": answer},
        {**MMAR[1], "choices": choices, "answer": answer},
    ]
    (tmp_path / "MMAR-meta.json").write_text(json.dumps(rows))
    made = benchmark("mmar", tmp_path)
    items = made.load()
    file = made.predictions(results(items, [1, 0]))["m"]
    assert [official_match(row["answer"], row["model_prediction"], row["choices"]) for row in file] == [
        True,
        False,
    ]
    (tmp_path / "m.json").write_text(json.dumps(file))
    said = Recorded(str(tmp_path / "m.json")).responses(items).table["response"].to_pylist()
    read = [
        extract_answer(text, row["choices"]).index for text, row in zip(said, items.to_pylist(), strict=True)
    ]
    assert read == [1, 0]


def test_predictions_find_their_questions_by_the_column_and_the_id_that_the_items_have(tmp_path):
    rows = [{("key" if k == "id" else k): v for k, v in row.items()} for row in MMAR]
    rows[0]["key"] = f" {rows[0]['key']} "
    folder = mmar_folder(tmp_path / "mmar-v1.0")
    (folder / "MMAR-meta.json").write_text(json.dumps(rows), "utf-8")
    made = benchmark("mmar", folder, columns={"audio": "audio_path", "id": "key"})
    files = made.predictions(results(made.load(), [1, 0]))
    assert [row["model_prediction"] for row in files["m"]] == ["A woman", MMAR[1]["choices"][0]]


def test_a_prediction_is_the_choice_as_the_benchmark_writes_it(tmp_path):
    labelled = {"choices": ["(A) A man", "(B) A woman \ud83d"], "answer": "(B) A woman \ud83d"}
    rows = [{**MMAR[0], **labelled}, MMAR[1]]
    folder = mmar_folder(tmp_path / "mmar")
    (folder / "MMAR-meta.json").write_text(json.dumps(rows), "utf-8")
    made = benchmark("mmar", folder)
    items = made.load()
    assert items["choices"][0].as_py() == ["A man", "A woman \ufffd"], "a prompt has labels of its own"
    first = made.predictions(results(items, [1, None]))["m"][0]
    assert first["model_prediction"] == labelled["answer"]
    assert official_match(first["answer"], first["model_prediction"], first["choices"])


def test_predictions_of_odd_ids_are_found_and_can_be_written(tmp_path):
    for column, ids in (("question_id", [3.0, "b"]), ("id", ["half \ud83d", "b"])):
        rows = [
            {column: name, **{k: v for k, v in row.items() if k != "id"}}
            for name, row in zip(ids, MMAR, strict=True)
        ]
        folder = mmar_folder(tmp_path / column)
        (folder / "MMAR-meta.json").write_text(json.dumps(rows), "utf-8")
        made = benchmark("mmar", folder)
        files = made.predictions(results(made.load(), [1, 0]))
        assert [row["model_prediction"] for row in files["m"]] == ["A woman", MMAR[1]["choices"][0]]
        write_predictions(folder, files)
        written = json.loads((folder / "predictions" / "m.json").read_text("utf-8"))
        assert [row[column] for row in written] == ids, "as the benchmark has them"
        # A run that is repeated writes over its files; names that only look alike on a disk have one file each.
        write_predictions(folder, {"m": [], "m/": [], "m?": []})
        texts = {path.name: path.read_text() for path in (folder / "predictions").iterdir()}
        assert texts == {"m.json": "[]\n", "m_.json": "[]\n", "m_-1.json": "[]\n"}


def test_names_of_models_that_no_disk_takes_or_tells_apart_have_one_file_each(tmp_path):
    names = ["x" * 400, "x" * 401, "y" * 400 + "-trial0", "\u8c01" * 120, "M", "m", ".."]
    write_predictions(tmp_path, {name: [{"of": name}] for name in names})
    written = {path.stem: json.loads(path.read_text("utf-8"))[0]["of"] for path in tmp_path.rglob("*.json")}
    assert len({stem.casefold() for stem in written}) == len(names) and sorted(written.values()) == sorted(
        names
    )
    assert {"M", "m-1", "model", "x" * 200, "x" * 200 + "-1", "y" * 193 + "-trial0"} < set(written)


def test_the_environment_says_where_each_benchmark_of_a_sweep_lies(tmp_path, monkeypatch):
    config = OmegaConf.load(CONF / "benchmark" / "mmar.yaml")
    monkeypatch.delenv("MMAR_PATH", raising=False)
    with pytest.raises(TableError, match=r"benchmark\.path=<folder with MMAR-meta\.json>, or MMAR_PATH"):
        build(config, "benchmark").load()
    monkeypatch.setenv("MMAR_PATH", str(mmar_folder(tmp_path / "mmar")))
    assert build(config, "benchmark").load().num_rows == len(MMAR)


def test_results_are_broken_down_by_every_kind_of_group(tmp_path):
    items = benchmark("mmar", mmar_folder(tmp_path / "mmar")).load()
    summary = summarise(results(items, [1, 0]))
    kinds = list(dict.fromkeys(summary["group_kind"].to_pylist()))
    assert kinds == ["overall", "category", "modality", "sub-category"]
    cells = {(row["group_kind"], row["group"]): row for row in summary.to_pylist()}
    assert cells["modality", "speech"]["accuracy"] == 1.0
    assert cells["modality", "mix-sound-speech"]["accuracy"] == 0.0
    assert cells["sub-category", "Speaker Analysis"]["accuracy"] == 0.5
    text = breakdown(summary)
    assert "| speech | 100.0 (1/1) [20.7, 100.0], - |" in text and "by sub-category" not in text


def packed(path, rows, clips, questions="MMAR-meta.json", mode="w:gz"):
    """A tar with questions and clips at these places."""
    with tarfile.open(path, mode) as archive:
        for name, data in [(questions, json.dumps(rows).encode()), *((clip, wav()) for clip in clips)]:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize(
    ("name", "mode", "around", "questions"),
    [
        ("a.tar.bz2", "w:bz2", "", "MMAR-meta.json"),
        ("a.tar.xz", "w:xz", "MMAR/", "MMAR/MMAR-meta.json"),
        ("a.tar.gz", "w:gz", "mmar-audio/", "meta/MMAR-meta.json"),
        ("a.tgz", "w:gz", "mmar-audio/", "MMAR-meta.json"),
    ],
)
def test_clips_are_found_whatever_folder_an_archive_has_around_them(tmp_path, name, mode, around, questions):
    clips = [f"{around}audio/BV1_{n}.wav" for n in range(2)]
    rows = benchmark("mmar", packed(tmp_path / name, MMAR, clips, questions, mode)).load().to_pylist()
    assert all(soundfile.info(row["audio_uris"][0]).frames == 1600 for row in rows)
    beside = mmar_folder(tmp_path / "beside", packed=False)
    tar(beside / "mmar-audio.tar.gz", clips)
    rows = benchmark("mmar", beside).load().to_pylist()
    assert all(soundfile.info(row["audio_uris"][0]).frames == 1600 for row in rows)


def test_what_a_mac_adds_to_an_archive_is_no_benchmark(tmp_path):
    path = packed(tmp_path / "a.tar.gz", MMAR, ["m/audio/BV1_0.wav", "m/audio/BV1_1.wav"], "m/MMAR-meta.json")
    with tarfile.open(path) as whole, tarfile.open(tmp_path / "b.tar", "w") as twin:
        stray = tarfile.TarInfo("._x/MMAR-meta.json")
        stray.size = 4
        twin.addfile(stray, io.BytesIO(b"\0\1\2\3"))
        for member in whole:
            twin.addfile(member, whole.extractfile(member))
    assert benchmark("mmar", tmp_path / "b.tar").load().num_rows == 2


@pytest.mark.parametrize("named", ["3f-1", "3f-1.wav", "./test-mini-audios/3f-1.wav"])
def test_an_id_of_mmau_is_found_among_its_clips(tmp_path, named):
    (tmp_path / "test-mini-audios").mkdir()
    (tmp_path / "test-mini-audios" / "3f-1.wav").write_bytes(wav())
    (tmp_path / "mmau-test-mini.json").write_text(json.dumps([{**MMAU[0], "audio_id": named}]))
    (row,) = benchmark("mmau_mini", tmp_path).load().to_pylist()
    assert row["audio_uris"] == [str(tmp_path / "test-mini-audios" / "3f-1.wav")]


def test_a_copy_without_some_columns_is_read_and_says_what_it_lacks(tmp_path):
    row = {name: cell for name, cell in MMAU[0].items() if name not in ("difficulty", "task", "audio_id")}
    (tmp_path / "mmau-test-mini.json").write_text(json.dumps([{**row, "audio_path": "a.wav"}]))
    made = benchmark("mmau_mini", tmp_path)
    items = made.load()
    (item,) = items.to_pylist()
    assert item["audio_uris"] == [str(tmp_path / "a.wav")] and item["category"] == "Reasoning"
    assert json.loads(item["groups"]) == {"sub-category": "Acoustic Source Inference"}
    assert [re.search("no column '([^']+)'", note)[1] for note in notes_of(items)] == [
        "audio_id", "task", "difficulty",
    ]  # fmt: skip
    assert made.predictions(results(items, [0]))["m"][0]["model_prediction"] == "Man"


def test_the_first_items_have_all_their_rows_in_a_file_of_predictions(tmp_path):
    rows = [MMAR[0], MMAR[0], MMAR[1], {**MMAR[1], "id": "third"}]
    (tmp_path / "MMAR-meta.json").write_text(json.dumps(rows))
    made = benchmark("mmar", tmp_path, limit=2)
    items = made.load()
    assert items["item_id"].to_pylist() == ["BV1_0", "BV1_1"]
    assert [row["id"] for row in made.predictions(results(items, [1, 0]))["m"]] == ["BV1_0", "BV1_0", "BV1_1"]


def test_recorded_predictions_may_have_trailing_commas_as_benchmarks_do(tmp_path):
    items = benchmark("mmar", mmar_folder(tmp_path / "mmar")).load()
    file = tmp_path / "said.json"
    file.write_text('[{"id": "BV1_0", "model_prediction": "A man, ]",},]')
    assert Recorded(str(file)).responses(items).table["response"].to_pylist() == ["A man, ]", None]
    (tmp_path / "said.csv").write_text('id,response\nBV1_0,"A man, ]"\n')
    read = Recorded(str(tmp_path / "said.csv")).responses(items).table["response"].to_pylist()
    assert read[0] == "A man, ]"
