"""Benchmarks built from sounds with known properties and from real corpora; their gold answers checked from outside."""

import csv
import functools
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hydra import compose, initialize_config_dir

from operators.audio import decode, pcm_hash
from operators.benchmarks.mugen import Mugen
from operators.benchmarks.mugen_sample import ITEMS, MugenSample
from operators.construction.balance import position_table
from operators.construction.measurements import Measurements
from operators.construction.proof import check
from pipelines.build_mugen import main
from pipelines.config import CONF, ConfigError
from tests.operators.construction.synthetic import RATE, bursts, clicks, corpus, voice
from tests.shared_data import shared

# Whole runs on Ray: more time than the fast part has.
pytestmark = pytest.mark.weights

pytest.importorskip("librosa", reason="the extra 'build' is not installed")
pytest.importorskip("pyloudnorm", reason="the extra 'build' is not installed")

SEVEN = {
    "Semantics & Pragmatics",
    "Speaker & Demographics",
    "Affective & Paralinguistic State",
    "Temporal Awareness",
    "Acoustic Scene & Event Analysis",
    "Music Analysis",
    "Compositional Acoustic Reasoning",
}


@pytest.fixture(scope="module", autouse=True)
def kept(tmp_path_factory):
    """Measurements are kept for this file's tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUDIO_REASONING_CACHE", str(tmp_path_factory.mktemp("kept")))
        yield


def build(output: Path, *overrides: str) -> list[dict]:
    """Run the pipeline in this process; the lines of items.jsonl."""
    with initialize_config_dir(str(CONF), version_base="1.3"):
        main(compose("build_mugen", overrides=[*overrides, f"output={output}"]))
    return lines(output)


def lines(output: Path) -> list[dict]:
    return [json.loads(line) for line in (output / "items.jsonl").read_text(encoding="utf-8").splitlines()]


def corpora(**tables: str | Path) -> list[str]:
    """Overrides that name these labels tables, of CC0 clips, and no others."""
    named = [f"+corpora.{name}.labels={table}" for name, table in tables.items()]
    return ["~corpora", *named, *(f"+corpora.{name}.licence=CC0-1.0" for name in tables)]


def name_of(row: dict, path: str) -> str:
    """The name that a clip has in its corpus."""
    return row["source"][path].split("/")[1].split(".wav")[0]


def gold_name(row: dict) -> str:
    return name_of(row, row["candidates"][row["answer_index"]])


def names(row: dict) -> list[str]:
    return [name_of(row, path) for path in row["candidates"]]


def voices(folder: Path) -> Path:
    """Clips called by what they are: pitch in Hz, length in units of 0.1 s, level in dB below full scale."""
    made, labels = {}, {}
    for i in range(8):
        pitch, tenths, level = round(100 * 1.25**i), round(5 * 1.3 ** ((3 * i) % 8)), 4 * ((5 * i) % 8) + 3
        name = f"{pitch}_{tenths}_{level}"
        made[name] = voice(pitch, tenths / 10, 10 ** (-level / 20))
        labels[name] = {"content": "speech" if i % 2 else "sound", "event": ("hum", "buzz")[i % 2]}
    return corpus(folder, made, labels)


def test_measured_golds_are_what_the_clips_were_made_as(tmp_path):
    # which part of a clip's name decides, and which place among the five in ascending order is right
    rules = {"longest": (1, -1), "shortest": (1, 0), "third_longest": (1, -3)}
    rules |= {"highest_voice": (0, -1), "lowest_voice": (0, 0)}
    rules |= {"loudest": (2, 0), "quietest": (2, -1)}  # the third part counts decibels below full scale
    everything = [f"+tasks.{task}.where.content=[speech,sound]" for task in rules]
    table = voices(tmp_path / "voices")
    rows = build(tmp_path / "out", *corpora(v=table), *everything, f"only=[{','.join(rules)}]")
    assert {row["task"] for row in rows} == set(rules)
    for row in rows:
        part, place = rules[row["task"]]
        known = [int(name.split("_")[part]) for name in names(row)]
        assert gold_name(row).split("_")[part] == str(sorted(known)[place])
        assert row["ranking"] == (row["task"] == "third_longest")


def test_tempo_pauses_and_speech_rate_follow_how_clips_were_made(tmp_path):
    beats = {f"bpm{bpm}": clicks(bpm) for bpm in (50, 60, 75, 90, 120)}
    talk = {f"pauses{k}": bursts([0.5] * k) for k in (0, 1, 2, 3, 6)}
    rates = {f"words{10 * k}": voice(150, 4 / k) for k in (1, 2, 3, 4, 5)}  # four words in 4/k s
    labels = {name: {"content": "music", "transcript": ""} for name in beats}
    labels |= {name: {"content": "speech", "transcript": ""} for name in talk}
    labels |= {name: {"content": "noise", "transcript": "one two three four"} for name in rates}
    table = corpus(tmp_path / "c", beats | talk | rates, labels)
    wanted = ["fastest_music", "slowest_music", "most_pauses", "fastest_speech", "slowest_speech"]
    rows = build(tmp_path / "out", *corpora(c=table), f"only=[{','.join(wanted)}]")
    golds = {row["task"]: gold_name(row) for row in rows}
    assert golds == {
        "fastest_music": "bpm120",
        "slowest_music": "bpm50",
        "most_pauses": "pauses6",
        "fastest_speech": "words50",
        "slowest_speech": "words10",
    }


def test_the_same_seed_gives_the_same_files_and_another_one_others(tmp_path):
    table = voices(tmp_path / "voices")
    arguments = [
        *corpora(v=table),
        "only=[longest,event,loudest_of_event]",
        "n_candidates=4",
    ]
    build(tmp_path / "a", *arguments)
    build(tmp_path / "b", *arguments)
    build(tmp_path / "c", *arguments, "seed=1")
    for name in ("items.jsonl", "build.json", "DATASHEET.md"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert lines(tmp_path / "a") != lines(tmp_path / "c")
    assert str(tmp_path) not in (tmp_path / "a" / "build.json").read_text(), "no path of this computer"


def test_copies_are_the_same_bytes_under_names_that_say_nothing(tmp_path):
    table = voices(tmp_path / "voices")
    rows = build(tmp_path / "copied", *corpora(v=table), "only=[longest]")
    for row in rows:
        for path in row["candidates"]:
            original = table.parent / f"{name_of(row, path)}.wav"
            assert (tmp_path / "copied" / path).read_bytes() == original.read_bytes()
            assert Path(path).stem == pcm_hash(decode(str(original)))[:20]
    referenced = build(tmp_path / "referenced", *corpora(v=table), "only=[longest]", "audio=reference")
    assert not (tmp_path / "referenced" / "audio").exists()
    for row, twin in zip(rows, referenced, strict=True):
        assert names(row) == names(twin)
        for path in twin["candidates"]:
            assert (tmp_path / "referenced" / path).resolve() == (
                table.parent / f"{name_of(twin, path)}.wav"
            ).resolve()


def test_two_processes_measure_what_one_does(tmp_path):
    table = voices(tmp_path / "voices")
    arguments = [*corpora(v=table), "only=[loudest]", "tasks.loudest.where.content=[speech,sound]"]
    assert build(tmp_path / "one", *arguments) == build(tmp_path / "two", *arguments, "workers=2")


def test_clips_that_cannot_be_used_are_named_counted_and_in_no_item(tmp_path, capsys):
    table = voices(tmp_path / "voices")
    folder = table.parent
    first = sorted(folder.glob("*.wav"))[0]
    (folder / "twin.wav").write_bytes(first.read_bytes())
    (folder / "text.wav").write_text("this is no sound")
    samples, _ = soundfile.read(first)
    soundfile.write(folder / "flac twin.flac", samples, RATE, subtype="PCM_16")
    with open(table, newline="") as file:
        content = next(cells[1:] for cells in csv.reader(file) if cells[0] == first.name)
    with open(table, "a", newline="") as file:
        csv.writer(file).writerows(
            [[name, *content] for name in ("twin.wav", "flac twin.flac", "text.wav", "gone.wav")]
        )
    rows = build(tmp_path / "out", *corpora(v=table), "only=[longest]")
    record = json.loads((tmp_path / "out" / "build.json").read_text())
    reasons = {clip["name"]: clip["reason"].partition(":")[0] for clip in record["left_out"]}
    later = {"twin.wav", "flac twin.flac"}
    assert reasons == {
        "text.wav": "not_audio",
        "gone.wav": "missing_file",
        **dict.fromkeys(later, "duplicate"),
    }
    used = {source for row in rows for source in row["source"].values()}
    assert not any(name in source for name in reasons for source in used)
    printed = capsys.readouterr()
    assert "left out: v gone.wav (line 13): missing_file" in printed.err
    assert "4 left out" in printed.out
    sheet = (tmp_path / "out" / "DATASHEET.md").read_text()
    assert "| duplicate | 2 | v twin.wav, v flac twin.flac |" in sheet


def test_the_datasheet_counts_what_the_items_are(tmp_path):
    table = voices(tmp_path / "voices")
    rows = build(
        tmp_path / "out", *corpora(v=table), "only=[longest,third_longest,genre]", "items_per_task=7"
    )
    sheet = (tmp_path / "out" / "DATASHEET.md").read_text()
    record = json.loads((tmp_path / "out" / "build.json").read_text())
    tasks = Counter(row["task"] for row in rows)
    assert f"| Temporal Awareness | {tasks['longest'] + tasks['third_longest']} |" in sheet
    for task, counts in position_table(rows, 5).items():
        assert f"| {task} | {' | '.join(map(str, counts))} |" in sheet
    assert "| v | CC0-1.0 | 8 |" in sheet
    assert "| duration | s | times | 1.25 |" in sheet
    assert "| genre | 0 | no_label: no clip has the label 'genre' |" in sheet
    assert record["statistics"]["audio_clips"] == 5 * len(rows)
    durations = [
        soundfile.info(tmp_path / "out" / path).duration for row in rows for path in row["candidates"]
    ]
    assert record["statistics"]["seconds_mean"] == pytest.approx(np.mean(durations))
    assert record["statistics"]["seconds_sd"] == pytest.approx(np.std(durations, ddof=1))


def test_an_output_that_holds_something_is_not_overwritten_unasked(tmp_path):
    table, output = voices(tmp_path / "voices"), tmp_path / "out"
    arguments = [*corpora(v=table), "only=[longest]"]
    build(output, *arguments)
    with pytest.raises(ConfigError, match=r"holds a benchmark; .* overwrite=true"):
        build(output, *arguments)
    (output / "notes.txt").write_text("mine")
    before = {path.name for path in (output / "audio").iterdir()}
    build(output, *arguments, "overwrite=true", "items_per_task=1")
    assert (output / "notes.txt").read_text() == "mine"
    assert len(list((output / "audio").iterdir())) == 5 < len(before)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds other files"):
        build(tmp_path / "other", *arguments, "overwrite=true")


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (["~corpora"], r"name a corpus.*corpora\.mine\.labels"),
        (["only=[longes]"], r"only: no task is called 'longes'.*longest"),
        (["audio=move"], "'copy' or 'reference', not 'move'"),
        (["n_candidates=1"], "n_candidates: at least 2, not 1"),
        (["+margins.durations=2"], "durations.*did you mean 'duration'"),
        (["+corpora.x.licence=CC0"], r"corpora\.x\.labels"),
        (["+corpora.x.labels=l.csv", "+corpora.x.column={}"], r"corpora\.x\.column.*did you mean 'columns'"),
        (["+tasks.longest.rank=0"], r"tasks\.longest\.rank"),
        (["margins.duration=0.5"], r"the margin of duration is a ratio"),
        (["only=[third_longest]", "n_candidates=2"], r"tasks\.third_longest\.rank: place 3 of 2 candidates"),
        (["only=[genre]"], r"(?s)no item could be built\n  genre: no_label: no clip has the label 'genre'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(tmp_path, overrides, said):
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        build(tmp_path / "out", "only=[longest]", *overrides)
    assert not (tmp_path / "out").exists()


def test_a_table_whose_clips_are_all_missing_says_where_they_were_looked_for(tmp_path):
    (tmp_path / "labels.csv").write_text("file,event\na.wav,hum\nb.wav,buzz\n")
    said = r"no clip can be used; left out: 2, such as a\.wav \(line 2\): missing_file: .*a\.wav does not exist; b"
    with pytest.raises(ConfigError, match=said):
        build(tmp_path / "out", *corpora(c=tmp_path / "labels.csv"), "only=[event]")


def test_labels_of_one_class_say_so(tmp_path):
    labels = {f"v{i}": {"event": "hum"} for i in range(6)}
    table = corpus(tmp_path / "c", {name: voice(100 + 10 * i) for i, name in enumerate(labels)}, labels)
    with pytest.raises(
        ConfigError, match="event: one_class: needs at least two values of 'event'; all 6 usable clips"
    ):
        build(tmp_path / "out", *corpora(c=table), "only=[event]")


def test_without_the_extra_the_missing_packages_and_the_remedy_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr("pipelines.build_mugen_settings.missing_packages", lambda: ["librosa"])
    with pytest.raises(
        ConfigError, match=r"needs librosa: pip install 'audio-reasoning-eval\[build\]'.*loudest"
    ):
        build(tmp_path / "out", "only=[loudest,longest]")
    assert build(tmp_path / "out", "only=[longest]"), "durations need no package"


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pipelines.build_mugen", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(CONF.parent), "COLUMNS": "160"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def test_the_command_line_helps_builds_and_fails_readably(tmp_path):
    shown = run("--help", folder=tmp_path)
    assert shown.returncode == 0
    assert "python -m pipelines.build_mugen '~corpora'" in shown.stdout
    done = run("tasks=sample", "only=[longest,event]", "items_per_task=3", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "6 items from" in done.stdout
    assert "decoding: 100%" in done.stderr
    assert len(lines(tmp_path / "mugen_built")) == 6
    own = corpora(v=voices(tmp_path / "voices"))
    mine = run(*own, "only=[longest]", "output=mine", folder=tmp_path)
    assert mine.returncode == 0, mine.stderr
    wrong = run("tasks=sample", "only=[longest,event]", folder=tmp_path)
    assert wrong.returncode == 1
    assert wrong.stderr.strip().endswith("name another folder, or set overwrite=true")
    assert "Traceback" not in wrong.stderr


def test_the_built_in_sample_is_what_its_command_builds(tmp_path):
    rows = build(tmp_path / "out", "tasks=sample", "audio=reference", "items_per_task=2")
    shipped = lines(ITEMS.parent)
    assert {row["dimension"] for row in shipped} == SEVEN
    assert len(shipped) == 22
    for row, twin in zip(rows, shipped, strict=True):
        check(twin)
        for key in ("id", "question", "answer_index", "task", "ranking"):
            assert row[key] == twin[key]
        for here, there in zip(row["candidates"], twin["candidates"], strict=True):
            assert (tmp_path / "out" / here).resolve() == (ITEMS.parent / there).resolve()
    counts = Counter(row["answer_index"] for row in shipped)
    assert max(counts.values()) - min(counts[i] for i in range(5)) <= 1


def test_the_adapter_reads_the_sample_and_whatever_was_built(tmp_path):
    table = MugenSample().load()
    assert table.num_rows == 22
    assert not any(table.column("item_error").to_pylist())
    assert all(Path(uri).is_file() for uris in table.column("audio_uris").to_pylist() for uri in uris)
    build(tmp_path / "out", *corpora(v=voices(tmp_path / "voices")), "only=[longest]")
    built = Mugen(path=str(tmp_path / "out" / "items.jsonl")).load()
    assert built.num_rows
    assert not any(built.column("item_error").to_pylist())


# Real corpora


@pytest.fixture(scope="module")
def real(tmp_path_factory) -> tuple[Path, list[dict]]:
    """All tasks that need no pitch, from three corpora of speech and sounds."""
    tables = {name: shared(name) / "labels.csv" for name in ("crema_d", "fsdd", "esc10")}
    output = tmp_path_factory.mktemp("real") / "out"
    content = {"crema_d": "speech", "fsdd": "speech", "esc10": "sound"}
    constant = [f"+corpora.{name}.constant.content={kind}" for name, kind in content.items()]
    pitch = [f"~tasks.{task}" for task in ("highest_voice", "lowest_voice", "highest_voice_with_emotion")]
    columns = ["+corpora.esc10.columns.event=label"]
    return output, build(output, *corpora(**tables), *constant, *columns, *pitch, "items_per_task=20")


def originals(name: str) -> dict[str, dict[str, str]]:
    """{SHA-256 of a clip's file: its row in the labels table}: the way back from a copy, past the builder."""
    folder = shared(name)
    with open(folder / "labels.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {hashlib.sha256((folder / row["file"]).read_bytes()).hexdigest(): row for row in rows}


def test_real_label_golds_agree_with_the_tables(real):
    output, rows = real
    known = {key: row for name in ("crema_d", "fsdd", "esc10") for key, row in originals(name).items()}

    def row_of(path):
        return known[hashlib.sha256((output / path).read_bytes()).hexdigest()]

    rules = {
        "event": lambda clip, ref, question: question.endswith(f": {clip['label']}."),
        "spoken_sentence": lambda clip, ref, question: f'"{clip["sentence"]}"' in question,
        "emotion_same_words": lambda clip, ref, question: (
            clip["emotion"][:3] in question or (clip["emotion"] == "angry" and "angriest" in question)
        ),
        "same_emotion_other_words": lambda clip, ref, question: (
            clip["emotion"] == ref["emotion"] and clip["sentence"] != ref["sentence"]
        ),
        "same_speaker_other_digit": lambda clip, ref, question: clip["speaker"] == ref["speaker"],
        "emotion_and_speaker_of_reference": lambda clip, ref, question: (
            (clip["actor"], clip["emotion"]) == (ref["actor"], ref["emotion"])
        ),
    }
    seen = Counter()
    for row in rows:
        if row["task"] in rules:
            reference = row_of(row["reference"][0]) if row["reference"] else None
            fits = [
                rules[row["task"]](row_of(path), reference, row["question"]) for path in row["candidates"]
            ]
            assert fits == [i == row["answer_index"] for i in range(5)], row["id"]
            seen[row["task"]] += 1
    assert seen == dict.fromkeys(rules, 20)


def test_real_measured_golds_are_right_when_measured_anew(real):
    output, rows = real
    seen = Counter()
    for row in rows:
        paths = [output / path for path in row["candidates"]]
        if row["task"] in ("longest", "third_longest"):
            seconds = [soundfile.info(path).duration for path in paths]
            place = sorted(seconds, reverse=True)[0 if row["task"] == "longest" else 2]
            assert row["answer_index"] == seconds.index(place)
            assert all(place >= 1.25 * s or s >= 1.25 * place for s in seconds if s != place)
        elif row["task"] == "loudest":
            levels = [Measurements().value("loudness", decode(str(path))) for path in paths]
            best = levels[row["answer_index"]]
            assert all(best >= level + 3 for i, level in enumerate(levels) if i != row["answer_index"])
        else:
            continue
        seen[row["task"]] += 1
    assert seen == {"longest": 20, "third_longest": 20, "loudest": 20}


def test_real_items_are_balanced_distinct_and_proved(real):
    output, rows = real
    assert {row["dimension"] for row in rows} == SEVEN - {"Music Analysis"}, "no corpus of music here"
    hashes = {path.name: pcm_hash(decode(str(path))) for path in (output / "audio").iterdir()}
    for row in rows:
        check(row)
        clips = [*row["candidates"], *row["reference"]]
        assert len({hashes[Path(path).name] for path in clips}) == len(clips)
        assert set(row["licence"]) == set(row["source"]) == set(clips)
    for counts in position_table(rows, 5).values():
        assert max(counts) - min(counts) <= 1


@functools.cache
def pitch_of(path: Path) -> float:
    return Measurements().value("pitch", decode(str(path)))


def test_digits_are_ranked_by_their_pitch(tmp_path):
    table = shared("fsdd") / "labels.csv"
    overrides = ["only=[highest_voice]", "+corpora.fsdd.constant.content=speech", "items_per_task=6"]
    rows = build(tmp_path / "out", *corpora(fsdd=table), *overrides)
    assert len(rows) == 6
    for row in rows:
        pitches = [pitch_of(tmp_path / "out" / path) for path in row["candidates"]]
        best = pitches[row["answer_index"]]
        assert all(best >= 1.2 * pitch for i, pitch in enumerate(pitches) if i != row["answer_index"])


def test_a_table_of_ones_own_over_a_folder_of_mixed_recordings(tmp_path):
    folder = shared("librosa")
    kinds = {
        "198-209-0000.ogg": "speech",
        "5703-47212-0000.ogg": "speech",
        "456440__inspectorj__bird-whistling-robin-single-13.ogg": "a robin",
        "glacier-bay-humpback.ogg": "a whale",
        "hungarian_dance_orchestra.ogg": "an orchestra",
        "sorohanro_-_solo-trumpet-06.ogg": "a trumpet",
    }
    text = "path,event\n" + "".join(f"{name},{kind}\n" for name, kind in kinds.items())
    (tmp_path / "table.csv").write_text(text)
    where = [f"+corpora.mixed.folder={folder}", "only=[event,longest]"]
    rows = build(tmp_path / "out", *corpora(mixed=tmp_path / "table.csv"), *where)
    assert {row["task"] for row in rows} == {"event", "longest"}
    for row in rows:
        gold = row["candidates"][row["answer_index"]]
        if row["task"] == "event":
            name = row["source"][gold].split("/")[1].split(" (")[0]
            assert row["question"].endswith(f": {kinds[name]}.")
        else:
            seconds = [soundfile.info(tmp_path / "out" / path).duration for path in row["candidates"]]
            assert seconds[row["answer_index"]] == max(seconds)
