"""Which audio option a free-text response chooses: positions by word, number, letter or ordinal, or a named refusal.

MUGEN (section 3.2) asks for exactly one option; a response that selects none or several is wrong. The choices of such a
question are clips, so a model names them by place: "the third clip", "Audio 3", "C", "option three", "clip #2". Every
such name is rewritten to its label "Audio k", and `operators.answers` then reads the statements: negation ("not the
second clip but the fourth"), conclusions, answer tags, refusals. Nothing is ever guessed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from operators.answer_numbers import NUMBERS
from operators.answers import Extraction, extract_answer
from operators.text import sentences

_CARDINALS = NUMBERS[:13]
_ORDINALS = [
    "zeroth",
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
]
_CHINESE = "零一二三四五六七八九十"
_NOUN = (
    r"(?:audio|sound|voice)[ _-]?(?:clips?|files?|samples?|recordings?|tracks?|segments?|options?|candidates?|choices?)"
    r"|audios?|clips?|numbers?|options?|candidates?|choices?|recordings?|samples?|tracks?|files?|segments?|excerpts?|sounds?"
)
_CARDINAL = rf"(?:\d{{1,3}}(?![\d.,:]*\d|\s?(?:%|s\b|sec|seconds?\b|ms\b|hz\b|khz\b|db\b))|(?:{'|'.join(_CARDINALS)})\b)"
_MARKS = r"[\s\"'*_`(\[<:]{0,4}"
_HASH = r"(?:(?:number|no\.?|nr\.?|#|№)\s{0,2})?"
_JOINT = r"\s{0,2}(?:,|&|/|-|and\b|or\b|,\s{0,2}(?:and|or)\b)\s{0,2}"
# "clip 3", "Audio #3", "options 2 and 4", "audio three", "candidate C"; "audio 3 of 5" keeps its first number.
_NUMBERED = re.compile(
    rf"\b(?i:{_NOUN})(?:{_MARKS}{_HASH}){_MARKS}(?P<places>(?i:{_CARDINAL})(?:{_JOINT}{_HASH}(?i:{_CARDINAL})(?!\w))*|[A-L](?![\w'])"
    rf"(?:{_JOINT}[A-L](?![\w']))*)(?:\s{{0,2}}(?i:(?:out\s)?of|/)\s{{0,2}}\d{{1,2}})?",
)
_ORDINAL = rf"(?:{'|'.join(_ORDINALS)}|last|final|\d{{1,2}}(?:st|nd|rd|th))"
# "the third clip", "first and third options", "the 2nd one"; "the third longest clip" is not a place.
_ORDERED = re.compile(
    rf"\b(?P<places>{_ORDINAL}(?:{_JOINT}(?:the\s)?{_ORDINAL})*)\s{{1,3}}(?:(?:candidate|audio|given|provided)\s)?(?:{_NOUN}|one)\b(?!\s?\d)",
    re.IGNORECASE,
)
_CHINESE_ORDERED = re.compile(
    r"第\s?(?P<place>\d{1,2}|[一二三四五六七八九十])\s?(?:个|段|條|条)?(?:音频|音頻|录音|錄音|片段|选项|選項)?"
)
# After a cue or alone a bare number or ordinal is a place too: "Answer: 3", "the right clip is the second", "(4)", "#2".
_CUED = re.compile(
    rf"(?P<cue>\b(?:(?:answer|choice|selection|selected|choose|chose|pick|select|go with)\b(?:\s(?:is|would be|should be|must be))?"
    rf"|(?:correct|right|best|matching)\s(?:{_NOUN}|one)\s(?:is|would be|should be|must be))"
    rf"(?:\s(?:number|no\.?|the))?[\s:=\"'*_`(\[]{{1,6}}|\\boxed\{{\s?|(?<![\w&])#)(?P<place>{_CARDINAL}|{_ORDINAL})(?![\w'])"
    r"(?!\s(?:longest|shortest|loudest|quietest|highest|lowest|fastest|slowest|most|least|of the)\b)",
    re.IGNORECASE,
)
_ALONE = re.compile(
    rf"[\s\"'*_`(\[#]*(?:the\s)?(?P<place>{_CARDINAL}|{_ORDINAL}|[A-L])[\s\"'*_`)\].!]*", re.IGNORECASE
)
_WORD = re.compile(r"[A-Za-z]+|\d+")
_TAG = re.compile(r"\[\s?ANSWER\s?\]", re.IGNORECASE)
_LABEL = re.compile(r"\bAudio (\d+)\b|\boption Z\b")
_DENIES = re.compile(
    r"\b(?:not?|never|neither|nor|cannot|without|unlike|except|but|if|whether|maybe|perhaps|wrong|incorrect)\b|n't\b|\?",
    re.IGNORECASE,
)
_COMMITS = re.compile(
    r"\bI(?:'d|’d|\swould)?\s(?:think|believe|say)\b|\bin my (?:opinion|view)\b", re.IGNORECASE
)
_SETTLES = re.compile(r"\b(?:\w{3,}est|most|least|best|match(?:es)?|satisf\w+|fits?|same)\b", re.IGNORECASE)


def labels(n_options: int) -> list[str]:
    """What the options are called in every prompt: "Audio 1" is the first candidate after the references."""
    return [f"Audio {place}" for place in range(1, n_options + 1)]


def extract_option(response: str | None, n_options: int) -> Extraction:
    """The 0-based position of the one option that `response` chooses among `n_options`.

    Never raises for any text. `stage` and `reason` are those of `operators.answers.extract_answer` (rule "robust"),
    with the stage `only_one` where no other option is named, and the reason `option_out_of_range` where the place that
    is named does not exist. Raises ValueError for fewer than 2 options.
    """
    if n_options < 2:
        raise ValueError(f"a choice needs at least 2 options, got {n_options}")
    if response is None:
        return extract_answer(None, labels(n_options))
    return _extract(response, n_options)


@lru_cache(maxsize=1024)
def _extract(response: str, n_options: int) -> Extraction:
    text = canonical(response, n_options)
    found = extract_answer(text, labels(n_options))
    if found.reason == "letter_out_of_range":
        return Extraction(None, None, "option_out_of_range")
    if found.reason == "no_choice_named":
        return _only_one(text) or found
    return found


def _only_one(text: str) -> Extraction | None:
    """The option of a response that names one and no other: "The third clip is the angriest.", "Clip 3 has the bark".

    A single sentence without a denial or a doubt says it outright, and so does "I think the third clip ..." with reasons
    after it. Otherwise the last of several sentences must settle it, since a response that was cut off has often
    described its first clip only.
    """
    said = sentences(text)
    named = set(_LABEL.findall(text))
    if len(named) != 1 or _DENIES.search(said[-1]):
        return None
    committed = any(_LABEL.search(one) and _COMMITS.search(one) for one in said) and not _DENIES.search(text)
    settled = len(said) == 1 or committed or (_LABEL.search(said[-1]) and _SETTLES.search(said[-1]))
    place = named.pop()
    return Extraction(int(place) - 1, "only_one", None) if settled and place else None


def canonical(response: str, n_options: int) -> str:
    """`response` with every mention of an option by its place rewritten to "Audio k".

    A place that does not exist becomes "option Z", a letter beyond the choices, which the reader of statements
    refuses as out of range.
    """
    text = unicodedata.normalize("NFKC", response)
    tags = list(_TAG.finditer(text))
    start = tags[-1].end() if tags else 0
    if alone := _ALONE.fullmatch(text, start):
        return f"{text[:start]} {_label(alone['place'], n_options)}"
    text = _CHINESE_ORDERED.sub(lambda match: f" {_label(match['place'], n_options)} ", text)
    text = _ORDERED.sub(lambda match: _several(match["places"], n_options), text)
    text = _NUMBERED.sub(lambda match: _several(match["places"], n_options), text)
    return _CUED.sub(lambda match: f"{match['cue'].rstrip('#')} {_label(match['place'], n_options)}", text)


def _several(places: str, n_options: int) -> str:
    """A list such as "first and the third" or "2, 4" with a label for each place, the words between them kept."""
    return _WORD.sub(
        lambda word: _label(word[0], n_options) if _is_place(word[0]) else word[0], _plain_ordinals(places)
    )


def _plain_ordinals(places: str) -> str:
    return re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", places, flags=re.IGNORECASE)


def _is_place(word: str) -> bool:
    low = word.casefold()
    return (
        word.isdigit() or low in _CARDINALS or low in _ORDINALS or low in ("last", "final") or len(word) == 1
    )


def _label(place: str, n_options: int) -> str:
    number = _number(place.casefold(), n_options)
    return f"Audio {number}" if 1 <= number <= n_options else "option Z"


def _number(place: str, n_options: int) -> int:
    """The place counted from 1; 0 for one that cannot be."""
    if place in ("last", "final"):
        return n_options
    for words in (_CARDINALS, _ORDINALS, _CHINESE):
        if place in words:
            return words.index(place)
    digits = re.match(r"\d+", place)
    if digits:
        return int(digits[0])
    return ord(place) - ord("a") + 1 if len(place) == 1 and "a" <= place <= "l" else 0


# The reasons of a reading that failed for the judge's sake: what the response says is not known.
JUDGE_UNPARSED, JUDGE_FAILED = "judge_unparsed", "judge_failed"


def verdict_lost(reason: str | None) -> bool:
    """Whether a reading's reason is the judge's fault and says nothing about the response."""
    return reason is not None and reason.startswith((JUDGE_UNPARSED, JUDGE_FAILED))


class Asked(NamedTuple):
    """What a reader needs of one response: the question, how many options it had, and what was said."""

    question: str
    n_options: int
    response: str | None


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class RuleReader:
    """Reads options by the rules of this file. Free, deterministic, and it refuses rather than guesses."""

    version: ClassVar[int] = 5

    def read(self, asked: Sequence[Asked]) -> list[Extraction]:
        """One extraction per response."""
        return [extract_option(response, n_options) for _, n_options, response in asked]
