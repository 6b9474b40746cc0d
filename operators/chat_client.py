"""Asking a chat API: many requests in flight, every fault told apart, costs counted.

The official client does the talking. Its own retries are off: it cannot tell a server that asks for patience (429, whose
`Retry-After` holds for every request of ours) from one that stumbled (5xx, which concerns one request).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from operators.base import ROW_ERRORS
from operators.chat_api import SPENT, UNAVAILABLE, ChatEndpoint, Reply
from operators.chat_faults import (
    BROKEN_OFF,
    Fault,
    held_back,
    redacted,
    said_instead,
    what_happened,
    without_key,
)
from operators.chat_pace import Pace
from operators.locators import shown
from operators.text import without_control_tokens

# What reading an answer may raise, in the client or here: an answer is untrusted, and one nested without end is a
# RecursionError (a RuntimeError) of the JSON reader. Each concerns one request.
UNREADABLE = (*ROW_ERRORS, TypeError, AttributeError)

LEAST_WAIT = 0.05  # seconds after a 429, whatever the server or the config say: waiting comes to an end


def harmless(message: Mapping[str, Any], control_tokens: Sequence[str]) -> dict[str, Any]:
    """A turn of a chat in whose texts no control token is left; clips stay as they are."""
    content = message["content"]
    if isinstance(content, str):
        return {**message, "content": without_control_tokens(content, control_tokens)}
    parts = [
        {**part, "text": without_control_tokens(part["text"], control_tokens)}
        if part["type"] == "text"
        else part
        for part in content
    ]
    return {**message, "content": parts}


def _tokens(counts: Any, name: str) -> int | None:
    """A number of tokens as a server states it; None for what is none."""
    count = getattr(counts, name, None)
    return count if type(count) is int and 0 <= count < 10**12 else None


class ChatClient:
    """Asks one endpoint; remembers between calls how fast it may ask, what it has spent, and whether the server is gone."""

    def __init__(self, spec: ChatEndpoint, key: str) -> None:
        self._spec, self._key = spec, key
        self._pace = Pace(spec.concurrency)
        self._stopped: str | None = None
        self._failed_in_a_row = 0
        self._reserved = 0.0
        self._dearest_prompt = 0.0
        self.spent = 0.0

    def ask(self, bodies: Sequence[Mapping[str, Any]]) -> list[Reply]:
        """One reply per request body (`messages` and whatever decoding fields the caller wants), in order."""
        if not bodies:
            return []
        # In a thread of its own, because a notebook has an event loop running already.
        with ThreadPoolExecutor(1) as thread:
            return thread.submit(asyncio.run, self._ask_all(bodies)).result()

    @property
    def unavailable(self) -> str | None:
        """Why nothing is sent any more, or None."""
        return self._stopped

    async def _ask_all(self, bodies: Sequence[Mapping[str, Any]]) -> list[Reply]:
        import openai

        spec = self._spec
        straight = openai.DefaultAsyncHttpxClient(follow_redirects=False, timeout=spec.timeout_seconds)
        async with openai.AsyncOpenAI(
            api_key=self._key,
            base_url=spec.base_url,
            timeout=spec.timeout_seconds,
            max_retries=0,
            http_client=straight,
        ) as client:
            self._pace.start()
            return list(await asyncio.gather(*(self._ask(client, body) for body in bodies)))

    async def _ask(self, client: Any, body: Mapping[str, Any]) -> Reply:
        """One request, tried until it has an answer or a reason."""
        tries, waits, waited = 0, 0, 0.0
        while True:
            async with self._pace.slot() as sent:
                if refused := self._refused():
                    return Reply(reason=refused)
                reply, fault = await self._attempt(client, body)
                if reply is not None:
                    return self._settled(reply)
                if fault.kind == "wait":
                    waits += 1
                    waited += (pause := max(LEAST_WAIT, self._backoff(waits, fault)))
                    patient = waited <= self._spec.patience_seconds
                    if patient:
                        self._pace.slow_down(sent, pause)
            if fault.kind == "wait" and patient:
                continue  # the pace holds everybody back
            tries += 1
            pause = self._backoff(tries, fault)
            if fault.kind == "retry" and tries <= self._spec.retries and pause <= self._spec.patience_seconds:
                await asyncio.sleep(pause)
                continue
            return self._failed(fault, tries)

    async def _attempt(self, client: Any, body: Mapping[str, Any]) -> tuple[Reply | None, Fault | None]:
        """A reply or a fault. What a lost attempt may have cost counts as spent, but is no cost of a reply: nobody knows it."""
        import openai

        spec = self._spec
        messages = [harmless(one, spec.control_tokens) for one in body["messages"]]
        own = {"messages": messages, spec.token_field: spec.max_tokens, "model": spec.model}
        whole = {**spec.extra, **body, **own}
        known = {"messages", "model", "temperature", "top_p", "seed", spec.token_field}
        sent = {name: value for name, value in whole.items() if name in known}
        rest = {name: value for name, value in whole.items() if name not in known}
        reserve = self._worst_case()
        self._reserved += reserve
        try:
            # The client's own timeout starts anew with every byte; this one does not.
            async with asyncio.timeout(spec.timeout_seconds):
                reply, fault = self._read(
                    await client.chat.completions.create(**sent, extra_body=rest or None)
                )
        except (openai.OpenAIError, TimeoutError, ExceptionGroup, *UNREADABLE) as error:
            reply, fault = None, what_happened(error, spec.timeout_seconds, self._key)
        finally:
            self._reserved -= reserve
        if fault is not None and fault.perhaps_charged:
            self.spent += reserve
        return reply, fault

    def _read(self, raw: Any) -> tuple[Reply | None, Fault | None]:
        """A chat completion as a reply, with a reason where it holds no text of the model's."""
        from openai.types.chat import ChatCompletionMessage

        # The client builds what it can of an answer and leaves the rest as it came.
        choices = getattr(raw, "choices", None)
        first = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(first, "message", None)
        finish = getattr(first, "finish_reason", None)
        finish = redacted(finish, self._key) if isinstance(finish, str) else None
        if not isinstance(message, ChatCompletionMessage) and not held_back(finish):
            told = said_instead(getattr(raw, "model_extra", None), self._key)
            unread = "bad_reply: the server's answer is no chat completion" + (f" but {told}" if told else "")
            return None, Fault("retry", unread, perhaps_charged=True)
        usage = self._count(getattr(raw, "usage", None))
        if finish in BROKEN_OFF:
            return None, Fault("retry", f"server_error: the server broke its answer off ({finish})")
        text, reason = getattr(message, "content", None), None
        if held_back(finish):
            reason = "content_filter: the server held the answer back"
        elif refusal := getattr(message, "refusal", None):
            reason = redacted(f"refusal: {refusal}", self._key)
        elif text is not None and not isinstance(text, str):
            reason = f"bad_reply: the answer's content is no text but a {type(text).__name__}"
        elif not (text or "").strip():
            cut = finish == "length"
            reason = "empty_answer: " + (
                "max_tokens were used up before the answer began"
                if cut
                else "the server answered without a text"
            )
        return Reply(None if reason else without_key(text, self._key), finish, usage, reason), None

    def _count(self, raw: Any) -> dict[str, float]:
        """Token counts of one reply, and its cost where prices are known; adds the cost to what is spent.

        A reply that does not say both counts has no cost that anybody knows; towards the limit it counts as its worst case.
        What `total_tokens` holds beyond both was generated and is charged, though not shown: Gemini's thinking.
        """
        names = ("prompt_tokens", "completion_tokens")
        usage = {name: count for name in names if (count := _tokens(raw, name)) is not None}
        audio = _tokens(getattr(raw, "prompt_tokens_details", None), "audio_tokens")
        if audio and audio <= usage.get("prompt_tokens", 0):
            usage["audio_tokens"] = audio
        total, read = _tokens(raw, "total_tokens"), usage.get("prompt_tokens")
        if total is not None and read is not None and total - read > usage.get("completion_tokens", 0):
            usage["completion_tokens"] = total - read
        if self._spec.prices is not None and not all(name in usage for name in names):
            self.spent += self._worst_case()
        elif self._spec.prices is not None:
            cost = self._spec.prices.cost(usage)
            self.spent += cost
            prompt = self._spec.prices.cost({**usage, "completion_tokens": 0})
            self._dearest_prompt = max(self._dearest_prompt, prompt)
            return {**usage, "cost": cost}
        return usage

    def _worst_case(self) -> float:
        prices = self._spec.prices
        return self._dearest_prompt + prices.completion * self._spec.max_tokens / 1e6 if prices else 0.0

    def _refused(self) -> str | None:
        """Why a request is not sent at all: the server is gone, or the money is."""
        limit = self._spec.spend_limit
        if self._stopped is None and limit is not None:
            most = self.spent + self._reserved + self._worst_case()
            if most > limit:
                return (
                    f"{SPENT}: {self.spent:.4f} of {limit:g} are spent, one more answer might pass the limit"
                )
        return self._stopped

    def _settled(self, reply: Reply) -> Reply:
        self._failed_in_a_row = 0
        self._pace.speed_up()
        return reply

    def _failed(self, fault: Fault, tries: int) -> Reply:
        """The reply that a request is given up with; the whole server with it, where that is what failed."""
        spec, said = self._spec, fault.reason + (f" ({tries} tries)" if tries > 1 else "")
        if fault.kind != "row":
            self._failed_in_a_row += 1
        if fault.stops or self._failed_in_a_row >= spec.give_up_after:
            where = f" at {shown(spec.base_url)}" if spec.base_url else ""
            self._stopped = self._stopped or f"{UNAVAILABLE}: {spec.model}{where}: {said}"
            return Reply(reason=self._stopped)
        return Reply(reason=said)

    def _backoff(self, tries: int, fault: Fault) -> float:
        return fault.retry_after or min(30.0, self._spec.backoff_seconds * 2.0 ** min(tries - 1, 100))
