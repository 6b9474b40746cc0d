"""Primitives of sounds whose pitch, pauses and timing are known because they were made."""

import json
import math

import numpy as np
import pytest

from operators.audio import Clip, decode
from operators.construction.measurements import PITCH_STEP_SECONDS, NotMeasurableError
from operators.speech.acoustics import (
    Acoustics,
    Primitives,
    count_syllables,
    end_slope,
    relative,
    timing,
)
from tests.shared_data import shared

pytest.importorskip("librosa")
RATE = 16_000


def gliding(start_hz, semitones_per_second, seconds, volume=0.3):
    """A harmonic tone whose pitch moves at a constant rate in semitones/s."""
    times = np.arange(int(seconds * RATE)) / RATE
    pitch = start_hz * 2 ** (semitones_per_second * times / 12)
    phase = 2 * np.pi * np.cumsum(pitch) / RATE
    return volume * sum(np.sin(k * phase) / k for k in range(1, 6))


def sound(*parts):
    return Clip(np.concatenate(parts).astype(np.float32), RATE)


def silence(seconds):
    return np.zeros(int(seconds * RATE))


def test_the_slope_of_a_contour_is_the_fitted_one():
    # 3 semitones in 0.3 s, that is 10 per second; what is unvoiced afterwards does not count
    times = PITCH_STEP_SECONDS * np.arange(40)
    f0 = np.where(times < 0.5, 200 * 2 ** (10 * times / 12), np.nan)
    assert end_slope(f0, 0.3, 5) == pytest.approx(10)
    with pytest.raises(NotMeasurableError, match="unvoiced_end: 3 frames"):
        end_slope(np.r_[f0[:3], np.full(30, np.nan)], 0.3, 5)


def test_timing_counts_pauses_in_syllables():
    # sounding 1.0 s and 0.5 s with a gap of 0.6 s: 6 syllables in 2.1 s; a syllable lasts 1.5/6 = 0.25 s
    spans = np.array([[0.1, 1.1], [1.7, 2.2]])
    rate, pause = timing(spans, 6, 0.15)
    assert rate == pytest.approx(6 / 2.1)
    assert pause == pytest.approx(0.6 / 0.25)
    assert timing(spans, 6, 0.7)[1] == 0.0
    with pytest.raises(NotMeasurableError, match="no_words"):
        timing(spans, 0, 0.15)


@pytest.mark.parametrize(
    ("text", "syllables"),
    [
        ("My train leaves in ten minutes.", 7),
        ("The letter from school is here.", 7),
        ("table mile pages wanted jumped", 2 + 1 + 2 + 2 + 1),
        ("o'clock", 2),
        ("Room 12", 1 + 2),
        ("...", 0),
        ("hmm", 1),
    ],
)
def test_syllables(text, syllables):
    assert count_syllables(text) == syllables


@pytest.mark.weights
def test_a_rising_tone_has_its_own_pitch_slope_and_pause():
    made = sound(silence(0.2), gliding(200, 0, 0.5), silence(0.5), gliding(200, 12, 0.5), silence(0.2))
    found = Acoustics().measure(made, "one two three four")
    assert found.end_slope == pytest.approx(12, abs=1.5)
    assert found.pitch == pytest.approx(200 * 2 ** (1 / 12), rel=0.06)
    # 4 syllables in about 1.5 s; the pause is 0.5 s long, a syllable 0.25 s
    assert found.rate == pytest.approx(4 / 1.5, rel=0.1)
    assert found.pause == pytest.approx(2, abs=0.4)
    assert found.reasons == {}


@pytest.mark.weights
def test_what_rings_on_far_below_the_voice_is_no_end():
    voice, ringing = gliding(200, 12, 0.6), 0.001 * gliding(400, -20, 0.4)
    found = Acoustics().measure(sound(voice, ringing), "hello")
    assert found.end_slope == pytest.approx(12, abs=1.5)


@pytest.mark.weights
def test_silence_and_noise_have_reasons_and_never_zeros():
    still = Acoustics().measure(sound(silence(1.0)), "hello")
    assert (still.pitch, still.rate, still.loudness) == (None, None, None)
    assert still.reasons["rate"].startswith("silent") and still.reasons["pitch"].startswith(
        ("unvoiced", "silent")
    )
    noise = Acoustics().measure(
        Clip(np.random.default_rng(0).normal(0, 0.1, RATE).astype(np.float32), RATE), "hello"
    )
    assert noise.pitch is None and noise.loudness is not None


def test_relative_measures_by_hand():
    found = Primitives(240.0, 3.0, 5.2, 2.5, -20.0, {})
    neutral = Primitives(200.0, -4.0, 4.0, 0.0, -26.0, {})
    measures = relative(found, neutral)
    assert measures["pitch"] == pytest.approx(12 * math.log2(1.2))  # 3.156 semitones
    assert measures["rate"] == pytest.approx(0.3)  # 5.2 / 4 - 1
    assert (measures["loudness"], measures["end_slope"], measures["pause"]) == (6.0, 3.0, 2.5)
    assert relative(neutral, neutral)["pitch"] == relative(neutral, neutral)["rate"] == 0.0
    gone = Primitives(None, None, 4.0, 0.0, None, {"pitch": "unvoiced: 0 of 9 frames have a pitch"})
    assert relative(gone, neutral)["pitch"] is None and relative(found, gone)["loudness"] is None


@pytest.mark.weights
def test_on_recorded_actors_loudness_tells_anger_and_sadness_and_pitch_does_so_less_often():
    """CREMA-D: the same actor says the same words in two emotions. It has no neutral clips in this subset, so that the
    other clip of a pair stands for the neutral one; what is claimed is only what separates the two."""
    folder = shared("crema_d")
    pairs = json.loads((folder / "counterfactual_pairs.json").read_text())
    about = [
        pair for pair in pairs if pair["emotions"][0] == "angry" or pair["emotions"] == ["fearful", "sad"]
    ]
    settings = Acoustics()
    found = []
    for pair in about:
        first, second = (
            settings.measure(decode(str(folder / file)), pair["sentence"]) for file in pair["files"]
        )
        found.append((pair["emotions"], relative(first, second)))
    angry = [measures for emotions, measures in found if emotions[0] == "angry"]
    sad = [measures["loudness"] for emotions, measures in found if emotions[1] == "sad"]
    assert len(angry) == 8 and sum(one["loudness"] >= 3 for one in angry) == 8
    pitches = [one["pitch"] for one in angry if one["pitch"] is not None]
    # Voices that break have no pitch to compare: 6 of the 8 pairs do, and 4 differ by what Table 5 asks of "frazzled".
    assert (len(pitches), sum(pitch > 0 for pitch in pitches), sum(pitch >= 5 for pitch in pitches)) == (
        6,
        6,
        4,
    )
    assert sum(one["rate"] >= 0.1 for one in angry) == 5
    assert len(sad) == 5 and all(loudness >= 2 for loudness in sad)
