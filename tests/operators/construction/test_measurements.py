"""Measured values against sounds whose values are known by construction."""

import numpy as np
import pytest
import soundfile

from operators.audio import AudioError, Clip, decode, pcm_hash
from operators.construction.kept_measurements import Kept
from operators.construction.measurements import (
    Measurements,
    NotMeasurableError,
    clearly_above,
    measure,
    speech_rate,
)
from tests.operators.construction.synthetic import RATE, bursts, clicks, corpus, sound, voice
from tests.shared_data import shared

pytest.importorskip("librosa", reason="the extra 'build' is not installed")
pytest.importorskip("pyloudnorm", reason="the extra 'build' is not installed")
SETTINGS = Measurements()


def test_duration_is_samples_over_rate():
    assert SETTINGS.value("duration", sound(np.ones(12_000, np.float32))) == 12_000 / RATE


@pytest.mark.parametrize("pitch", [90.0, 150.0, 220.0, 400.0])
def test_pitch_of_a_buzz_is_its_fundamental(pitch):
    assert SETTINGS.value("pitch", sound(voice(pitch))) == pytest.approx(pitch, rel=0.01)


def test_noise_has_no_pitch_and_a_jump_has_no_clear_one():
    noise = np.random.default_rng(0).normal(0, 0.1, RATE).astype(np.float32)
    with pytest.raises(NotMeasurableError, match=r"unvoiced: \d+ of \d+ frames"):
        SETTINGS.value("pitch", sound(noise))
    jump = np.concatenate([voice(120.0), voice(300.0)])
    with pytest.raises(NotMeasurableError, match="wandering_pitch: half of the frames spread from 120 to"):
        SETTINGS.value("pitch", sound(jump))


def test_real_speech_and_a_real_trumpet_have_no_tempo_though_two_priors_may_agree():
    speech, trumpet = (
        shared("librosa") / "5703-47212-0000.ogg",
        shared("librosa") / "sorohanro_-_solo-trumpet-06.ogg",
    )
    with pytest.raises(NotMeasurableError, match=r"no_steady_beat: .* after 0\.46 s by 0\.0"):
        SETTINGS.value("tempo", decode(str(speech)))
    # The loop was played at 90 BPM; at 1.2 times its speed both priors find 144 where 108 is right.
    loop = decode(str(trumpet))
    with pytest.raises(NotMeasurableError, match="no_steady_beat"):
        SETTINGS.value("tempo", Clip(loop.samples, round(1.2 * loop.sample_rate)))


def test_half_the_amplitude_is_six_decibels_quieter():
    loud, soft = (SETTINGS.value("loudness", sound(voice(200.0, level=level))) for level in (0.4, 0.2))
    assert loud - soft == pytest.approx(20 * np.log10(2), abs=0.01)  # 6.02


def test_a_full_scale_sine_of_997_hz_is_at_minus_three_lufs():
    # ITU-R BS.1770-4: a 0 dBFS, 997 Hz sine in one channel measures -3.01 LKFS; here mono at half scale, -6.02 less
    time = np.arange(5 * 48_000) / 48_000
    tone = (0.5 * np.sin(2 * np.pi * 997 * time)).astype(np.float32)
    assert SETTINGS.value("loudness", Clip(tone, 48_000)) == pytest.approx(-3.01 - 6.02, abs=0.1)


def test_silence_and_snippets_have_no_loudness():
    with pytest.raises(NotMeasurableError, match="silent"):
        SETTINGS.value("loudness", sound(np.zeros(RATE, np.float32)))
    with pytest.raises(NotMeasurableError, match=r"too_short: loudness needs 0.4 s, the clip has 0.30 s"):
        SETTINGS.value("loudness", sound(voice(200.0, 0.3)))


@pytest.mark.parametrize("bpm", [60, 90, 120])
def test_tempo_of_a_click_track(bpm):
    assert SETTINGS.value("tempo", sound(clicks(bpm))) == pytest.approx(bpm, rel=0.04)


