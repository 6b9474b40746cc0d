"""An LLM rates the quality of a chain of thought: what ARIA is compared with (ARIA-Rubrics, Table 2 and appendix B.3).

*Our reading*: the paper gives its judges (DeepSeek, Gemini) but not their prompt; its scores lie in [0, 1]. Ours is text, so
the judge is told the right answer in place of the audio. A judge that fails gives no score, never a 0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.base import Batch
from operators.chat_api import UNAVAILABLE, ChatUnavailable, Reply
from operators.lalms.asking import lettered
from operators.prompts import Prompt

FIELDS = frozenset({"question", "choices", "gold_answer", "response"})
# A line that gives a score, whatever stands there; its value may stand on the next one.
_LINE = re.compile(r"^[\s*_`]*score[\s*_`]*[:=][\s*_`]*[^\n]*$", re.I | re.M)
# Such a line with one number. What follows it is set off from it and holds no digit, and so no second number and no other scale.
_SCORE = re.compile(
    r"^[\s*_`]*score[\s*_`]*[:=][\s*_`]*(?P<number>[01](?:[.,]\d+)?|[.,]\d+)[\s*_`]*"
    r"(?:(?:/|out of)\s*1(?:\.0)?)?[\s*_`]*(?:[.*_`\s]*|\([^\d\n]*\)[.*_`\s]*|[-–—,;][^\d\n]*)$",
    re.I,
)
# Pairs of an object as tuples, for a name may come twice; line breaks in strings are no JSON, and common in explanations.
_JSON = json.JSONDecoder(object_pairs_hook=list, strict=False)
_MOST_STARTS = 50  # braces in prose that are tried as the start of an object
_NUMBER = re.compile(r"[01](?:\.\d+)?|\.\d+")
_LONGEST_REPLY = 2000
UNPARSED = "judge_unparsed: no line 'Score: <0 to 1>'"
CUT = "judge_cut: max_tokens ended the judge's reply; raise judges.<name>.chat.max_tokens"


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class ChainJudge:
    """A judge behind a chat API, at temperature 0.

    chat: what answers, an `operators.chat_api.ChatEndpoint` or anything with the same `connect()`. prompt: may have the
    fields question, choices, gold_answer and response.

    Writes `judge_score` in [0, 1] (NaN with a reason), `judge_score_reason` (judge_unparsed; judge_cut: its limit ended the
    reply, and what stands there may be half a number; or the fault of the request) and `judge_score_details` (JSON: the judge's
    words, its finish_reason and its usage).
    """

    reads: ClassVar[tuple[str, ...]] = ("question", "choices", "gold_answer", "response")
    writes: ClassVar[tuple[str, ...]] = ("judge_score", "judge_score_reason", "judge_score_details")
    # 2: a JSON object with a score, and a score with a remark behind it, are scores. 3: a cut reply, one whose last score
    # line holds no score, and one that gives two, have none.
    version: ClassVar[int] = 3
    takes_at_most: ClassVar[dict[str, float]] = {"actors": 1, "gpus": 0}  # one client: one pace, one purse

    chat: Any
    prompt: Prompt = Prompt("chain_judge")

    def __post_init__(self) -> None:
        if unknown := self.prompt.fields - FIELDS:
            raise ValueError(
                f"prompt has the field {sorted(unknown)[0]!r}; a judge's may have {sorted(FIELDS)}"
            )

    def check(self) -> None:
        """Raise ChatUnavailable for what is certain to fail: no key, no client package."""
        self.chat.check()

    def build(self) -> Callable[[Batch], Batch]:
        """Connect. On a worker without a key every row says so, which fails the run (ChatUnavailable)."""
        try:
            client = self.chat.connect()
        except ChatUnavailable as error:
            silent = Reply(reason=f"{UNAVAILABLE}: {error}")
            return lambda batch: _columns([silent] * len(batch["response"]))
        return lambda batch: _columns(
            client.ask([self._body(batch, row) for row in range(len(batch["response"]))])
        )

    def _body(self, batch: Batch, row: int) -> dict[str, Any]:
        values = {name: str(batch[name][row] or "") for name in FIELDS - {"choices"}}
        values["choices"] = lettered(list(batch["choices"][row]))
        text = self.prompt.fill(**{name: values[name] for name in self.prompt.fields})
        return {"messages": [{"role": "user", "content": text}], "temperature": 0}


def parse_score(reply: str) -> float | None:
    """The number in [0, 1] on the last "Score:" line, or the score of the one JSON object that has one; None: neither, or both
    and they differ."""
    told = [float(score) for value in _objects(reply) for score in _scores(value)]
    if lines := _LINE.findall(reply):
        found = _SCORE.fullmatch(lines[-1])
        last = [float(found["number"].replace(",", "."))] if found else []
        told = last if told in ([], last) else []
    return told[0] if len(told) == 1 and 0 <= told[0] <= 1 else None


def _objects(text: str) -> Iterator[Any]:
    """The JSON objects in `text`, outermost ones, in order; what only looks like the start of one is passed over."""
    position = text.find("{")
    for _ in range(_MOST_STARTS):
        if position < 0:
            return
        try:
            value, end = _JSON.raw_decode(text, position)
            yield value
        except (ValueError, RecursionError):
            end = position + 1
        position = text.find("{", end)


def _scores(value: Any) -> list[str]:
    """What a JSON value gives under `score`, as often as it does; "nan" for what is no number of [0, 1]."""
    told: list[str] = []
    for part in value if isinstance(value, list) else ():
        name, inner = part if isinstance(part, tuple) else ("", part)
        if name.strip().casefold() == "score":
            told.append(str(inner) if _NUMBER.fullmatch(str(inner)) else "nan")
        else:
            told += _scores(inner)
    return told


def _rated(reply: Reply) -> tuple[float | None, str | None]:
    """The score of one reply, or the reason why it has none."""
    if reply.reason or reply.finish_reason == "length":
        return None, reply.reason or CUT
    score = parse_score(reply.text or "")
    return score, UNPARSED if score is None else None


def _columns(replies: Sequence[Reply]) -> Batch:
    rated = [_rated(reply) for reply in replies]
    said = [
        {"reply": (one.text or "")[:_LONGEST_REPLY], "finish_reason": one.finish_reason} for one in replies
    ]
    details = [json.dumps({**words, **one.usage}) for words, one in zip(said, replies, strict=True)]
    return {
        "judge_score": np.array([np.nan if score is None else score for score, _ in rated], dtype=float),
        "judge_score_reason": np.array([reason for _, reason in rated], dtype=object),
        "judge_score_details": np.array(details, dtype=object),
    }
