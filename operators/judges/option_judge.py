"""An LLM reads which option a free-text response selects (MUGEN section 3.2), and how far to trust it.

The paper's judge is Claude Haiku 4.5 at temperature 0 with a rubric (exactly one correct option; none or several is
incorrect), a brief explanation and a fixed format, and agrees with human annotators on 99% of 400 instances. *Our
reading*: the judge names the selected option and is not shown which one is right. So one verdict serves voting, its
bias cannot favour the gold option, and right or wrong follows by comparison. The prompt is ours.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.answers import Extraction
from operators.fingerprint import execution_field
from operators.mugen.options import Asked
from operators.prompts import Prompt

Chat = Callable[[str], str | None]
_DECISION = re.compile(
    r"^[\s*_`]*decision[\s*_`]*:[\s*_`\"\[]*(?P<said>\d{1,2}|none|several)\b[^\n\d]*$", re.I | re.M
)


class JudgeError(RuntimeError):
    """The judge cannot be used at all: no key, no package, an endpoint that refuses or cannot be reached."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ChatEndpoint:
    """Any server that speaks the OpenAI chat API. The key stays in the environment variable that `key_variable` names.

    `base_url` None: the client's own default. Where a server lives does not change what its model says, so it is no
    identity; `model` and `max_tokens` are. Always temperature 0.
    """

    model: str
    base_url: str | None = execution_field(None)
    key_variable: str = execution_field("OPENAI_API_KEY")
    max_tokens: int = Field(200, ge=1)
    timeout_seconds: float = execution_field(60.0)
    retries: int = execution_field(4)

    def load(self) -> Chat:
        """A function from a prompt to the reply's text. Raises JudgeError without a key or the `openai` package."""
        try:
            import openai
        except ImportError:
            raise JudgeError("the judge needs the package openai: pip install openai") from None
        key = os.environ.get(self.key_variable)
        if not key:
            raise JudgeError(f"set the environment variable {self.key_variable} to the judge's key")
        client = openai.OpenAI(
            api_key=key, base_url=self.base_url, timeout=self.timeout_seconds, max_retries=self.retries
        )

        def chat(prompt: str) -> str | None:
            try:
                reply = client.chat.completions.create(
                    model=self.model,
                    messages=[{"role": "user", "content": prompt}],
                    temperature=0,
                    max_tokens=self.max_tokens,
                )
            except openai.OpenAIError as error:
                raise JudgeError(f"judge {self.model}: {type(error).__name__}") from error
            return reply.choices[0].message.content if reply.choices else None

        return chat


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class OptionJudge:
    """The judge as a reader of options: same results as `operators.mugen.options.RuleReader`, by asking an LLM.

    chat: what answers, with a `load()` that gives a function from prompt to text. concurrency: requests in flight.
    """

    reads: ClassVar[tuple[str, ...]] = ("question", "n_options", "response")
    version: ClassVar[int] = 1

    chat: Any
    prompt: Prompt = Prompt("option_judge")
    concurrency: int = execution_field(8)

    def read(self, asked: Sequence[Asked]) -> list[Extraction]:
        """One extraction per response, stage "judge". Reasons: no_response, empty_response, judged_none,
        judged_several, option_out_of_range, judge_unparsed. Raises JudgeError when the judge is out of reach."""
        if not any(one.response and one.response.strip() for one in asked):
            return [self._read(one, lambda _: None) for one in asked]
        chat = self.chat.load()
        with ThreadPoolExecutor(max(1, self.concurrency)) as pool:
            return list(pool.map(lambda one: self._read(one, chat), asked))

    def _read(self, one: Asked, chat: Chat) -> Extraction:
        if one.response is None:
            return Extraction(None, None, "no_response")
        if not one.response.strip():
            return Extraction(None, None, "empty_response")
        prompt = self.prompt.fill(question=one.question, n_options=str(one.n_options), response=one.response)
        return parse_decision(chat(prompt), one.n_options)


def parse_decision(reply: str | None, n_options: int) -> Extraction:
    """The judge's last "Decision:" line as an extraction; anything but one option has a reason."""
    found = list(_DECISION.finditer(reply or ""))
    if not found:
        return Extraction(None, None, "judge_unparsed")
    said = found[-1]["said"].casefold()
    if said in ("none", "several"):
        return Extraction(None, None, f"judged_{said}")
    place = int(said)
    if not 1 <= place <= n_options:
        return Extraction(None, None, "option_out_of_range")
    return Extraction(place - 1, "judge", None)


class Calibration(NamedTuple):
    """Agreement of a reader with humans on `n` responses: its share and Cohen's kappa (NaN where it is not defined)."""

    n: int
    agreement: float
    kappa: float


def calibrate(read: Sequence[int | None], human: Sequence[int | None]) -> Calibration:
    """Agreement on the selected option; None (no single option) is a label like any other.

    Cohen's kappa (1960): (p - e) / (1 - e), e = sum over labels of the product of both sides' shares. Raises ValueError
    for other lengths or nothing to compare.
    """
    if len(read) != len(human) or not human:
        raise ValueError(f"{len(read)} readings and {len(human)} human labels cannot be compared")
    n = len(human)
    agreement = sum(a == b for a, b in zip(read, human, strict=True)) / n
    chance = sum((list(read).count(label) / n) * (list(human).count(label) / n) for label in {*read, *human})
    return Calibration(n, agreement, (agreement - chance) / (1 - chance) if chance < 1 else float("nan"))
