"""Measured properties of a clip: duration, loudness, pitch, tempo, speech rate and pauses.

The signal processing is librosa's (ISC licence) and pyloudnorm's (MIT). Praat (praat-parselmouth, GPL-3) and
openSMILE (no commercial use without a contract) measure the same things under licences that would bind
whoever builds on this package.

*Our reading* of the paper's measured tasks, whose estimators it does not name: a property has a value only
where its estimator is sure of it; everything else is "not measurable", with a reason, and never an option of
a task about that property.

| property | unit | estimator | not measurable |
|---|---|---|---|
| duration | s | number of samples | - |
| loudness | LUFS | integrated loudness, ITU-R BS.1770-4, pyloudnorm | under 0.4 s; nothing above the gate |
| pitch | Hz | median over voiced frames of probabilistic YIN, librosa.pyin | few voiced frames; no clear level |
| tempo | BPM | librosa.feature.tempo from a slow and from a fast prior | the two disagree; no steady beat |
| speech_rate | words/s | words of the transcript label over the time from first to last sound | no transcript |
| pauses | count | gaps inside that time, by librosa.effects.split | only silence |
| longest_pause | s | the longest of those gaps; 0 without any | only silence |

What is silence is decided twice, by a strict and by a lenient level; where speech rate or pauses depend on the
choice (noise, breath, a faint voice), they are not measurable either.
"""

from __future__ import annotations

import importlib.util
import math
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass as plain_dataclass
from typing import Literal

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import AudioError, decode, pcm_hash, resample, shown
from operators.audio import Clip as Sound

Property = Literal["duration", "loudness", "pitch", "tempo", "speech_rate", "pauses", "longest_pause"]
SPEECH_RATE_HZ = 16_000
MUSIC_RATE_HZ = 22_050
HOP = 512  # samples between two frames of librosa's onset strength
PITCH_WINDOW = 1024
PITCH_STEP_SECONDS = PITCH_WINDOW / 4 / SPEECH_RATE_HZ
NEEDED_PACKAGES = ("librosa", "pyloudnorm")


class NotMeasurableError(ValueError):
    """The clip has no trustworthy value of the property; the text is "reason: detail"."""


@plain_dataclass(frozen=True)
class Scale:
    """How values of a property compare: by `ratio` or by `gap`, with the margin that counts as clear."""

    unit: str
    kind: Literal["ratio", "gap"]
    margin: float


SCALES: dict[str, Scale] = {
    "duration": Scale("s", "ratio", 1.25),
    "loudness": Scale("LUFS", "gap", 3.0),
    "pitch": Scale("Hz", "ratio", 1.2),
    "tempo": Scale("BPM", "ratio", 1.15),
    "speech_rate": Scale("words/s", "ratio", 1.25),
    "pauses": Scale("pauses", "gap", 2.0),
    "longest_pause": Scale("s", "gap", 0.3),
}


def clearly_above(value: float, other: float, kind: str, margin: float) -> bool:
    """Whether `value` exceeds `other` by the margin: value >= other * margin, or value >= other + margin."""
    return value >= (other * margin if kind == "ratio" else other + margin)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Measurements:
    """The estimators' settings.

    pitch_floor, pitch_ceiling: Hz, the range in which a voice is looked for.
    pitch_spread: how many times the lower quartile of voiced frames the upper one may be.
    least_voiced: the part of all frames, and `least_voiced_frames` the number, that must be voiced.
    tempo_priors: BPM from which the two tempo estimates start; tempo_tolerance: how far they may differ;
        least_pulse: autocorrelation of the onset strength that the beat must reach. Click tracks have 0.7 and more,
        speech and rain, for which two priors agree now and then, under 0.3.
    silence_db: the two levels, in dB below the clip's peak, under which it is silent. pause_seconds: a shorter
        gap is no pause. rate_tolerance, pause_tolerance: how far the two speech rates (relative) and the two
        longest pauses (s) may differ; the numbers of pauses must be equal.
    """

    pitch_floor: float = Field(65.0, gt=0)
    pitch_ceiling: float = Field(600.0, gt=0)
    pitch_spread: float = Field(1.5, gt=1)
    least_voiced: float = Field(0.2, ge=0, le=1)
    least_voiced_frames: int = Field(8, ge=1)
    tempo_priors: tuple[float, float] = (100.0, 150.0)
    tempo_tolerance: float = Field(0.04, gt=0)
    least_pulse: float = Field(0.4, ge=0, le=1)
    silence_db: tuple[float, float] = (30.0, 40.0)
    pause_seconds: float = Field(0.25, gt=0)
    rate_tolerance: float = Field(0.1, gt=0)
    pause_tolerance: float = Field(0.1, gt=0)

    def value(self, name: str, sound: Sound, transcript: str = "") -> float:
        """The value of property `name`, in the unit of SCALES[name]. Raises NotMeasurableError."""
        if name == "duration":
            return sound.seconds
        if name == "loudness":
            return loudness(sound)
        if name == "pitch":
            return self._pitch(sound)
        if name == "tempo":
            return self._tempo(sound)
        strict, lenient = (sounding_spans(sound, level) for level in self.silence_db)
        if name == "speech_rate":
            found, tolerance = (
                [speech_rate(spans, transcript) for spans in (strict, lenient)],
                self.rate_tolerance,
            )
            tolerance *= min(found)
        elif name == "pauses":
            found, tolerance = [float(len(self._pauses(spans))) for spans in (strict, lenient)], 0.0
        else:
            found = [float(max(self._pauses(spans), default=0.0)) for spans in (strict, lenient)]
            tolerance = self.pause_tolerance
        if abs(found[0] - found[1]) > tolerance:
            raise NotMeasurableError(
                f"ambiguous_silence: {found[0]:.2f} or {found[1]:.2f}, by what is silence"
            )
        return (found[0] + found[1]) / 2

    def _pauses(self, spans: np.ndarray) -> list[float]:
        """Gaps between sounding spans that are long enough for a pause, in seconds."""
        return [gap for gap in spans[1:, 0] - spans[:-1, 1] if gap >= self.pause_seconds]

    def _pitch(self, sound: Sound) -> float:
        f0 = pitch_contour(sound, self.pitch_floor, self.pitch_ceiling)
        voiced = np.isfinite(f0)
        count = int(voiced.sum())
        if count < max(self.least_voiced_frames, self.least_voiced * len(voiced)):
            raise NotMeasurableError(f"unvoiced: {count} of {len(voiced)} frames have a pitch")
        low, middle, high = np.percentile(f0[voiced], [25, 50, 75])
        if high > low * self.pitch_spread:
            raise NotMeasurableError(
                f"wandering_pitch: half of the frames spread from {low:.0f} to {high:.0f} Hz"
            )
        return float(middle)

    def _tempo(self, sound: Sound) -> float:
        import librosa

        samples = resample(sound, MUSIC_RATE_HZ).samples
        envelope = librosa.onset.onset_strength(y=samples, sr=MUSIC_RATE_HZ)
        if not envelope.any():
            raise NotMeasurableError("no_onsets: nothing in the clip marks a beat")
        slow, fast = (
            float(librosa.feature.tempo(onset_envelope=envelope, sr=MUSIC_RATE_HZ, start_bpm=prior)[0])
            for prior in self.tempo_priors
        )
        if abs(slow - fast) > self.tempo_tolerance * slow:
            raise NotMeasurableError(f"ambiguous_tempo: {slow:.1f} and {fast:.1f} BPM fit alike")
        found = pulse(envelope, 60 * MUSIC_RATE_HZ / (HOP * slow))
        if found < self.least_pulse:
            raise NotMeasurableError(
                f"no_steady_beat: the onsets repeat after {60 / slow:.2f} s by {found:.2f} of 1"
            )
        return slow


