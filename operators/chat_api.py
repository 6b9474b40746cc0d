"""A model behind any server that speaks the OpenAI chat API: where it is, its key, how patiently it is asked, what it may cost.

Who asks gets one `Reply` per request, in order. A fault of one request (a refusal, a content filter, a cut connection, no
answer in time) is that reply's `reason`. A fault of the server as a whole (no key, a wrong key, an unknown model, nobody
there) makes every further reply `model_unavailable`, and nothing more is sent: what is finished stays finished, and the
caller decides that the run has failed. `operators.chat_client` does the asking.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass as plain_dataclass
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, ConfigDict, Field, field_validator
from pydantic.dataclasses import dataclass

from operators.chat_faults import may_be_a_key, where_a_key_is
from operators.fingerprint import execution_field, later_field

if TYPE_CHECKING:
    from operators.chat_client import ChatClient

UNAVAILABLE = "model_unavailable"
SPENT = "spend_limit"  # how the reason of a request begins that was not sent for want of money


class ChatUnavailable(RuntimeError):
    """A server that cannot be used at all: no key, no package, a key that is refused, nobody there."""


def _name_of_a_variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) or may_be_a_key(text):
        raise ValueError("this is the name of an environment variable, never the key itself")
    return text


# Where a key is kept. Errors show nothing of what was given: it may be the key.
KeyVariable = Annotated[str, AfterValidator(_name_of_a_variable)]


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Prices:
    """What a million tokens cost, in one currency of your choice; `audio` None: audio tokens cost as `prompt` does."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    audio: float | None = Field(None, ge=0)

    def cost(self, usage: Mapping[str, int]) -> float:
        """The price of one reply, by its token counts (`prompt_tokens` includes `audio_tokens`)."""
        audio = usage.get("audio_tokens", 0)
        heard = audio * (self.prompt if self.audio is None else self.audio)
        read = (usage.get("prompt_tokens", 0) - audio) * self.prompt
        return (read + heard + usage.get("completion_tokens", 0) * self.completion) / 1e6


@plain_dataclass(frozen=True)
class Reply:
    """What came back: `text` or a `reason`, never both; `usage` counts tokens (and `cost`, where prices are known)."""

    text: str | None = None
    finish_reason: str | None = None
    usage: dict[str, float] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True, config=ConfigDict(extra="forbid", hide_input_in_errors=True))
