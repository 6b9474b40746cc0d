"""Speech from any server with the OpenAI speech API (the paper: gpt-4o-mini-tts with a description of the emotion)."""

from __future__ import annotations

import os

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import AudioError, Clip, decode_bytes
from operators.chat_api import KeyVariable
from operators.fingerprint import execution_field
from operators.speech.rendering import Line, Render, RenderingError, SpeechError


@dataclass(frozen=True, config=ConfigDict(extra="forbid", hide_input_in_errors=True))
class SpeechEndpoint:
    """The key stays in the environment variable that `key_variable` names.

    instructions: {emotion: how the server is told to speak}; what it may render. `base_url` None: the client's own
    default. Attempts differ because such servers sample.
    """

    model: str
    voices: tuple[str, ...]
    instructions: dict[str, str]
    response_format: str = Field("wav", pattern="^(wav|flac|mp3|opus)$")
    base_url: str | None = execution_field(None)
    key_variable: KeyVariable = execution_field("OPENAI_API_KEY")
    timeout_seconds: float = execution_field(120.0, gt=0)
    retries: int = execution_field(4, ge=0)

    @property
    def emotions(self) -> frozenset[str]:
        """The emotions that have instructions."""
        return frozenset(self.instructions)

    @property
    def generator(self) -> str:
        """What the items say."""
        return self.model

    def load(self) -> Render:
        """Raises SpeechError without a key or the `openai` package."""
        try:
            import openai
        except ImportError:
            raise SpeechError("speech from a server needs the package openai: pip install openai") from None
        key = os.environ.get(self.key_variable)
        if not key:
            raise SpeechError(f"set the environment variable {self.key_variable} to the server's key")
        # A redirect would take the text, and on the same host the key, to an address that nobody chose.
        straight = openai.DefaultHttpxClient(follow_redirects=False, timeout=self.timeout_seconds)
        client = openai.OpenAI(
            api_key=key,
            base_url=self.base_url,
            timeout=self.timeout_seconds,
            max_retries=self.retries,
            http_client=straight,
        )

        def render(line: Line, attempt: int) -> Clip:
            try:
                reply = client.audio.speech.create(
                    model=self.model,
                    voice=line.voice,
                    input=line.text,
                    instructions=self.instructions[line.emotion],
                    response_format=self.response_format,
                )
            except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
                raise SpeechError(f"speech server, {self.model}: {type(error).__name__}") from None
            except openai.OpenAIError as error:
                raise RenderingError(f"speech_server: {type(error).__name__}") from None
            try:
                return decode_bytes(reply.content, f"the reply of {self.model}")
            except AudioError as error:
                raise RenderingError(str(error)) from None

        return render
