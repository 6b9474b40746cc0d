"""The whole pipeline on a real Ray with toy scorers: what a user's own questions and recorded responses become."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile as sf

from operators.schema import METRICS, result_schema
from tests.pipelines.cli import TOY_PATH, TOYS, aria_eval, evaluated

# Whole runs on Ray: more time than the fast part has.
pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]

CHAIN = "[PERCEPTION] Entities: dog, rain. [ANALYSIS] {a} [REASONING] {r} [ANSWER] {answer}"
CHOICES = ["dog", "cat", "rain"]


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def tone(path, seconds=0.5, rate=16000, pitch=440.0):
    sf.write(path, 0.3 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate), rate)
    return path


def question(number, audio, **other):
    row = {
        "id": f"q{number}",
        "question": "What is heard?",
        "choices": CHOICES,
        "answer": "dog",
        "audio": audio,
    }
    return {**row, **other}


def said(number, reasoning="one two three four", answer="dog", **other):
    text = CHAIN.format(a="An animal.", r=reasoning, answer=answer)
    return {"id": f"q{number}", "response": text, **other}


def recorded(folder):
    return [
        "benchmark=manifest",
        f"benchmark.path={folder / 'q.jsonl'}",
        "model=recorded",
        f"model.path={folder / 'r.jsonl'}",
    ]


def run(folder, *more):
    return evaluated(folder, TOY_PATH, "scorers=toy", *recorded(folder), *more)


def results(folder):
    return pq.read_table(folder / "run" / "results.parquet")


def record(folder):
    return json.loads((folder / "run" / "run.json").read_text())


@pytest.fixture(scope="module")
def plain_run(tmp_path_factory):
    """Three items; model `good` answers all, `poor` one wrongly and one not at all."""
    folder = tmp_path_factory.mktemp("plain")
    for number in range(3):
        tone(folder / f"{number}.wav", pitch=300 + 100 * number)
    write_lines(folder / "q.jsonl", [question(n, f"{n}.wav") for n in range(3)])
    good = [said(n, model="good") for n in range(3)]
    poor = [said(0, model="poor"), said(1, answer="cat", model="poor"), said(2, answer="", model="poor")]
    write_lines(folder / "r.jsonl", good + poor)
    return folder, aria_eval(folder, *TOYS, *recorded(folder))


def test_scores_answers_and_tables(plain_run):
    folder, done = plain_run
    assert done.returncode == 0, done.stderr
    table = results(folder)
    assert table.schema.equals(result_schema())
    rows = {(row["model"], row["item_id"]): row for row in table.to_pylist()}
    assert len(rows) == 6
    row = rows["good", "q1"]
    assert [row[m] for m in METRICS] == [4 / 100] * 6 and row["aria"] == pytest.approx(0.04)
    assert row["reasoning"] == "one two three four" and row["entities"] == ["dog", "rain"]
    assert [rows["poor", f"q{n}"]["correct"] for n in range(3)] == [True, False, False]
    assert rows["poor", "q2"]["answer_index"] is None


def test_the_leaderboard_shows_every_model(plain_run):
    _, done = plain_run
    for words in ("good", "poor", "100.0", "33.3"):
        assert words in done.stdout


def test_run_json_says_what_was_asked_and_what_ran(plain_run):
    folder, _ = plain_run
    run_json = record(folder)
    assert run_json["config"]["benchmark"]["path"].endswith("q.jsonl")
    assert len(run_json["fingerprints"]["m1"]) == 16
    assert run_json["versions"]["ray"][0].isdigit()
    # Six rows, but `good` and `poor` reason alike over the same clip: equal work is done once.
    told = {name: value for name, value in run_json["stages"]["m1"].items() if "second" not in name}
    assert told == {
        "rows": 6,
        "unusable": 0,
        "from_store": 0,
        "computed": 3,
        "failed": 0,
        "left_out": 0,
        "unseen": 0,
        "encoded": {},
        "usage": {},
    }
    assert run_json["stages"]["audio"]["encoded"] == {"clips": 3}


def test_a_second_run_computes_nothing_and_gives_the_same_floats(plain_run):
    folder, _ = plain_run
    before = results(folder)
    again = run(folder)
    assert "computed 0 responses and scores" in again.stdout
    assert record(folder)["stages"]["m1"]["from_store"] == 6
    assert results(folder).equals(before)


MALFORMED = ["missing", "empty", "text", "nothing", "one_sample", "short", "nan", "truncated", "folder"]


def malformed_audio(folder):
    samples = 0.3 * np.sin(np.arange(16000) / 5)
    (folder / "empty.wav").write_bytes(b"")
    (folder / "text.wav").write_text("this is not audio\n" * 50)
    sf.write(folder / "nothing.wav", samples[:0], 16000)
    sf.write(folder / "one_sample.wav", samples[:1], 16000)
    sf.write(folder / "short.wav", samples[:368], 16000)
    sf.write(folder / "nan.wav", np.where(np.arange(16000) == 5, np.nan, samples), 16000, subtype="FLOAT")
    sf.write(folder / "whole.flac", samples, 16000)
    (folder / "truncated.wav").write_bytes((folder / "whole.flac").read_bytes()[:2000])
    (folder / "folder.wav").mkdir()
    sf.write(folder / "stereo.wav", np.stack([samples, -0.5 * samples], 1), 48000)
    sf.write(folder / "minute.wav", np.tile(samples, 60), 16000)


def test_malformed_audio_is_named_and_costs_only_its_own_m1(tmp_path):
    malformed_audio(tmp_path)
    names = [*MALFORMED, "stereo", "minute"]
    write_lines(tmp_path / "q.jsonl", [question(n, f"{name}.wav") for n, name in enumerate(names)])
    write_lines(tmp_path / "r.jsonl", [said(n) for n in range(len(names))])
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    rows = results(tmp_path).to_pylist()
    heard = dict(zip(names, rows, strict=True))
    for name in MALFORMED:
        assert heard[name][METRICS[0]] is None and heard[name]["aria"] is None
        assert f"{name}.wav" in heard[name]["audio_error"]
        assert heard[name][f"{METRICS[0]}_reason"] == heard[name]["audio_error"]
    assert all(row[metric] == 0.04 for row in rows for metric in METRICS[1:]), "the words can still be scored"
    assert heard["stereo"][METRICS[0]] == heard["minute"][METRICS[0]] == 0.04
    assert heard["minute"]["audio_seconds"] == [60.0]
    assert "missing_file" in done.stdout, "reasons are shown with the table"


def test_bad_rows_of_a_manifest_are_counted_by_reason(tmp_path):
    tone(tmp_path / "a.wav")
    rows = [
        question(0, "a.wav"),
        question(1, "a.wav", answer="horse"),
        question(2, "a.wav", choices=["dog", ""]),
        question(3, "../../../etc/passwd"),
        question(4, "a.wav", question="Which?"),
        question(4, "a.wav", question="Another one?"),
    ]
    write_lines(tmp_path / "q.jsonl", rows)
    write_lines(tmp_path / "r.jsonl", [*(said(n) for n in range(5)), said(77)])
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    found = results(tmp_path)
    assert found.num_rows == 6, "no row is dropped"
    reasons = [error and error.split(":")[0] for error in found["item_error"].to_pylist()]
    assert reasons == [
        None,
        "answer_not_in_choices",
        "empty_choice",
        "audio_outside_folder",
        *["duplicate_id"] * 2,
    ]
    assert [row["aria"] is not None for row in found.to_pylist()] == [True] + [False] * 5
    assert "q77" in done.stderr, "a response to an unknown question is mentioned"


HOSTILE = {
    "empty": "",
    "no_tags": "Probably the dog, I would say.",
    "long": CHAIN.format(a="word " * 10000, r="word " * 10000, answer="dog"),
    "emoji": CHAIN.format(a="🐶🔊", r="👍 👍", answer="dog 🐕"),
    "right_to_left": CHAIN.format(a="כלב נובח", r="זה כלב", answer="dog"),
    "control": CHAIN.format(a="a\x00b\x1b[31m\u202e", r="c\x07", answer="dog"),
    "surrogate": CHAIN.format(a="\ud83d", r="broken", answer="dog"),
    "markup": CHAIN.format(a="[bold red]<script>alert(1)</script>", r="{{x}} ${y} %s", answer="dog"),
}


def test_hostile_responses_are_only_text(tmp_path):
    tone(tmp_path / "a.wav")
    write_lines(tmp_path / "q.jsonl", [question(n, "a.wav") for n in range(len(HOSTILE))])
    rows = [{"id": f"q{n}", "response": text} for n, text in enumerate(HOSTILE.values())]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    found = dict(zip(HOSTILE, results(tmp_path).to_pylist(), strict=True))
    assert found["empty"]["answer_index"] is None and found["empty"]["answer_reason"] == "empty_response"
    assert all(row["aria"] is not None for row in found.values())
    answered = [name for name, row in found.items() if row["answer_index"] == 0]
    assert set(answered) >= {"long", "emoji", "right_to_left", "control", "surrogate", "markup"}


def test_unscorable_rows_have_reasons_and_too_many_of_them_fail_the_run(tmp_path):
    tone(tmp_path / "a.wav")
    write_lines(tmp_path / "q.jsonl", [question(n, "a.wav") for n in range(4)])
    write_lines(tmp_path / "r.jsonl", [said(0), said(1), said(2, "unscorable"), said(3, "crash")])
    done = run(tmp_path)
    assert done.returncode == 0, done.stderr
    reasons = results(tmp_path)[f"{METRICS[2]}_reason"].to_pylist()
    assert reasons == [None, None, "toy_reason", "ValueError: crash"]
    strict = run(tmp_path, "max_failure_rate=0.4")
    assert strict.returncode == 1
    assert "m3 failed on 2 of 4 usable rows" in strict.stderr
    assert results(tmp_path).num_rows == 4, "the tables are written all the same"
    assert record(tmp_path)["stages"]["m3"]["computed"] == 2, "failures are not stored: they were tried again"


def test_responses_whose_clips_are_missing_are_scored_with_a_note_unless_a_limit_says_otherwise(tmp_path):
    write_lines(tmp_path / "q.jsonl", [question(n, f"{n}.wav") for n in range(4)])
    write_lines(tmp_path / "r.jsonl", [said(n) for n in range(4)])
    done = run(tmp_path)
    assert done.returncode == 0
    assert "note: 4 of 4 items cannot be heard, so they have no M1 and no ARIA: missing_file 4" in done.stderr
    assert "0.wav does not exist" in done.stderr
    assert results(tmp_path)["correct"].to_pylist() == [True] * 4
    tone(tmp_path / "0.wav")
    strict = run(tmp_path, "max_failure_rate=0.7")
    assert strict.returncode == 1 and "3 of 4 items" in strict.stderr
