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
    r"|audios?|clips?|numbers?|options?|candidates?|choices?|recordings?|samples?|tracks?|files?|segments?|excerpts?|sounds?|positions?"
)
_CARDINAL = rf"(?:\d{{1,3}}(?![\d.,:]*\d|\s?(?:%|s\b|sec|seconds?\b|ms\b|hz\b|khz\b|db\b))|(?:{'|'.join(_CARDINALS)})\b)"
_MARKS = r"[\s\"'*_`(\[<:]{0,4}"
_HASH = r"(?:(?:number|no\.?|nr\.?|#|№)\s{0,2})?"
# What joins the places of a list or a range: "2, 3 and 4", "3 to 5", "3 (or perhaps 4)".
_JOINT = (
    r"\s{0,2}(?:,|&|/|;|~|\+|=|-?>|-|(?:[,(]\s{0,2})?(?:and|or|to|through|until|vs\.?|versus|then|plus|as well as|followed by|"
    r"(?:or\s)?(?:maybe|perhaps|possibly))(?!\w))\s{0,2}"
)
# "clip 3", "Audio #3", "options 2 and 4", "audio three", "candidate C"; "audio 3 of 5" keeps its first number.
_NUMBERED = re.compile(
    rf"\b(?i:{_NOUN})(?:{_MARKS}{_HASH}){_MARKS}(?P<places>(?i:{_CARDINAL})(?:{_JOINT}{_HASH}(?i:{_CARDINAL})(?!\w)){{0,12}}|[A-L](?![\w'])"
    rf"(?:{_JOINT}[A-L](?![\w'])){{0,12}})(?:\s{{0,2}}(?i:(?:out\s)?of|/)\s{{0,2}}\d{{1,2}})?",
)
_ORDINAL = rf"(?:{'|'.join(_ORDINALS)}|last|final|\d{{1,2}}(?:st|nd|rd|th))"
# "the third clip", "first and third options", "the 2nd one"; "the third longest clip" is not a place.
_ORDERED = re.compile(
    rf"\b(?P<places>{_ORDINAL}(?:{_JOINT}(?:the\s)?{_ORDINAL}){{0,12}})\s{{1,3}}(?:(?:candidate|audio|given|provided)\s)?(?:{_NOUN}|one)\b(?!\s?\d)",
    re.IGNORECASE,
)
_CHINESE_ORDERED = re.compile(
    r"第\s?(?P<place>\d{1,2}|[一二三四五六七八九十])\s?(?:个|段|條|条)?(?:音频|音頻|录音|錄音|片段|选项|選項)?"
)
_PLACE = rf"(?:{_CARDINAL}|{_ORDINAL})"
_MORE = rf"(?:{_JOINT}|,?\s(?:and\s)?(?:but|not)\s)"
# "3 clips", "two voices": how many, and not which.
_MANY = (
    rf"(?:(?:{_NOUN})(?<=s)|sounds?|voices|speakers?|people|persons|times|beats|dogs|others?|"
    r"different|distinct|separate|of\s(?:them|these|those))"
)
# After a cue or alone a bare number or ordinal is a place too: "Answer: 3", "the right clip is the second", "(4)", "#2".
_CUED = re.compile(
    rf"(?P<cue>\b(?:(?:answer|choice|selection|selected|choose|chose|pick|select|go with)\b(?:\s(?:is|would be|should be|must be))?"
    rf"|(?:correct|right|best|matching)\s(?:{_NOUN}|one)\s(?:is|would be|should be|must be))"
    rf"(?:\s(?:number|no\.?|the))?[\s:=\"'*_`(\[]{{1,6}}|\\boxed\{{\s?|<answer>\s?|(?<![\w&])#)(?P<not>not\s(?:the\s)?)?(?P<places>{_PLACE}(?![\w'])"
    rf"(?:{_MORE}{_HASH}(?:the\s)?{_PLACE}(?![\w'])){{0,12}})(?![ \t;+&,/-]{{1,3}}\d|{_JOINT}\d|\s{_MANY}\b)"
    r"(?!\s(?:longest|shortest|loudest|quietest|highest|lowest|fastest|slowest|most|least|of the)\b)",
    re.IGNORECASE,
)
_ALONE = re.compile(
    rf"[\s\"'*_`(\[#]*(?:the\s)?(?P<places>(?:{_PLACE}|[A-L])(?:(?:{_JOINT}|\s(?=\d|[A-L]\b)){_HASH}(?:the\s)?(?:{_PLACE}|[A-L])){{0,12}})[\s\"'*_`)\].!]*",
    re.IGNORECASE,
)
# "the second-to-last clip", "third from the end", "last but one"; "the second to last clips" may be all but the first.
_FROM_END = re.compile(
    rf"\b(?:(?P<rank>{'|'.join(_ORDINALS[2:])}|\d{{1,2}}(?:nd|rd|th)|next)[\s-](?:to|from)[\s-](?:the[\s-])?(?:last|end)"
    rf"|last but (?P<but>one|two|three)|penultimate)\b(?P<many>\s(?:{_NOUN}|ones)(?<=s)\b)?",
    re.IGNORECASE,
)
# "Audio -1", "Audio 1.5" and "the audio 3 seconds in" name no option, and must not be read as one's label; "Audio-1" does.
_NO_PLACE = re.compile(
    r"\baudio(?=[\s\"'*_`(\[<:]{1,4}[-−–‒]\d|\s?−\d|[\s_-]{0,2}\d{1,3}(?:[.,:]\d|\s?(?:%|s\b|sec|seconds?\b|ms\b|hz\b|khz\b|db\b)))",
    re.IGNORECASE,
)
# "Reference audio 1" is no candidate.
_REFERENCE = re.compile(rf"\breference[ _-](?:{_NOUN})\s?{_HASH}(?:{_CARDINAL}|[A-L]\b)", re.IGNORECASE)
# "not the second but the fourth", "the fourth, not the second": ordinals without a noun.
_CONTRAST = re.compile(
    rf"\b(?:not\s(?:the\s)?(?P<no>{_ORDINAL}),?\sbut\s(?:rather\s)?(?:the\s)?(?P<yes>{_ORDINAL})"
    rf"|(?P<first>{_ORDINAL}),?\s(?:and\s)?not\s(?:the\s)?(?P<other>{_ORDINAL}))(?=\s{{0,2}}(?:[.,;!)\"'*]|\Z))",
    re.IGNORECASE,
)
# "not the second clip but the fourth": the noun stands once, and the first place has its label already.
_BUT = re.compile(
    rf"\bnot\s(?:the\s)?Audio \d+,?\sbut\s(?:rather\s)?(?:the\s)?(?P<yes>{_ORDINAL})(?=\s{{0,2}}(?:[.,;!)\"'*]|\Z))",
    re.IGNORECASE,
)
_CHOOSERS = re.compile(r"\b(?:choose|chose|pick|select|selected|go with)\s\Z", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+|\d+")
_TAG = re.compile(r"\[\s?ANSWER\s?\]", re.IGNORECASE)
_LABEL = re.compile(r"\bAudio (\d+)\b|\boption Z\b")
_DENIES = re.compile(
    r"\b(?:not?|never|neither|nor|none|nothing|cannot|without|unlike|except|but|if|provided\s(?:that|it|he|she|they|there)|assuming|were\s(?:it|he|she|they)|had\s(?:it|he|she|they|there)|whether|maybe|perhaps|wrong|incorrect|unlikely|improbable|hardly|"
    r"scarcely|barely|nobody|no one|rul\w+ out|exclu\w+|reject\w*|eliminat\w+|discard\w*|dismiss\w*|disqualif\w+|avoid\w*|refus\w+|"
    r"hesita\w+|doubt\w*|mistake|ignor\w+|almost|nearly|consider\w*|used to|might|could|least favou?rite|worst|poorest|lacks?|lacking|miss(?:es|ing)|fails?|failed|(?:is|are|was|'s)\s(?:\w+\s)?out(?!\sof)|"
    r"least\s(?:likely|plausible|probable|suitable|fitting|appropriate|convincing|correct)|than\s(?:the\s)?Audio \d+)\b|n't\b|\?",
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
        named = _several(alone["places"], n_options)
        return text if _twice(named) else f"{text[:start]} {named}"
    text = _NO_PLACE.sub("recording", text)
    text = _FROM_END.sub(lambda match: _from_end(match, n_options), _REFERENCE.sub("the reference", text))
    text = _CHINESE_ORDERED.sub(lambda match: f" {_label(match['place'], n_options)} ", text)
    text = _ORDERED.sub(lambda match: _several(match["places"], n_options), text)
    text = _NUMBERED.sub(lambda match: _several(match["places"], n_options), text)
    text = _CUED.sub(lambda match: _cued(match, n_options), text)
    text = _BUT.sub(
        lambda match: match[0].removesuffix(match["yes"]) + _several(match["yes"], n_options), text
    )
    return _CONTRAST.sub(lambda match: _several(match[0], n_options), text)


def _cued(match: re.Match[str], n_options: int) -> str:
    """What follows a cue with labels for places; "I pick one" and "4/4" name none."""
    if match["places"].casefold() == "one" and _CHOOSERS.search(match["cue"]):
        return match[0]
    named = _several(match["places"], n_options)
    return match[0] if _twice(named) else f"{match['cue'].rstrip('#')} {match['not'] or ''}{named}"


def _twice(named: str) -> bool:
    """Whether one place is named twice and no other: "4/4" is a metre, "2 2" a slip."""
    found = _LABEL.findall(named)
    return len(found) > 1 and len(set(found)) == 1


def _from_end(match: re.Match[str], n_options: int) -> str:
    """A place counted from the end as an ordinal: second to last of 5 is the fourth."""
    if match["many"]:
        return f"{match['rank'] or 'first'} and last {match['many']}"
    rank = (
        2 if (match["rank"] or "next").casefold() == "next" else _number(match["rank"].casefold(), n_options)
    )
    if match["but"]:
        rank = _CARDINALS.index(match["but"].casefold()) + 1
    return _ORDINALS[max(0, n_options + 1 - rank)] if n_options + 1 - rank < len(_ORDINALS) else match[0]


def _several(places: str, n_options: int) -> str:
    """A list such as "first and the third" or "2, 4" with a label for each place, the words between them kept."""
    named = _WORD.sub(
        lambda word: _label(word[0], n_options) if _is_place(word[0]) else word[0], _plain_ordinals(places)
    )
    if len(set(_LABEL.findall(named))) > 1:
        # Words that the reader of statements takes for the start of another clause, and "/" for a fraction's.
        named = re.sub(r"/|as well as|followed by|then|plus", " or ", named, flags=re.IGNORECASE)
    return named


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

    version: ClassVar[int] = 11

    def read(self, asked: Sequence[Asked]) -> list[Extraction]:
        """One extraction per response."""
        return [extract_option(response, n_options) for _, n_options, response in asked]
