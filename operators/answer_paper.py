"""The answer by the paper's rule, ARIA-Rubrics, Appendix E; and the form in which either rule gives an answer."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass


@dataclass(frozen=True)
class Extraction:
    """The chosen index and the stage that found it, or None, None and the reason why there is no answer."""

    index: int | None
    stage: str | None
    reason: str | None


def refuse(reason: str) -> Extraction:
    return Extraction(None, None, reason)


_TAG = re.compile(r"\[ANSWER\]", re.IGNORECASE)
_IN_SENTENCE = re.compile(
    r"(?i:answer\s{1,3}is)\s{0,3}:?\s{0,3}[(\[*\"']{0,3}([A-Z])(?=\s*(?:[.,;:!?)\]*\"']|\Z|\n))"
)
# "A:7" is a chord, "A: dog" a letter and a choice.
_LETTER_PREFIX = re.compile(r"\A[(\[]?[A-Za-z](?:[)\]][.:]?\s*|[.:]\s+)(?=\w)")
_SIGN = re.compile(r"\s*[<>]\s?(?=\d)")  # what tells "<100 Hz" from ">100 Hz" is no punctuation
_OUTER = ".,;:!?\"'`*_()[]{}<>。！？，、…“”‘’" + string.whitespace


def _plain(text: str) -> str:
    """Case-folded, outer punctuation and a letter prefix stripped: for the candidate and the choices alike."""
    sign = _SIGN.match(text)
    text = (sign[0] if sign else "") + text.strip(_OUTER)
    return " ".join(_LETTER_PREFIX.sub("", text, count=1).casefold().split())


def paper_rule(response: str, choices: tuple[str, ...]) -> Extraction:
    """Appendix E, literally.

    *Our reading*: line breaks directly after the tag are skipped; choices and candidate are normalised alike; an empty choice
    matches nothing; letters go as far as the choices do. The expression for "the answer is A" is tried on the candidate or,
    where there is no tag, on the whole response (its last match). A substring may lie inside a word, as the paper says: "male"
    in "female".
    """
    tags = list(_TAG.finditer(response))
    line = response[tags[-1].end() :].lstrip().partition("\n")[0] if tags else ""
    candidate, plain = _plain(line), [_plain(choice) for choice in choices]
    if candidate:
        for index, choice in enumerate(plain):
            if choice and choice == candidate:
                return Extraction(index, "exact", None)
        for index, choice in enumerate(plain):
            if choice and choice in candidate:
                return Extraction(index, "substring", None)
    letters = dict(zip(string.ascii_uppercase, range(len(choices)), strict=False))
    found = _IN_SENTENCE.findall(line if tags else response)
    if found and found[-1] in letters:
        return Extraction(letters[found[-1]], "letter_in_sentence", None)
    if candidate.upper() in letters:
        return Extraction(letters[candidate.upper()], "letter", None)
    return refuse("no_match" if tags else "no_answer_tag")
