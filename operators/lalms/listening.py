"""What a sound tagger and a speech recogniser report about a clip: all that a cascade's LM gets to know of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from operators.audio import NO_AUDIO, AudioError, Clip, decode, pcm_hash, resample, shown, windows
from operators.batching import Memo

# Classes of AudioSet that mean there may be words to recognise.
SPEECH_CLASSES = (
    *("Speech", "Child speech, kid speaking", "Conversation", "Narration, monologue", "Speech synthesizer"),
    *("Shout", "Yell", "Whispering", "Singing", "Child singing", "Rapping", "Chant", "Choir"),
)
SAMPLE_RATE = 16_000
_BRACKETS = str.maketrans("[]［］【】<>＜＞〈〉{}", "()()()()()()()")


@dataclass(frozen=True)
class Report:
    """What the detectors say about one clip: (class name, probability) likeliest first, a transcript, its length."""

    tags: tuple[tuple[str, float], ...]
    transcript: str
    seconds: float


class Listener:
    """Turns clips into reports, each distinct clip once."""

    def __init__(
        self, tagger: Any, recogniser: Any, top_k: int, min_probability: float, speech: float, max_words: int
    ) -> None:
        self._tagger, self._recogniser, self._max_words = tagger, recogniser, max_words
        self._top_k, self._min_probability, self._speech_probability = top_k, min_probability, speech
        self._speech = [
            tagger.class_names.index(name) for name in SPEECH_CLASSES if name in tagger.class_names
        ]
        self._memo = Memo("clips")

    def reports(self, uris: Sequence[str], hashes: Sequence[str | None]) -> list[Report] | str:
        """The reports on one row's clips, or "reason: detail" where a clip is missing, broken or not the one hashed."""
        if not len(uris):
            return NO_AUDIO
        if len(uris) != len(hashes):
            return f"audio_changed: the row names {len(uris)} clips and {len(hashes)} hashes"
        found = self._memo.get(
            list(zip(uris, hashes, strict=True)), lambda keys: [self._listen(*key) for key in keys]
        )
        errors = [report for report in found if isinstance(report, str)]
        return "; ".join(dict.fromkeys(errors)) if errors else found

    def _listen(self, uri: str, expected: str | None) -> Report | str:
        try:
            clip = decode(uri)
        except AudioError as error:
            return str(error)
        if pcm_hash(clip) != expected:
            return f"audio_changed: {shown(uri)} is not the sound that the row's hash names"
        return self.report(clip)

    def report(self, clip: Clip) -> Report:
        """Tags averaged over the whole clip; a transcript where some 10 s window sounds like speech."""
        sound = resample(clip, SAMPLE_RATE)
        pieces = [Clip(piece, SAMPLE_RATE) for piece in windows(sound.samples, SAMPLE_RATE)]
        by_window = self._tagger.probabilities(pieces)
        mean = np.average(by_window, axis=0, weights=[len(piece.samples) for piece in pieces])
        speaks = by_window[:, self._speech].max(initial=0.0) >= self._speech_probability
        transcript = self._recogniser.transcribe([sound])[0] if speaks else ""
        words = harmless(transcript).split()
        kept = words[: self._max_words] + ["..."] * (len(words) > self._max_words)
        return Report(self._tags(mean), " ".join(kept), clip.seconds)

    def _tags(self, probabilities: np.ndarray) -> tuple[tuple[str, float], ...]:
        order = np.argsort(-probabilities, kind="stable")
        named = [
            (self._tagger.class_names[index], float(probabilities[index]))
            for index in order[: self._top_k + 1]
        ]
        kept = [(name, p) for name, p in named if p >= self._min_probability and name != "Silence"]
        return tuple(kept[: self._top_k])


def harmless(text: str) -> str:
    """Recognised words on one line that no reader of the chain can take for a tag or a label.

    Brackets become parentheses, and a colon that is not inside a number ("11:30") a comma.
    """
    return " ".join(re.sub(r"(?<!\d):|:(?!\d)", ",", text.translate(_BRACKETS)).split())


def entity_name(class_name: str) -> str:
    """An AudioSet class as one entity: its first name, since commas would make it several.

    "Bird vocalization, bird call, bird song" is "bird vocalization"; "Inside, small room" names a place only as a whole.
    """
    name = re.sub(r"\s*\([^)]*\)", "", class_name)
    first, _, rest = name.partition(",")
    whole = f"{first}{rest}" if first in ("Inside", "Outside") else first
    return whole.casefold().strip()