class ChatEndpoint:
    """A model behind a chat API. The key stays in the environment variable that `key_variable` names (None: no key).

    Identity: `model`, `revision`, the full commit hash of the checkpoint that a server of your own loads (None: nothing is said
    of it, as of a hosted model; the server is not asked), `max_tokens`, `extra`, fields that go into every request as they are, and `control_tokens`. Questions
    and responses are untrusted, and a server of your own, vLLM's too, fills them into its template and then reads whatever
    looks like a control token as one: a question could end its turn, or bring an audio span of its own. So none of these
    texts is left in what is sent: as with the local backends, "<|im_end|>" becomes "< |im_end|>". "<|" is how those of most
    models begin; name what others have: "<start_of_turn>" and "<end_of_turn>" (Gemma), "[INST]" and "[/INST]" (Mistral).

    Where the server lives and how patiently it is asked is not: `base_url` (None: the client's own default), `token_field`
    (what the server calls `max_tokens`), `timeout_seconds` (one attempt, whole answer included), `retries` (further
    attempts after a fault of one request), `patience_seconds` (how long one request waits in all when the server says 429;
    for one that asks for more nobody waits), `concurrency` (most requests in flight), `give_up_after` (requests failed in a
    row that make the server unavailable).

    Money: `prices` in whatever currency, `spend_limit` in the same. No request is sent that would pass the limit if it used all
    its `max_tokens` and read as much as the dearest prompt so far; the rows not asked get the reason `spend_limit`. What a
    prompt costs shows first in a reply: requests in flight until then may pass the limit by their prompts. An attempt that ends
    without a usage though the server may have worked (no answer in time, a cut connection, an answer that cannot be read)
    counts as its worst case towards the limit; totals of a run count what replies say. The limit holds for one client: a stage
    of a run has one (`Stage`), and so several stages that ask the same endpoint (the strategies of a MUGEN run) have one limit
    each. The chains of a perturbed run share theirs with all that are asked in one go (pipelines.perturb).
    """

    model: str
    base_url: str | None = execution_field(None)
    key_variable: KeyVariable | None = execution_field("OPENAI_API_KEY")
    max_tokens: int = Field(200, ge=1)
    token_field: Literal["max_tokens", "max_completion_tokens"] = execution_field("max_tokens")
    extra: dict[str, Any] = Field(default_factory=dict)
    control_tokens: tuple[str, ...] = ("<|",)
    timeout_seconds: float = execution_field(60.0, gt=0)
    retries: int = execution_field(4, ge=0)
    backoff_seconds: float = execution_field(0.5, ge=0)
    patience_seconds: float = execution_field(600.0, ge=0)
    concurrency: int = execution_field(8, ge=1)
    give_up_after: int = execution_field(20, ge=1)
    prices: Prices | None = execution_field(None)
    spend_limit: float | None = execution_field(None, ge=0)
    revision: str | None = later_field(None, pattern="^[0-9a-f]{40}$")

    @field_validator("base_url")
    @classmethod
    def _an_address(cls, address: str | None) -> str | None:
        """Told before the run: the client takes any text, and every request then fails by itself."""
        try:
            parts = urlsplit("http://default" if address is None else address)
            right = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:  # brackets that do not close, a port that is no number up to 65535
            right = False
        if not right or re.search(r"[\s\x00-\x1f\x7f]", address or ""):
            raise ValueError("this is no address: write it like http://localhost:8000/v1 or https://host/v1")
        return address

    @field_validator("extra")
    @classmethod
    def _no_key_inside(cls, extra: dict[str, Any]) -> dict[str, Any]:
        if place := where_a_key_is(extra):
            raise ValueError(
                f"{place} holds a key, which would be written into every record of the run: name an environment "
                "variable by key_variable instead"
            )
        return extra

    def __post_init__(self) -> None:
        if self.spend_limit is not None and self.prices is None:
            raise ValueError(
                "a spend_limit needs prices: prices.prompt and prices.completion per million tokens"
            )

    def key(self) -> str:
        """The key, from the environment. Raises ChatUnavailable, naming the variable, where there is none that can be sent."""
        if self.key_variable is None:
            return "none"  # the client refuses to start without one, and a server without keys ignores it
        key = os.environ.get(self.key_variable, "").strip()
        if not key:
            raise ChatUnavailable(
                f"set the environment variable {self.key_variable} to the key for {self.model}"
            )
        if not key.isascii() or not key.isprintable():
            raise ChatUnavailable(
                f"the environment variable {self.key_variable} holds no key that can be sent for {self.model}: "
                "it has a line break or a sign that is not ASCII in it; copy the key anew"
            )
        return key

    def check(self) -> None:
        """Raise ChatUnavailable for what is certain to fail, before anything is sent: no key or none that can be sent, no
        client package, an environment (proxies, certificates) that the client cannot be made in."""
        try:
            import openai
        except ImportError:
            raise ChatUnavailable("the client is missing: pip install 'audio-reasoning-eval[api]'") from None
        self.key()
        try:
            openai.DefaultAsyncHttpxClient()
        except Exception as error:
            # Of the client's libraries, which have no common ancestor. Its text may hold a password.
            needs = f": {error}" if isinstance(error, ImportError) else ""
            raise ChatUnavailable(
                f"the client cannot be made in this environment ({type(error).__name__}{needs}): look at HTTP_PROXY, "
                "HTTPS_PROXY, ALL_PROXY and SSL_CERT_FILE"
            ) from None

    def connect(self) -> ChatClient:
        """The client for one process. Raises ChatUnavailable as `check` does."""
        from operators.chat_client import ChatClient  # which is made of what stands here

        self.check()
        return ChatClient(self, self.key())
