"""The cascade, ASR + sound tags + a small LM, answers questions whose options are real clips: real weights, real Ray."""

import json
import re

import pytest

from operators.cot import parse_slots
from pipelines.config import Cluster
from pipelines.execution import session
from tests.pipelines.test_mugen_eval import overall, record, run, table
from tests.shared_data import shared

pytestmark = pytest.mark.weights

QUESTIONS = ("dog bark", "baby cry", "rooster", "helicopter")


def link(folder, sounds):
    """Three clips of three sounds, by the labels table, linked next to the questions."""
    esc10 = shared("esc10")
    lines = (esc10 / "labels.csv").read_text().splitlines()[1:]
    by_label = {}
    for line in lines:
        name, label = line.split(",")
        by_label.setdefault(label, []).append(name)
    found = []
    for place, label in enumerate(sounds):
        path = next(esc10.rglob(by_label[label][place]))
        (folder / path.name).write_bytes(path.read_bytes())
        found.append(path.name)
    return found


def test_the_cascade_answers_by_permuted_votes(tmp_path):
    rows = []
    for number, label in enumerate(QUESTIONS):
        others = [other for other in QUESTIONS if other != label][:2]
        sounds = [*others[: number % 3], label, *others[number % 3 :]]
        row = {
            "id": f"q{number}",
            "question": f"Select the audio with this sound: {label}.",
            "ranking": False,
        }
        row |= {"candidates": link(tmp_path, sounds), "answer_index": number % 3, "task": "event"}
        reference = [row["candidates"][number % 3]] if number == 3 else []
        rows.append(row | {"dimension": "Acoustic Scene & Event Analysis", "reference": reference})
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with session(Cluster(num_cpus=2)):
        done = run(tmp_path, "strategy=[direct,apsc]", "n_trials=2", model="cascade")
    assert done.code == 0, done.err
    found = overall(done)
    for strategy in ("direct", "apsc"):
        assert found[strategy]["n_valid"] == 4 and found[strategy]["n_failed"] == 0
        # The cascade always chooses one option by likelihood: every response must be readable.
        assert found[strategy]["n_unparsed"] == found[strategy]["n_unanswered"] == 0
    assert found["apsc"]["prompt_tokens"] > 0
    trials = table(done, "trials")
    assert {len(row["audio_order"]) for row in trials} == {3}
    for row in trials:
        reported = re.findall(r"(Reference|Audio \d): The tagger", parse_slots(row["response"]).perception)
        assert reported == ["Reference", "Audio 1", "Audio 2", "Audio 3"][1 - row["n_reference"] :]
    assert record(done)["audio"]["clips_per_prompt"]["4"] == sum(row["n_reference"] for row in trials)
    audio = record(done)["audio"]
    # Two trials, two sets: direct and APSC; 4 items of 3 clips, one with a reference that is a candidate as well.
    assert (
        audio["encoder_calls"] == audio["clips_distinct"]
        and audio["clips_decoded"] == 2 * audio["clips_distinct"]
    )
    assert audio["cache_hits"] == audio["clips_presented"] - audio["clips_distinct"] > 0
    assert "AS&E" in done.out