def test_a_tempo_that_could_be_half_is_not_told():
    with pytest.raises(NotMeasurableError, match=r"ambiguous_tempo: \d+\.\d and \d+\.\d BPM fit alike"):
        SETTINGS.value("tempo", sound(clicks(200)))
    with pytest.raises(NotMeasurableError, match="no_onsets"):
        SETTINGS.value("tempo", sound(np.zeros(5 * RATE, np.float32)))


def test_pauses_are_counted_and_the_longest_is_timed():
    talk = sound(bursts([0.5, 0.1, 0.8]))  # the gap of 0.1 s is shorter than pause_seconds
    assert SETTINGS.value("pauses", talk) == 2
    assert SETTINGS.value("longest_pause", talk) == pytest.approx(0.8, abs=0.05)
    assert SETTINGS.value("longest_pause", sound(voice(150.0))) == 0


def test_a_gap_that_is_silent_by_one_level_only_makes_pauses_ambiguous():
    talk = bursts([0.6])
    hum = 10 ** (-35 / 20) * np.abs(talk).max()  # between 30 and 40 dB below the peak
    talk = np.where(talk == 0, hum, talk).astype(np.float32)
    with pytest.raises(NotMeasurableError, match=r"ambiguous_silence: 1\.00 or 0\.00"):
        SETTINGS.value("pauses", sound(talk))


def test_speech_rate_is_words_over_the_time_from_first_to_last_sound():
    assert speech_rate(np.array([[0.5, 1.0], [1.5, 2.5]]), "I'm on my way.") == 4 / (2.5 - 0.5)
    silence = np.zeros(RATE, np.float32)
    padded = np.concatenate([silence, voice(150.0, 2.0), silence])
    assert SETTINGS.value("speech_rate", sound(padded), "one two three four") == pytest.approx(2.0, rel=0.05)
    with pytest.raises(NotMeasurableError, match="no_transcript"):
        SETTINGS.value("speech_rate", sound(padded), " ")


def test_margins_are_ratios_or_gaps():
    assert clearly_above(1.25, 1.0, "ratio", 1.25)
    assert not clearly_above(1.24, 1.0, "ratio", 1.25)
    assert clearly_above(-17.0, -20.0, "gap", 3.0)
    assert not clearly_above(-17.1, -20.0, "gap", 3.0)


def test_measuring_a_file_gives_values_and_reasons_and_notices_a_change(tmp_path):
    from operators.audio import AudioError, decode, pcm_hash

    corpus(tmp_path, {"a": voice(200.0, 0.3)}, {"a": {"x": "1"}})
    path = str(tmp_path / "a.wav")
    hash_ = pcm_hash(decode(path))
    values, reasons = measure(path, hash_, ["duration", "loudness"], "", SETTINGS)
    assert values == {"duration": 0.3}
    assert reasons["loudness"].startswith("too_short")
    with pytest.raises(AudioError, match=r"changed: .*a\.wav changed"):
        measure(path, "another hash", ["duration"], "", SETTINGS)


def test_what_was_measured_is_kept_and_a_changed_setting_measures_anew(tmp_path):
    path = tmp_path / "a.wav"
    soundfile.write(path, voice(150.0), RATE, subtype="FLOAT")
    hash_ = pcm_hash(decode(str(path)))
    kept = Kept(SETTINGS, tmp_path / "kept")
    first = kept.measure(str(path), hash_, ["pitch", "speech_rate"], "")
    assert first[0]["pitch"] == pytest.approx(150, rel=0.01) and "no_transcript" in first[1]["speech_rate"]
    path.unlink()
    assert kept.measure(str(path), hash_, ["pitch", "speech_rate"], "") == first, "without the clip"
    for again in (
        lambda: kept.measure(str(path), hash_, ["speech_rate"], "two words"),
        lambda: kept.measure(str(path), hash_, ["duration"], ""),
        lambda: Kept(Measurements(pitch_floor=60.0), kept.folder).measure(str(path), hash_, ["pitch"], ""),
    ):
        with pytest.raises(AudioError, match="missing_file"):
            again()
