"""Another model, prompt, clip or scorer never answers for this one: their keys or folders differ."""

import numpy as np
import pytest

from operators.backbones.causal_lm import CausalLM
from operators.fingerprint import fingerprint, row_keys
from operators.lalms.cascade import Cascade
from operators.metrics.step_causality import StepCausality
from operators.prompts import Prompt
from operators.weights import Weights

HUB = [Weights("org/model", digit * 40) for digit in "01"]
LM = CausalLM(HUB[0])


def asked(**other):
    row = {
        "question": "What?",
        "choices": ["a", "b"],
        "audio_uris": ["x.wav"],
        "audio_hashes": ["h1"],
        "trial": 0,
    }
    cells = {}
    for name, value in (row | other).items():
        cells[name] = np.empty(1, dtype=object)
        cells[name][0] = value
    return row_keys(Cascade(LM), cells)[0]


def test_another_prompt_is_another_model(tmp_path):
    text = Prompt("cascade_chain").text
    same, other = tmp_path / "same.txt", tmp_path / "other.txt"
    same.write_text(text)
    other.write_text(text + " Think hard.")
    base = fingerprint(Cascade(LM))
    assert fingerprint(Cascade(LM, chain_prompt=Prompt(str(same)))) == base, (
        "the same words are the same prompt"
    )
    assert fingerprint(Cascade(LM, chain_prompt=Prompt(str(other)))) != base


@pytest.mark.parametrize("change", [{"temperature": 0.5}, {"seed": 1}, {"lm": CausalLM(HUB[1])}])
def test_another_setting_or_weight_is_another_model(change):
    assert fingerprint(Cascade(**{"lm": LM} | change)) != fingerprint(Cascade(LM))


@pytest.mark.parametrize(
    "change", [{"audio_hashes": ["h2"]}, {"question": "Which?"}, {"choices": ["b", "a"]}, {"trial": 1}]
)
def test_another_clip_question_order_or_trial_is_another_response(change):
    assert asked(**change) != asked()


def test_the_same_clip_in_another_place_is_the_same_response():
    assert asked(audio_uris=["s3://bucket/x.wav"]) == asked()


@pytest.mark.parametrize("change", [{"form": "log_ratio"}, {"cue": "So:"}, {"backbone": CausalLM(HUB[1])}])
def test_another_scorer_is_another_shelf(change):
    assert fingerprint(StepCausality(**{"backbone": LM} | change)) != fingerprint(StepCausality(LM))


def test_another_version_of_the_mathematics_is_another_shelf(monkeypatch):
    before = fingerprint(StepCausality(LM))
    monkeypatch.setattr(StepCausality, "version", StepCausality.version + 1)
    assert fingerprint(StepCausality(LM)) != before
