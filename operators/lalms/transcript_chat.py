"""MUGEN's cascade (section 3.1): a recogniser transcribes every clip, and an LLM behind an API answers from the words alone.

How far it gets says how much of a benchmark is in the words. It hears no sound, no voice and no music.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.audio import Clip, pcm_hash
from operators.backbones.speech_recogniser import SAMPLE_RATE, SpeechRecogniser
from operators.batching import Memo
from operators.lalms.asking import Ready, Request
from operators.lalms.hearing import Hearing
from operators.lalms.listening import harmless
from operators.lalms.openai_chat import OpenAIChat

NO_WORDS = "(no words recognised)"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class TranscriptChat(OpenAIChat):
    """`recogniser` hears, `endpoint` answers; a clip's transcript stands where the clip would."""

    version: ClassVar[int] = 2  # 2: text before clips that are choices
    sends_clips: ClassVar[bool] = False
    takes_at_most: ClassVar[dict[str, float]] = {"actors": 1}  # the recogniser may want a GPU

    recogniser: SpeechRecogniser

    def ready(self) -> Ready:
        """Load the recogniser and connect, as OpenAIChat does. Raises WeightsError without the recogniser."""
        transcripts = Transcripts(self.recogniser.load())
        return Hearing(self.limits, SAMPLE_RATE), self.connected(
            lambda asked: transcribed(asked, transcripts)
        )


class Transcripts:
    """What was said in clips; each distinct sound is recognised once, in however many trials it stands."""

    def __init__(self, recogniser: Any) -> None:
        self._recogniser, self._memo = recogniser, Memo("clips")

    def of(self, clips: Sequence[Clip]) -> list[str]:
        """One text per clip, harmless in a prompt."""
        names = [pcm_hash(clip) for clip in clips]
        sounds = dict(zip(names, clips, strict=True))
        return self._memo.get(names, lambda new: self._recognise(sounds, new))

    def _recognise(self, sounds: Mapping[str, Clip], names: Sequence[str]) -> list[str]:
        texts = self._recogniser.transcribe([sounds[name] for name in names])
        return [harmless(text) or NO_WORDS for text in texts]


def transcribed(requests: Sequence[Request], transcripts: Transcripts) -> list[Request]:
    """The requests with every clip replaced by what was said in it."""
    read = []
    for one in requests:
        words = transcripts.of(one.clips)
        parts = [part if isinstance(part, str) else f'Transcript: "{words[part]}"' for part in one.parts]
        read.append(dataclasses.replace(one, parts=parts, clips=[]))
    return read
