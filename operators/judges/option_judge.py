"""An LLM reads which option a free-text response selects (MUGEN section 3.2), and how far to trust it.

The paper's judge is Claude Haiku 4.5 at temperature 0 with a rubric (exactly one correct option; none or several is
incorrect), a brief explanation and a fixed format, and agrees with human annotators on 99% of 400 instances. *Our
reading*: the judge names the selected option and is not shown which one is right. So one verdict serves voting, its
bias cannot favour the gold option, and right or wrong follows by comparison. The prompt is ours.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.answers import Extraction
from operators.chat_api import SPENT, UNAVAILABLE, ChatUnavailable, Reply
from operators.mugen.options import JUDGE_FAILED, JUDGE_UNPARSED, Asked
from operators.prompts import Prompt

# The judge had its turn and said nothing: asking again would give the same.
WORDLESS = ("empty_answer", "refusal", "content_filter")
# Nobody will be asked any more: the run has failed, not the response.
OVER = (UNAVAILABLE, SPENT)
_DECISION = re.compile(r"^[\s*_`]*decision[\s*_`]*:(?P<line>[^\n]*)$", re.I | re.M)
_SAID = re.compile(r"[\s*_`\"\[]*(\d{1,2}|none|several)[^\w<>=+/-]*", re.I)


class JudgeError(RuntimeError):
    """The judge cannot be used at all: no key, no package, an endpoint that refuses or cannot be reached, no money left.

    `finished`: what it decided before, one extraction per response that was asked, None where it did not come to that.
    """

    def __init__(self, message: str, finished: Sequence[Extraction | None] = ()) -> None:
        super().__init__(message)
        self.finished = list(finished)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class OptionJudge:
    """The judge as a reader of options: same results as `operators.mugen.options.RuleReader`, by asking an LLM.

    chat: what answers, an `operators.chat_api.ChatEndpoint` or anything with the same `connect()`. Always temperature 0.
    """

    reads: ClassVar[tuple[str, ...]] = ("question", "n_options", "response")
    version: ClassVar[int] = 3  # 3: a verdict that the judge's limit cut is none

    chat: Any
    prompt: Prompt = Prompt("option_judge")

    def read(self, asked: Sequence[Asked]) -> list[Extraction]:
        """One extraction per response, stage "judge". Reasons: no_response, empty_response, judged_none,
        judged_several, option_out_of_range, judge_unparsed, judge_failed: (a fault of that one request). Raises JudgeError,
        with the verdicts that were finished, when the judge is out of reach."""
        told = [one for one in asked if one.response and one.response.strip()]
        replies = self._ask(told)
        rest = iter(replies)
        found = [
            _verdict(next(rest), one.n_options)
            if one.response and one.response.strip()
            else Extraction(None, None, "no_response" if one.response is None else "empty_response")
            for one in asked
        ]
        over = [reply.reason for reply in replies if (reply.reason or "").startswith(OVER)]
        if over:
            raise JudgeError(f"{len(over)} of {len(told)} responses could not be judged: {over[0]}", found)
        return found

    def _ask(self, told: Sequence[Asked]) -> list[Reply]:
        prompts = [
            self.prompt.fill(question=one.question, n_options=str(one.n_options), response=one.response)
            for one in told
        ]
        bodies = [{"messages": [{"role": "user", "content": text}], "temperature": 0} for text in prompts]
        try:
            return self.chat.connect().ask(bodies) if bodies else []
        except ChatUnavailable as error:
            raise JudgeError(str(error)) from error


def _verdict(reply: Reply, n_options: int) -> Extraction | None:
    reason = reply.reason or ""
    if reason.startswith(OVER):
        return None
    if reason and not reason.startswith(WORDLESS):
        return Extraction(None, None, f"{JUDGE_FAILED}: {reason}")
    if reply.finish_reason == "length":
        return Extraction(None, None, JUDGE_UNPARSED)  # "Decision: 1" may be half of a 12
    return parse_decision(reply.text, n_options)


def parse_decision(reply: str | None, n_options: int) -> Extraction:
    """The judge's "Decision:" line as an extraction; anything but one option has a reason.

    Nothing but punctuation may follow on that line ("2, several" decides nothing), and where there are several such lines
    they must say the same.
    """
    found = [_SAID.fullmatch(one["line"]) for one in _DECISION.finditer(reply or "")]
    said = found[0][1].casefold() if found and found[0] else ""
    if not said or any(one is None or one[1].casefold() != said for one in found):
        return Extraction(None, None, JUDGE_UNPARSED)
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
