"""Where a response names its choices: every mention becomes one mark, so that phrases around it can be read.

A mention of a choice's text becomes a *text mark*, a choice letter that stands like one (`(B)`, `B.`,
`option B`) a *letter mark*: single characters of the private planes, which `normalise` removes from the
text beforehand. Matching is by whole words, the longest choice first: "male" is not found in "female",
nor "car" in "car horn".
"""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from functools import lru_cache

from operators.answer_numbers import COMPOUND, NUMBERS
from operators.answer_phrases import in_longer_phrase
from operators.answer_texts import key_of, normalise

_TEXT, _LETTER = 0xF0000, 0x100000
MOST_CHOICES = 0x1000
UNKNOWN_LETTER = chr(_LETTER + MOST_CHOICES)
TEXT_MARK = f"[{chr(_TEXT)}-{chr(_TEXT + MOST_CHOICES)}]"
LETTER_MARK = f"[{chr(_LETTER)}-{UNKNOWN_LETTER}]"
MARK = f"[{TEXT_MARK[1:-1]}{LETTER_MARK[1:-1]}]"
PART = chr(_LETTER + 2 * MOST_CHOICES)  # follows a text mark that is part of a longer phrase ("hot dog")

ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"]

_LATIN = "A-Za-z0-9À-ɏ_"
# In scripts without spaces a choice may follow or precede these words directly.
_GLUE_BEFORE, _GLUE_AFTER = "是为為选選はがを答案", "です입니다이예的呢了吧とで"


@dataclass(frozen=True)
class Choices:
    """The choices of a question, ready for matching. A *group* is the indices of choices with the same text.

    letters: what a letter by itself stands for; where some choices are letters, those alone. labels: what it stands for in
    "(B)" or "option B", where the others' places count as well. labelled: such a label with its text, where letters need it.
    """

    groups: tuple[tuple[int, ...], ...]
    group_of: dict[tuple[str, ...], int]
    letters: dict[str, int]
    labels: dict[str, int]
    labelled: dict[int, re.Pattern[str]]
    empty: frozenset[int]
    given: tuple[str, ...]
    texts: tuple[str, ...]
    numeric: bool


@lru_cache(maxsize=4096)
def prepare(choices: tuple[str, ...]) -> Choices:
    """Compile the choices of one question. Raises ValueError for more than 4096 choices."""
    if len(choices) > MOST_CHOICES:
        raise ValueError(f"{len(choices)} choices are more than the {MOST_CHOICES} that can be told apart")
    texts = _without_letters([normalise(choice).strip() for choice in choices])
    indices: dict[tuple[str, ...], list[int]] = {}
    for index, text in enumerate(texts):
        if key := key_of(text):
            indices.setdefault(key, []).append(index)
    single = {text.upper(): i for i, text in enumerate(texts) if re.fullmatch("[A-Za-z]", text)}
    labels = dict(zip(string.ascii_uppercase, range(len(choices)), strict=False))
    group_of = {key: group for group, key in enumerate(indices)}
    return Choices(
        groups=tuple(map(tuple, indices.values())),
        group_of=group_of,
        letters=single or labels,
        labels=labels | single,
        labelled={
            i: _label_and_text(letter, texts[i]) for letter, i in labels.items() if single and texts[i]
        },
        given=tuple(map(str.strip, choices)),
        texts=tuple(text.casefold() for text in texts),
        empty=frozenset(range(len(choices))) - {i for group in indices.values() for i in group},
        numeric=any(any(map(str.isdigit, "".join(key))) for key in indices),
    )


def _label_and_text(letter: str, text: str) -> re.Pattern[str]:
    """A choice under its label, to the end of a clause: "(B) F", "B. F"."""
    key = key_of(text)
    phrase = _phrase(key) if key and len("".join(key)) > 1 else re.escape(text)
    ending = r"(?=\s*(?:[.,;!?)\]\"'\n]|\Z))"
    return re.compile(rf"(?<![\w'])[(\[]?(?i:{letter})\s?[)\].:]\s{{0,3}}[\"']?(?i:{phrase}){ending}")


def _without_letters(texts: list[str]) -> list[str]:
    """Choices given as "(A) dog", "(B) cat" lose their letters, if every one carries its own."""
    found = [re.match(r"[(\[]?([A-Za-z])\s?(?:[)\]]\s*|[.:]\s+)(?=\S)", text) for text in texts]
    if all(found) and [m.group(1).upper() for m in found if m] == list(string.ascii_uppercase[: len(texts)]):
        return [text[match.end() :] for text, match in zip(texts, found, strict=True) if match]
    return texts


