"""Numbers as models write them: "two hundred", "twenty-one" and "minus three" are one number each, not their parts."""

from __future__ import annotations

import re

NUMBERS = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_UNIT, _BELOW_TWENTY = "|".join(NUMBERS[1:10]), "|".join(NUMBERS[:20])
_BELOW_HUNDRED = (
    rf"(?:(?:{'|'.join(_TENS)})(?:[\s-](?:{_UNIT}))?|(?:{_BELOW_TWENTY})|(?<![\d.,:/-])\d{{1,3}})"
)
_SCALE = rf"(?:{'|'.join(_SCALES)})"
_SCALED = re.compile(
    rf"\b(?P<lead>a|{_BELOW_HUNDRED})(?P<scales>(?:[\s-]{_SCALE}){{1,2}})\b"
    rf"(?:\s(?:and\s)?(?P<rest>{_BELOW_HUNDRED})\b(?!\s{_SCALE}))?",
    re.IGNORECASE,
)
_ORDINAL = r"(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth)"
_TENS_AND_UNIT = re.compile(
    rf"\b(?:{'|'.join(_TENS)})(?:[\s-](?:{_UNIT}))?\b(?![\s-]{_ORDINAL}\b)", re.IGNORECASE
)
_MINUS = re.compile(
    rf"(?<![\d)]\s)\b(?:minus|negative)\s(?:(?P<digit>\d)|(?P<word>{_BELOW_TWENTY}|twenty)\b)", re.IGNORECASE
)

_A_NUMBER = rf"(?:{'|'.join(NUMBERS)}|\d{{1,6}})"
# "1 of 3", "two thirds", "3 dozen": a number of its own, which no choice "3" or "two" is.
COMPOUND = (
    rf"(?<![\w.,:/]){_A_NUMBER}(?:\s(?:out\s)?of\s(?:the\s)?{_A_NUMBER}|[\s-](?:and\sa\s)?"
    rf"(?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|eighths?|tenths?|hundredths?|dozen|hundred|thousand|million))"
    rf"(?!\w)|\b(?:{'|'.join(_TENS)})[\s-]{_ORDINAL}\b"
)


def with_digits(text: str) -> str:
    """`text` with numbers of several words, tens, and "minus three" in digits; single words up to twenty stay."""
    text = _SCALED.sub(_scaled, text)
    text = _TENS_AND_UNIT.sub(lambda match: str(_below_hundred(match.group())), text)
    return _MINUS.sub(lambda match: "-" + (match["digit"] or str(NUMBERS.index(match["word"].lower()))), text)


def _scaled(match: re.Match[str]) -> str:
    value = 1 if match["lead"].lower() == "a" else _below_hundred(match["lead"])
    for scale in re.split(r"[\s-]", match["scales"].lower()):
        value *= _SCALES.get(scale, 1)
    return str(value + (_below_hundred(match["rest"]) if match["rest"] else 0))


def _below_hundred(text: str) -> int:
    """The value of "7", "seven", "seventy" or "seventy-one"."""
    if text.isdigit():
        return int(text)
    tens, *unit = re.split(r"[\s-]", text.lower())
    value = (_TENS.index(tens) + 2) * 10 if tens in _TENS else NUMBERS.index(tens)
    return value + (NUMBERS.index(unit[0]) if unit else 0)
