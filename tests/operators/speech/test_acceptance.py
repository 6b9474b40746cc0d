"""Conditions, margins and what is accepted; the thresholds of Table 5 as they stand in conf/."""

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from operators.audio import Clip
from operators.speech.acceptance import AudioScorer, Condition, Judge
from operators.speech.acoustics import Primitives
from pipelines.build_audit_settings import BuildAudit  # registers the schema
from pipelines.config import build
from tests.pipelines.cli import composed

assert BuildAudit
SOUND = Clip(np.zeros(10, np.float32), 16_000)
NEUTRAL = Primitives(200.0, 0.0, 4.0, 0.0, -26.0, {})


class Measured:
    """Stands for the estimators: the primitives are given."""

    def __init__(self, **found):
        self.found = {
            "reasons": {},
            "pitch": 200.0,
            "end_slope": 0.0,
            "rate": 4.0,
            "pause": 0.0,
            "loudness": -26.0,
            **found,
        }

    def measure(self, sound, text):
        return Primitives(**self.found)


@cache
def configured(option):
    return build(composed(f"scorer={option}", pipeline="build_audit").scorer, "scorer")


def judged(option, emotion, text="one two three four five", probabilities=None, **found):
    scorer = configured(option)
    judge = Judge(scorer, (lambda sound: probabilities) if probabilities else None)
    object.__setattr__(scorer, "acoustics", Measured(**found))
    return judge(SOUND, text, emotion, NEUTRAL)


def up(semitones):
    return 200.0 * 2 ** (semitones / 12)


@pytest.mark.parametrize(
    ("emotion", "found", "accepted"),
    [
        ("hesitant", {"end_slope": 6.0, "pause": 2.0}, True),
        ("hesitant", {"end_slope": 5.9, "pause": 2.0}, False),
        ("hesitant", {"end_slope": 6.0, "pause": 1.9}, False),
        ("frazzled", {"pitch": up(5.01), "rate": 5.2}, True),
        ("frazzled", {"pitch": up(4.9), "rate": 5.2}, False),
        ("frazzled", {"pitch": up(5.01), "rate": 5.1}, False),
        ("impatient", {"pitch": up(-3.9), "rate": 5.3}, True),
        ("impatient", {"pitch": up(-4.1), "rate": 5.3}, False),
    ],
)
@pytest.mark.parametrize("option", ["prosody", "emotion2vec"])
def test_the_acoustic_thresholds_of_the_paper(option, emotion, found, accepted):
    verdict = judged(option, emotion, probabilities={"neutral": 1.0}, **found)
    assert verdict.accepted is accepted
    assert (verdict.fitness >= 0) is accepted


@pytest.mark.parametrize(
    ("emotion", "probabilities", "rate", "accepted"),
    [
        ("angry", {"angry": 0.3, "disgusted": 0.2}, 4.0, True),
        ("angry", {"angry": 0.3, "disgusted": 0.19}, 4.0, False),
        ("neutral", {"neutral": 0.25, "happy": 0.35}, 4.0, True),
        ("neutral", {"neutral": 0.25, "happy": 0.34}, 4.0, False),
        ("sad", {"sad": 0.03}, 4.0, True),
        ("sad", {"sad": 0.029}, 4.0, False),
        ("happy", {"happy": 0.005}, 4.0, True),
        ("happy", {"happy": 0.004}, 4.0, False),
        ("empathetic", {"angry": 0.005, "disgusted": 0.005}, 4.07, True),
        ("empathetic", {"angry": 0.006, "disgusted": 0.005}, 4.0, False),
        ("empathetic", {"angry": 0.0, "disgusted": 0.0}, 4.09, False),
    ],
)
def test_the_thresholds_on_probabilities(emotion, probabilities, rate, accepted):
    assert judged("emotion2vec", emotion, probabilities=probabilities, rate=rate).accepted is accepted


def test_short_texts_need_no_pause():
    assert judged("prosody", "hesitant", text="Is it here now", end_slope=7.0).accepted
    assert not judged("prosody", "hesitant", text="Is it here right now", end_slope=7.0).accepted


def test_fitness_is_the_least_margin_and_failures_say_the_value():
    verdict = judged("prosody", "frazzled", pitch=up(7), rate=5.4)
    # pitch: (7 - 5) / 1 semitone = 2; rate: (0.35 - 0.30) / 0.05 = 1
    assert verdict.fitness == pytest.approx(1.0)
    failed = judged("prosody", "frazzled", pitch=up(7), rate=4.4).failed
    assert failed == ("rate >= 0.3 (0.1)",)


def test_a_measure_without_a_value_fails_with_its_reason():
    verdict = judged("prosody", "frazzled", pitch=None, rate=5.4, reasons={"pitch": "unvoiced: no pitch"})
    assert verdict.failed == ("pitch >= 5 (unvoiced: no pitch)",) and verdict.fitness == -math.inf


def test_rules_that_need_an_absent_model_are_named():
    rules = {
        "angry": (Condition("angry+disgusted", at_least=0.5),),
        "calm": (Condition("rate", at_most=0.0),),
    }
    scorer = AudioScorer(rules)
    assert set(scorer.unusable({"angry", "calm", "tired"})) == {"angry", "tired"}
    assert "emotion_model is not set" in scorer.unusable({"angry"})["angry"]


def test_a_condition_has_one_bound():
    for bounds in ({}, {"at_least": 1.0, "at_most": 2.0}):
        with pytest.raises(ValidationError, match="one of the two"):
            Condition("pitch", **bounds)


@given(st.floats(-20, 20), st.floats(-20, 20))
def test_accepting_and_a_margin_of_at_least_zero_are_one(value, bound):
    assert (Condition("pitch", at_least=bound).margin({"pitch": value}) >= 0) is (value >= bound)
    assert (Condition("|pitch|", at_most=bound).margin({"pitch": value}) >= 0) is (abs(value) <= bound)