def pulse(envelope: np.ndarray, period: float) -> float:
    """How well an onset envelope [T] repeats after `period` frames: its autocorrelation there, at most 1."""
    import librosa

    centred = librosa.autocorrelate(envelope - envelope.mean())
    lag = max(round(period), 1)
    near = centred[max(lag - 1, 1) : lag + 2]
    return float(near.max() / centred[0]) if len(near) else 0.0


def pitch_contour(sound: Sound, floor: float, ceiling: float) -> np.ndarray:
    """[F] pitch in Hz every 16 ms (probabilistic YIN on windows of 64 ms), NaN where the frame is unvoiced."""
    import librosa

    samples = resample(sound, SPEECH_RATE_HZ).samples
    f0, _, _ = librosa.pyin(samples, fmin=floor, fmax=ceiling, sr=SPEECH_RATE_HZ, frame_length=PITCH_WINDOW)
    return f0


def loudness(sound: Sound) -> float:
    """Integrated loudness in LUFS (ITU-R BS.1770-4: K-weighting, blocks of 0.4 s, two gates)."""
    import pyloudnorm

    if sound.seconds < 0.4:
        raise NotMeasurableError(f"too_short: loudness needs 0.4 s, the clip has {sound.seconds:.2f} s")
    with warnings.catch_warnings(), np.errstate(divide="ignore"):
        warnings.simplefilter("ignore")  # an empty gate gives -inf, which is handled here
        value = float(pyloudnorm.Meter(sound.sample_rate).integrated_loudness(sound.samples.astype(float)))
    if not math.isfinite(value):
        raise NotMeasurableError("silent: nothing is louder than the gate of -70 LUFS")
    return value


def sounding_spans(sound: Sound, silence_db: float) -> np.ndarray:
    """[S, 2] start and end in seconds of what is less than `silence_db` below the clip's peak."""
    import librosa

    if not np.any(sound.samples):
        raise NotMeasurableError("silent: every sample is zero")
    samples = resample(sound, SPEECH_RATE_HZ).samples
    spans = librosa.effects.split(samples, top_db=silence_db, frame_length=512, hop_length=128)
    return np.asarray(spans, dtype=float) / SPEECH_RATE_HZ


def speech_rate(spans: np.ndarray, transcript: str) -> float:
    """Words per second between the first and the last sound. Words are runs of letters, digits and '."""
    words = re.findall(r"[\w'’]+", transcript)
    if not words:
        raise NotMeasurableError("no_transcript: the words of the clip are not known")
    return len(words) / float(spans[-1, 1] - spans[0, 0])


def missing_packages() -> list[str]:
    """The packages of the optional extra `build` that are not installed."""
    return [name for name in NEEDED_PACKAGES if importlib.util.find_spec(name) is None]


def measure(
    uri: str, hash_: str, names: Iterable[str], transcript: str, settings: Measurements
) -> tuple[dict[str, float], dict[str, str]]:
    """Decode the clip at `uri` and measure it: {property: value}, {property: why it has none}.

    Raises AudioError where the clip can no longer be read, or is no longer the sound with this hash.
    """
    sound = decode(uri)
    if pcm_hash(sound) != hash_:
        raise AudioError("changed", f"{shown(uri)} changed while the benchmark was being built")
    values, reasons = {}, {}
    for name in sorted(names):
        try:
            values[name] = settings.value(name, sound, transcript)
        except NotMeasurableError as error:
            reasons[name] = str(error)
    return values, reasons
