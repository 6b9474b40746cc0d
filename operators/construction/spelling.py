"""When two values of a label are one value written in two ways.

A clip that is right under another spelling must not stand among the distractors: "dog_bark" beside "Dog bark", or one
sentence with and without its full stop. Spellings of a sentence are many and harmless, so the first one takes the place of
the others; any other label whose values differ in spelling only is refused, because "a" and "A" may mean two things (keys
of music) and only the corpus' owner knows.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Sequence

from operators.construction.clips import Clip
from operators.tables import TableError

SENTENCES = ("transcript",)
DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
SHOWN = 3
_NUMBER = re.compile(r"([+-]?)(\d+)(\.\d+)?")
_BETWEEN_LETTERS = re.compile(r"(?<=[^\W\d_])[\s_\-.,/'’]+(?=[^\W\d_])")
_AROUND = " \t\n.,;:!?\"'“”‘’_"


def folded(label: str, value: str) -> str:
    """`value` without what may differ between two spellings of it: case, separators between letters, punctuation at its
    ends, zeros around a number; of a sentence all punctuation. A value with nothing else stays as it is.
    """
    text = unicodedata.normalize("NFKC", value).casefold()
    if label in SENTENCES:
        text = " ".join("".join(map(_plain, text)).split())
        return text or value
    text = _BETWEEN_LETTERS.sub("", text.strip(_AROUND))
    if label == "digit" and text in DIGITS:
        return str(DIGITS.index(text))
    if number := _NUMBER.fullmatch(text):
        whole, part = number[2].lstrip("0") or "0", (number[3] or "").rstrip("0.")
        return f"{'-' if number[1] == '-' else ''}{whole}{part}"
    return text or value


def _plain(character: str) -> str:
    """A letter or sign of a sentence; a space for a dash; nothing for other punctuation."""
    kind = unicodedata.category(character)
    if kind == "Pd" or character == "_":
        return " "
    return "" if kind.startswith("P") else character


def one_spelling(name: str, clips: Sequence[Clip]) -> list[Clip]:
    """The `clips` of the corpus `name` with one spelling per sentence. Raises TableError for a label with several."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    clashes: dict[tuple[str, str, str], str] = {}
    for clip in clips:
        for label, values in clip.labels.items():
            for value in sorted(values):
                known, place = first.setdefault((label, folded(label, value)), (value, clip.place))
                if known != value and label not in SENTENCES:
                    clashes.setdefault((label, known, value), f"{place} and {clip.place}")
    if clashes:
        raise TableError(_refusal(name, clashes))
    return [dataclasses.replace(clip, labels=_respelled(clip, first)) for clip in clips]


def _respelled(clip: Clip, first: dict[tuple[str, str], tuple[str, str]]) -> dict[str, frozenset[str]]:
    return {
        label: frozenset(first[label, folded(label, value)][0] for value in values)
        for label, values in clip.labels.items()
    }


def _refusal(name: str, clashes: dict[tuple[str, str, str], str]) -> str:
    told = [
        f"{label} {known!r} and {value!r} ({places})" for (label, known, value), places in clashes.items()
    ]
    label, known, value = next(iter(clashes))
    return (
        f"corpus {name}: {'; '.join(told[:SHOWN])}{'; ...' if len(told) > SHOWN else ''}: values that differ in spelling "
        f"only would be two right options of one item. Where they mean the same, set "
        f"corpora.{name}.rename.{label}={{{value!r}: {known!r}}}; where they do not, rename one so that it says so"
    )
