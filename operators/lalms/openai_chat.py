"""Audio-language models behind an OpenAI-compatible API: GPT-4o-audio, Gemini, or a vLLM server of your own.

    OpenAIChat(endpoint=ChatEndpoint("gpt-4o-audio-preview"))                                 key in OPENAI_API_KEY
    OpenAIChat(endpoint=ChatEndpoint("qwen", base_url="http://127.0.0.1:8000/v1", key_variable=None))

Clips travel inside the request, as WAV in `input_audio` parts between the texts. What the server does about faults, pace,
money and keys is in `operators.chat_client`.
"""

from __future__ import annotations

import base64
import dataclasses
import io
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.audio import Clip, sampling_rate
from operators.chat_api import UNAVAILABLE, ChatEndpoint, ChatUnavailable
from operators.chat_client import ChatClient
from operators.fingerprint import execution_field
from operators.lalms.asking import Answer, Lalm, Ready, Request, Said
from operators.lalms.hearing import Hearing

USUAL_RATE = 48_000  # Hz; few clips have more samples
WAV_HEADER = 44  # bytes


@dataclass(frozen=True, config=ConfigDict(extra="forbid"), kw_only=True)
class OpenAIChat(Lalm):
    """A model behind `endpoint`, whose own `max_tokens` is not used: `max_new_tokens` is the limit of an answer.

    temperature None: the server's own. sample_rate: clips are brought to it before they are sent, None: each keeps its own.
    send_seed: whether the row's seed goes along; not every server takes one, and none promises to be deterministic.
    max_request_mb: a larger request (clips, as they travel) is not sent; None: no limit is known. As clips that are too long
    it stops the run before anything is sent, unless `limits.over_long` is "skip": then its row gets a reason.
    """

    version: ClassVar[int] = 2  # 2: text before clips that are choices
    # Its width is `endpoint.concurrency`, and a spend limit holds for one client.
    takes_at_most: ClassVar[dict[str, float]] = {"actors": 1, "gpus": 0}

    endpoint: ChatEndpoint
    temperature: float | None = Field(0.0, ge=0)
    sample_rate: int | None = Field(None, ge=1000)
    send_seed: bool = True
    max_request_mb: float | None = execution_field(None, gt=0)

    def check(self) -> None:
        """Raise ChatUnavailable for what is certain to fail: no key, no client package."""
        self.endpoint.check()

    def too_large(self, uris: Sequence[str], seconds: Sequence[float | None]) -> str | None:
        """Why a row with these clips, of these lengths, will not be sent, where that can be told beforehand; else None.

        Rates of clips that keep their own are looked up where a row would be too large at USUAL_RATE.
        """
        if self.max_request_mb is None or not self.sends_clips or self.limits.over_long == "skip":
            return None
        used = self.limits.used(length for length in seconds if length is not None)
        rates: list[int | None] = [self.sample_rate or USUAL_RATE] * len(used)
        if self.sample_rate is None and _encoded_mb(used, rates) > self.max_request_mb:
            rates = [
                sampling_rate(uri) for uri, length in zip(uris, seconds, strict=True) if length is not None
            ]
        return None if None in rates else _over(_encoded_mb(used, rates), self.max_request_mb)

    def ready(self) -> Ready:
        """Connect. On a worker without a key every row says so, which fails the run (ChatUnavailable)."""
        return Hearing(self.limits, self.sample_rate), self.connected(lambda asked: asked)

    def connected(self, worded: Callable[[list[Request]], list[Request]]) -> Answer:
        """What sends requests, as `worded` writes them, to the endpoint, or says of each why none can be sent."""
        try:
            client = dataclasses.replace(self.endpoint, max_tokens=self.max_new_tokens).connect()
        except ChatUnavailable as error:
            silent = Said(reason=f"{UNAVAILABLE}: {error}")
            return lambda asked: [silent] * len(asked)
        return lambda asked: say(self, client, worded(asked))


def say(spec: OpenAIChat, client: ChatClient, requests: list[Request]) -> list[Said]:
    """One answer per request; requests that are too large are not sent."""
    bodies = [body(spec, one) for one in requests]
    said = [_too_large(spec, one) for one in bodies]
    sent = [one for one, refused in zip(bodies, said, strict=True) if refused is None]
    replies = iter(client.ask(sent))
    answers = []
    for refused in said:
        reply = None if refused else next(replies)
        answers.append(refused or Said(reply.text, reply.finish_reason, reply.usage, reply.reason))
    return answers


def body(spec: OpenAIChat, request: Request) -> dict[str, Any]:
    """The request as the API wants it: one user turn of texts and clips in order, and how to decode."""
    content = [
        {"type": "text", "text": part} if isinstance(part, str) else audio_part(request.clips[part])
        for part in request.parts
    ]
    messages = [{"role": "user", "content": content}]
    if spec.system_prompt is not None:
        messages = [{"role": "system", "content": spec.system_prompt}, *messages]
    decoding = {"temperature": spec.temperature, "top_p": spec.top_p}
    given = {name: value for name, value in decoding.items() if value is not None}
    seed = {"seed": request.seed % 2**31} if spec.send_seed else {}
    return {"messages": messages, **given, **seed}


def audio_part(clip: Clip) -> dict[str, Any]:
    """A clip as 16-bit WAV in base64."""
    import soundfile

    wav = io.BytesIO()
    soundfile.write(wav, clip.samples, clip.sample_rate, format="WAV", subtype="PCM_16")
    return {
        "type": "input_audio",
        "input_audio": {"data": base64.b64encode(wav.getvalue()).decode("ascii"), "format": "wav"},
    }


def _too_large(spec: OpenAIChat, one: dict[str, Any]) -> Said | None:
    parts = one["messages"][-1]["content"]
    size = sum(len(part["input_audio"]["data"]) for part in parts if part["type"] == "input_audio") / 2**20
    reason = None if spec.max_request_mb is None else _over(size, spec.max_request_mb)
    return None if reason is None else Said(reason=reason)


def _over(size: float, most: float) -> str | None:
    if size <= most:
        return None
    return f"request_too_large: {size:.1f} MB of audio, the server takes {most:g} MB"


def _encoded_mb(seconds: Sequence[float], rates: Sequence[int]) -> float:
    """MiB of clips as `audio_part` writes them: two bytes a sample after a header, four characters for three bytes."""
    whole = (WAV_HEADER + 2 * round(length * rate) for length, rate in zip(seconds, rates, strict=True))
    return sum(4 * -(-size // 3) for size in whole) / 2**20
