"""The form in which responses and choices are compared: no invisible characters, one kind of quote, dash and number."""

from __future__ import annotations

import re
import unicodedata

from operators.answer_numbers import NUMBERS, with_digits
from operators.text import TURN_TOKEN

# Controls, soft hyphens, direction marks, surrogates, private use: nothing that a choice could be told apart by.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_PUNCTUATION = str.maketrans(
    {
        "’": "'",
        "‘": "'",
        "“": '"',
        "”": '"',
        "«": '"',
        "»": '"',
        "–": "-",
        "—": "-",
        "−": "-",
        "‐": "-",
        "‑": "-",
    }
    | {
        "_": " ",
        "&": " and ",
        "*": " ",
        "`": "",
        "\r": "\n",
        "【": "[",
        "】": "]",
        "「": '"',
        "」": '"',
        "\u2028": "\n",
    }
)
_KNOWN_TAG = re.compile(
    r"</[\w ]{1,20}>?|<\s?(?i:answer|think|thinking|thought|step|summary|em|strong)\s?>|<(?:br|p|b|i)\s?/?>"
)
_MATHS_LETTER = re.compile(
    r"\$\s?(?:\\(?:text|math|bold)\w{0,4}\{)?([A-Za-z])\}?\s?\$|\\\(\s?([A-Za-z])\s?\\\)"
)
_WRITTEN_BREAK = re.compile(r"\\n(?![a-z])")
_RUN = re.compile(r"([^\w\s]|[^\S\n])\1{3,}")
# Cyrillic and Greek capitals that look like Latin ones; they count as such only in a text without other such letters.
_ALIKE = str.maketrans("АВСЕНАаеΑΒΕΗ", "ABCEHAaeABEH")
_FOREIGN = re.compile("[\u0370-\u03ff\u0400-\u04ff]")
# "<100 Hz" and ">100 Hz" differ by their sign alone; an arrow is none.
_WORD = re.compile(
    r"(?<![-=<>])[<>≤≥](?=\s?\d)|\d+(?:[.,:]\d+)*|(?<![^\W_])-(?=\d)|[^\W\d_]+(?:'[^\W\d_]+)*|[#♯♭+/%°$€£=]"
)
# "A minor" and "A:7" are chords: there the letter is no article.
_ARTICLE = re.compile(
    r"(?<![^\s\"'(\[,;:])(?:a\s+(?!(?:minor|major|flat|sharp|natural|min|maj|dim|aug|sus)\b)(?=[^\W\d_])"
    r"|(?:an|the|while)\s+(?=[^\W_]))",
    re.IGNORECASE,
)


def normalise(text: str) -> str:
    """NFKC (full-width and circled letters become plain), no invisible characters, one form of quote and
    dash, numbers of several words in digits.
    """
    text = _WRITTEN_BREAK.sub("\n", TURN_TOKEN.sub("\n", _INVISIBLE.sub("", text)))
    text = _MATHS_LETTER.sub(lambda found: f" {found[1] or found[2]} ", text)
    text = unicodedata.normalize("NFKC", text).translate(_PUNCTUATION)
    if not text.isascii() and set(_FOREIGN.findall(text)) <= {chr(code) for code in _ALIKE}:
        text = text.translate(_ALIKE)
    return with_digits(_RUN.sub(r"\1\1\1", _INVISIBLE.sub("", _KNOWN_TAG.sub(" ", text))))


def key_of(text: str) -> tuple[str, ...]:
    """The words of a normalised text, case-folded, for comparison: no articles, numbers as digits, 79.0 as 79.

    A text without words is its pictures ("😀").
    """
    words = _WORD.findall(_ARTICLE.sub("", text).casefold())
    return tuple(map(_canonical, words or [sign for sign in text if unicodedata.category(sign) == "So"]))


def _canonical(word: str) -> str:
    if word in NUMBERS:
        return str(NUMBERS.index(word))
    if "," in word and re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", word):
        word = word.replace(",", "")
    return re.sub(r"^(\d+\.\d*?)0+$", r"\1", word).rstrip(".") if word.count(".") == 1 else word
