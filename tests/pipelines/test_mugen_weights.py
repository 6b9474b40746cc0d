"""The default run on two of the built-in questions, one with a reference: the cascade, ASR + sound tags + a small LM, answers questions whose
options are real clips. Real weights, real Ray, no network."""

import json
import re
from types import SimpleNamespace

import pytest
from hydra import compose, initialize_config_dir

from operators.benchmarks.mugen_sample import ITEMS
from operators.cot import parse_slots
from pipelines.config import CONF
from pipelines.mugen_eval import evaluate
from tests.pipelines.test_mugen_eval import overall, record, table

pytestmark = [pytest.mark.weights, pytest.mark.usefixtures("ray_session")]

N_TRIALS = 2
ASKED = (0, 4)  # the fifth is the first that has a reference


def questions(path):
    """The questions ASKED of the built-in ones, with their clips where they lie."""
    rows = [json.loads(line) for line in ITEMS.read_text().splitlines()]
    for row in (chosen := [rows[number] for number in ASKED]):
        row |= {
            name: [str(ITEMS.parent / clip) for clip in row[name]] for name in ("candidates", "reference")
        }
        del row["licence"], row["source"]
    path.write_text("".join(json.dumps(row) + "\n" for row in chosen))
    return path


def test_the_cascade_answers_the_built_in_questions_by_permuted_votes(tmp_path, capsys):
    path = questions(tmp_path / "items.jsonl")
    asked = [f"+benchmark.path={path}", "strategy=[apsc]", f"n_trials={N_TRIALS}"]
    with initialize_config_dir(str(CONF), version_base="1.3"):
        config = compose("mugen_eval", overrides=[*asked, f"store.root={tmp_path / 'store'}"])
    evaluate(config, tmp_path / "run", "cascade")
    done, out = SimpleNamespace(folder=tmp_path / "run"), capsys.readouterr().out
    found = overall(done)["apsc"]
    assert found["n_valid"] == 2 and found["n_failed"] == 0
    # The cascade always chooses one option by likelihood: every response must be readable.
    assert found["n_unparsed"] == found["n_unanswered"] == 0 and found["prompt_tokens"] > 0
    trials = table(done, "trials")
    assert len(trials) == 2 * N_TRIALS and {len(row["audio_order"]) for row in trials} == {5}
    for row in trials:
        reported = re.findall(r"(Reference|Audio \d): The tagger", parse_slots(row["response"]).perception)
        assert reported == ["Reference", *(f"Audio {n}" for n in range(1, 6))][1 - row["n_reference"] :]
    audio = record(done)["audio"]
    assert audio["clips_per_prompt"] == {"5": N_TRIALS, "6": N_TRIALS}
    assert audio["encoder_calls"] == audio["clips_distinct"]
    assert audio["clips_decoded"] == 2 * audio["clips_distinct"]
    assert audio["cache_hits"] == audio["clips_presented"] - audio["clips_distinct"] > 0
    assert "S&P" in out and "S&D" in out
