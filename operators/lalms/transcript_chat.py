"""MUGEN's cascade (section 3.1): a recogniser transcribes every clip, and an LLM behind an API answers from the words alone.

How far it gets says how much of a benchmark is in the words. It hears no sound, no voice and no music.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.backbones.speech_recogniser import SAMPLE_RATE, SpeechRecogniser
from operators.base import Batch
from operators.chat_api import UNAVAILABLE, ChatUnavailable
from operators.lalms.asking import Request, Said, answer_rows
from operators.lalms.hearing import Hearing
from operators.lalms.listening import harmless
from operators.lalms.openai_chat import OpenAIChat, say

NO_WORDS = "(no words recognised)"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class TranscriptChat(OpenAIChat):
    """`recogniser` hears, `endpoint` answers; a clip's transcript stands where the clip would."""

    version: ClassVar[int] = 1

    recogniser: SpeechRecogniser

    def build(self) -> Callable[[Batch], Batch]:
        """Load the recogniser and connect, as OpenAIChat does. Raises WeightsError without the recogniser."""
        hearing, recogniser = Hearing(self.limits, SAMPLE_RATE), self.recogniser.load()
        try:
            client: Any = dataclasses.replace(self.endpoint, max_tokens=self.max_new_tokens).connect()
        except ChatUnavailable as error:
            silent = Said(reason=f"{UNAVAILABLE}: {error}")
            return lambda batch: answer_rows(self, hearing, lambda asked: [silent] * len(asked), batch)
        return lambda batch: answer_rows(
            self, hearing, lambda asked: say(self, client, transcribed(asked, recogniser)), batch
        )


def transcribed(requests: Sequence[Request], recogniser: Any) -> list[Request]:
    """The requests with every clip replaced by what was said in it."""
    read = []
    for one in requests:
        words = [harmless(text) or NO_WORDS for text in recogniser.transcribe(one.clips)]
        parts = [part if isinstance(part, str) else f'Transcript: "{words[part]}"' for part in one.parts]
        read.append(dataclasses.replace(one, parts=parts, clips=[]))
    return read