# As an answer "no" stands before a pause or a new clause; before a noun it denies the noun ("I have no idea").
_NO_ALONE = r"(?!\.\d)(?=\s*(?:\Z|[^\w\s]|\n)|\s(?:because|since|as|there|it|i|he|she|they|we|you|the|this|that|these|those|not|for|and|but|or|is|was)\b)"
# Said of the answer ("the right answer is left"), these words do not name a choice.
_QUALIFIERS = frozenset(
    ["right", "wrong", "correct", "incorrect", "best", "final", "only", "true", "good", "likely", "possible"]
)


@lru_cache(maxsize=4096)
def _pattern(keys: tuple[tuple[str, ...], ...]) -> re.Pattern[str] | None:
    """One expression with a group per distinct choice text, longest first; single letters are left to the letter marks.

    Compiling takes milliseconds, so it waits until a response needs it: most equal one choice and do not.
    """
    texts = [(group, key) for group, key in enumerate(keys) if not re.fullmatch("[a-z]", "".join(key))]
    texts.sort(key=lambda entry: (-len(entry[1]), -len("".join(entry[1]))))
    named = [(len(key), f"(?P<g{group}>{_phrase(key)})") for group, key in texts]
    longer, single = ([text for words, text in named if (words > 1) is several] for several in (True, False))
    return re.compile("|".join([*longer, f"(?:{COMPOUND})", *single]), re.IGNORECASE) if named else None


def _phrase(key: tuple[str, ...]) -> str:
    """A choice text as an expression: its words, small punctuation and articles between them."""
    between = r"(?:[^\w#♯♭+/%°$€£=]{0,4}(?:\b(?:an?|the|while)\b[^\w#♯♭+/%°$€£=]{1,4})?)"
    body = between.join(map(_word_pattern, key))
    first, last = key[0], key[-1]
    before = rf"(?<![^\W{_GLUE_BEFORE}_])(?<!\d[.,:])" if first[0].isalnum() else ""
    before += (
        "" if first.isalpha() and len(first) > 2 else r"(?<!\w/)"
    )  # "3/4", "C/G", but "B/dog" names both
    after = rf"(?![^\W{_GLUE_AFTER}_]|'[^\W_]|[#♯♭°%])" if last[-1].isalnum() else ""
    after += "" if last.isalpha() and len(last) > 2 else r"(?!/\w)"
    if last[-1].isdigit():
        after += r"(?![.,:]\d)"
    if first.isdigit():
        before += r"(?<!\A-)(?<![\s(]-)"
    if first[0].isdigit():
        before += r"(?<!(?<![-=<>])[<>≤≥])(?<!(?<![-=<>])[<>≤≥]\s)"
    if len(key) == 1 and first.isdigit():
        before += "(?<!least )(?<!most )(?<!than )(?<!about )"
    if len(key) == 1 and first in {"1", "none", "all", "both", "some"}:
        before += "".join(
            rf"(?<!\b{word}\s)" for word in ("this", "that", "the", "no", "any", "each", "every")
        )
        after += r"(?!\s(?:of|that|which|who|another)\b)"
    if key == ("no",):
        after += _NO_ALONE
    if len(key) == 1 and first in _QUALIFIERS:
        after += r"(?!\s(?:(?:final|best|likely)\s)?(?:answer|option|choice|response|one)\b)"
    return before + body + after


def _word_pattern(word: str) -> str:
    if word.isdigit() and int(word) < len(NUMBERS) and word == str(int(word)):
        return rf"(?:{word}(?:\.0+(?!\d))?|{NUMBERS[int(word)]}(?![^\W_]))"
    if re.fullmatch(r"\d+\.\d+", word):
        return re.escape(word) + "0*"
    if word.isdigit():
        return rf"{_grouped(word)}(?:\.0+(?!\d))?"
    return re.escape(word)


def _grouped(digits: str) -> str:
    """1234 also as 1,234."""
    return digits if len(digits) < 4 else f"(?:{digits}|{int(digits):,})" if digits[0] != "0" else digits


