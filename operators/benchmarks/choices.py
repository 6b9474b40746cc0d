"""The choices that a cell of a user's table spells, and the one that its answer names. Nothing is guessed."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from operators.columns import RowError, is_null, short, text_of
from operators.text import is_absent

_LABEL = re.compile(r"\(([A-Za-z])\)|([A-Za-z])[).:]?")
_LABELLED = re.compile(r"(?:\(([A-Za-z])\)\s*|([A-Za-z])[).:]\s+)(\S.*)", re.DOTALL)


def choices_of(cell: Any) -> list[str]:
    """The choices that a cell spells. Raises RowError.

    Reasons: bad_choices (a type or a spelling), fewer_than_two_choices, empty_choice, duplicate_choices.
    """
    listed = as_written(cell)
    if not isinstance(listed, (list, tuple)):
        raise RowError(
            f"bad_choices: a list of texts is expected, not {short(cell)}; write a list, or a | b | c"
        )
    choices = _without_labels([text_of(choice, "choices").strip() for choice in listed])
    if len(choices) < 2:
        raise RowError(f"fewer_than_two_choices: {short(choices)}; write a list, or a | b | c")
    if empty := [number for number, choice in enumerate(choices, 1) if is_absent(choice)]:
        raise RowError(f"empty_choice: number {empty[0]} of {len(choices)} is empty")
    folded = [_fold(choice) for choice in choices]
    twice = next((choice for i, choice in enumerate(choices) if folded[i] in folded[:i]), None)
    if twice is not None:
        raise RowError(f"duplicate_choices: {short(twice)} stands more than once")
    return choices


def as_written(cell: Any) -> Any:
    """The choices of `choices_of` in their order as the cell has them, labels such as "(A) " included; no list: it has none."""
    return _lettered(spelled_list(cell))


def marked(cell: Any, choices: Sequence[str]) -> bool:
    """Whether `choices_of` took a label off each of the `choices` that it read in a cell."""
    return all(str(text).strip() != choice for text, choice in zip(as_written(cell), choices, strict=True))


def gold_of(
    answer: Any, choices: Sequence[str], text_column: bool = False, label_column: bool = False
) -> int:
    """Index of the one choice that `answer` names, as `readings` takes it. Raises RowError; never guesses.

    Reasons: those of `readings`, and ambiguous_answer.
    """
    meant = sorted(readings(answer, choices, text_column, label_column))
    if len(meant) > 1:
        either = " or ".join(f"{short(choices[index])} (answer_index {index})" for index in meant)
        raise RowError(f"ambiguous_answer: {short(answer)} may mean {either}; say which with answer_index")
    return meant[0]


def readings(
    answer: Any, choices: Sequence[str], text_column: bool = False, label_column: bool = False
) -> set[int]:
    """Indices of the choices that `answer` may name, by text, label, or both; at least one.

    A number that is the text of one choice may also count the choices from 0, as `answer_index` does: then it
    has both readings. In a column that holds texts (`text_column`) digits written as text are texts. A number
    that is the text of no choice is never taken for an index. A letter that is the text of one choice, to the letter, is
    that one, but where the column or the choices have labels (`label_column`) it may be a label, too.

    Raises RowError: missing_answer, bad_answer (not a text), answer_not_in_choices.
    """
    text = text_of(answer, "answer").strip()
    if not text:
        raise RowError("missing_answer: the row has no answer")
    label = _LABEL.fullmatch(text)
    if text in choices:
        counted = (
            {int(text)} if is_digits(answer) and not (text_column and isinstance(answer, str)) else set()
        )
        if label and label_column:
            counted.add(_position(label[1] or label[2]))
        return {list(choices).index(text)} | (counted & set(range(len(choices))))
    folded = [_fold(choice) for choice in choices]
    meant = _where(text, folded)
    if label:
        letter = label[1] or label[2]
        meant |= _where(letter, folded) | ({_position(letter)} & set(range(len(choices))))
    elif labelled := _LABELLED.fullmatch(text):
        meant |= _where(labelled[3], folded) & {_position(labelled[1] or labelled[2])}
    if not meant:
        hint = "; an index from 0 stands in the column answer_index" if is_digits(answer) else ""
        raise RowError(f"answer_not_in_choices: {short(text)} is none of {short(list(choices))}{hint}")
    return meant


def is_label(answer: Any, cell: Any) -> bool:
    """Whether an answer can only be the label of one of a cell's choices, such as B or (B), being the text of none."""
    if not isinstance(answer, str) or not (label := _LABEL.fullmatch(answer.strip())):
        return False
    try:
        choices = choices_of(cell)
    except RowError:
        return False
    letter = label[1] or label[2]
    return _position(letter) < len(choices) and not _where(letter, [_fold(choice) for choice in choices])


def is_word(cell: Any) -> bool:
    """Whether a cell is a text that is neither empty nor digits."""
    return isinstance(cell, str) and bool(cell.strip()) and not is_digits(cell)


def is_digits(answer: Any) -> bool:
    """Whether a cell is a whole number from 0, or digits that spell one."""
    digits = "" if is_null(answer) or isinstance(answer, bool) else text_of(answer, "answer").strip()
    return digits.isascii() and digits.isdigit() and len(digits) < 10


def spelled_list(cell: Any) -> Any:
    """The list or object that a text spells in JSON or Python (None: it fails to), else the text cut at "|".

    Cells of other types are returned as they are.
    """
    if not isinstance(cell, str):
        return cell
    text = cell.strip()
    if text[:1] + text[-1:] not in ("[]", "{}"):
        return [part.strip() for part in text.split("|")]
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        # What a data frame writes into a CSV cell for a list: literals in Python's spelling, single quotes.
        return _without_joins(text, ast.literal_eval(text))
    except (ValueError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError):
        return None


def _without_joins(text: str, value: Any) -> Any:
    """`value`, which `text` spells in Python, unless texts stand side by side in it: Python makes one of those.

    In numpy's spelling, ['dog' 'cat'], they are several. Where only some have a comma between them, one is missing: None.
    """
    ignored = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
    tokens = [
        token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in ignored
    ]
    texts = [token.type == tokenize.STRING for token in tokens]
    if not any(left and right for left, right in pairwise(texts)):
        return value
    return [ast.literal_eval(token.string) for token in tokens[1:-1]] if all(texts[1:-1]) else None


def _lettered(cell: Any) -> Any:
    """An object with the keys A, B, C ... as a list; any other cell as it is."""
    if not isinstance(cell, Mapping):
        return cell
    by_letter = {str(key).strip().upper(): choice for key, choice in cell.items()}
    letters = [chr(ord("A") + i) for i in range(len(cell))]
    return [by_letter[letter] for letter in letters] if sorted(by_letter) == letters else None


def _without_labels(choices: list[str]) -> list[str]:
    """`choices` without the labels (A), (B) ... if each has its own, in order."""
    matches = [_LABELLED.fullmatch(choice) for choice in choices]
    if all(match and _position(match[1] or match[2]) == i for i, match in enumerate(matches)):
        return [match[3] for match in matches]
    return choices


def _fold(text: str) -> str:
    return unicodedata.normalize("NFC", text).strip().casefold()


def _where(text: str, folded: Sequence[str]) -> set[int]:
    return {i for i, choice in enumerate(folded) if choice == _fold(text)}


def _position(letter: str) -> int:
    return ord(letter.upper()) - ord("A")