_CONNECTIVE = r"because|since|and|or|but|not|rather|instead|as|which|with|for|is|are|was|due|given|seems"
_STANDING = re.compile(
    rf"(?<![{_LATIN}')])[(\[{{<]\s{{0,2}}(?P<bracket>[A-Za-z])\s{{0,2}}[)\]}}>]"
    rf"|(?<![{_LATIN}'./#-])(?P<paren>[A-Za-z])\s?\)"
    rf"|\b(?i:options?|choices?|letter|alternative|opci[oó]n|opção|opzione|вариант|选项|選項)\s{{0,2}}[:#]?\s{{0,2}}[\"'(\[]{{0,2}}"
    rf"(?P<option>[A-Z]|[b-hj-z]|a(?=[\"')\]]*\s*(?:\Z|[.,;!?\n])))(?![{_LATIN}'#♯♭])[\"')\]]{{0,2}}"
    rf"|(?<![{_LATIN}.#$-])(?<!\w')(?P<bare>[A-Z])(?![{_LATIN}#♯♭]|'[^\W_])"
    rf"(?=\s{{0,3}}(?:\Z|[.,;:!?()\]}}\"'\n。，、|/=>-]|(?:{_CONNECTIVE})\b|{TEXT_MARK}|[^\x00-\u024f]))"
    rf"|(?:(?<=[\s:=\"'])|\A)(?P<lower>[a-z])(?=[\"')\]}}]?\s{{0,3}}(?:\Z|[.,;!?}}\n。]))"
)
_NUMBERED = re.compile(
    rf"\b(?:(?P<ordinal>{'|'.join(ORDINALS)}|last)\s(?:option|choice)|(?:option|choice)\s(?:number\s|#)?(?P<number>\d{{1,2}}))\b"
    rf"|(?<![\w)])[(\[]\s?(?P<label>\d{{1,2}})\s?[)\]](?=\s{{0,3}}{TEXT_MARK})",
    re.IGNORECASE,
)
_RANGE = re.compile(r"(?<![\w'])([A-HJ-Z])(?:\s?-\s?|\s(?:to\s|through\s)?)([A-HJ-Z])(?![\w'#♯♭-])")
_OPTION_NUMBER = re.compile(rf"\b(?:option|choice)\s{TEXT_MARK}", re.IGNORECASE)
_LETTER_THEN_TEXT = re.compile(rf"({LETTER_MARK})[\s).:\]\"'>=-]{{1,8}}({TEXT_MARK})")


def mark(text: str, choices: Choices) -> str:
    """A normalised text with every mention of a choice replaced by its mark."""
    text = _labelled(text, choices)
    if pattern := _pattern(tuple(choices.group_of)):
        text = pattern.sub(_texted, text)
    if choices.numeric:
        # With numbers among the choices, "option 2" may mean the second choice or the choice 2.
        text = _OPTION_NUMBER.sub(" ", text)
    else:
        text = _NUMBERED.sub(lambda match: _numbered(match, choices), text)
    text = _RANGE.sub(r"\1 / \2", text)
    text = _STANDING.sub(lambda match: _lettered(match, choices), text)
    return _LETTER_THEN_TEXT.sub(r"\1 \2", text)


def _labelled(text: str, choices: Choices) -> str:
    """ "(B) F" as one mark, where F is the second choice: of choices that are letters themselves a label says too little."""
    for letter, expression in choices.labelled.items():
        text = expression.sub(f" {chr(_LETTER + letter)} ", text)
    return text


def _texted(match: re.Match[str]) -> str:
    if not match.lastgroup:
        return match.group()
    return chr(_TEXT + int(match.lastgroup[1:])) + (PART if in_longer_phrase(match) else "")


def _lettered(match: re.Match[str], choices: Choices) -> str:
    letter = match[match.lastgroup or 0]
    article = (
        match.lastgroup == "bare"
        and letter == "A"
        and re.match(rf"\s+{TEXT_MARK}", match.string[match.end() :][:8])
    )
    known = choices.labels if match.lastgroup in ("bracket", "option") else choices.letters
    index = None if article else known.get(letter.upper())
    if index is not None:
        return f" {chr(_LETTER + index)} "
    # "I" is a pronoun, and a small letter beyond the choices is no choice letter.
    return match.group() if letter == "I" or article or letter.islower() else f" {UNKNOWN_LETTER} "


def _numbered(match: re.Match[str], choices: Choices) -> str:
    total = sum(map(len, choices.groups)) + len(choices.empty)
    ordinal = (match["ordinal"] or "").lower()
    number = match["number"] or match["label"]
    place = int(number) - 1 if number else total - 1 if ordinal == "last" else ORDINALS.index(ordinal)
    return f" {chr(_LETTER + place)} " if 0 <= place < total else f" {UNKNOWN_LETTER} "


def group_of_mark(mark_: str) -> int:
    """The group that a text mark stands for."""
    return ord(mark_) - _TEXT


def index_of_mark(mark_: str) -> int | None:
    """The choice index that a letter mark stands for; None for a letter beyond the choices."""
    return None if mark_ == UNKNOWN_LETTER else ord(mark_) - _LETTER
