"""Text from models and users, made fit for tokenizers; sentences and words as the metrics count them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np

_BLANKS = " \t\r\n\u2581"  # and the sign that stands for a space in some vocabularies
_SURROGATE = re.compile("[\ud800-\udfff]")
# A full stop before a lower-case letter is an abbreviation more often than an end ("approx. two seconds").
_SENTENCE_END = re.compile(
    r"(?:(?<=[.!?\u3002\uff01\uff1f])|(?<=[.!?\u3002\uff01\uff1f][\"')\]\u201d\u2019]))\s+(?=[^\sa-z])|[\r\n]+"
)
# Tags are short and stay on their line; a longer bracket is content.
_TAG = re.compile(r"\[[^\[\]\n]{0,40}\]")
# How models' own formats mark turns, where a response still holds such tokens.
TURN_TOKEN = re.compile(
    r"<\|[\w ]{1,40}\|>|</?(?:s|u|eos|bos|pad|unk|end_of_turn|start_of_turn|end_of_utterance)>|\[/?(?:INST|EOS|END)\]",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_CONTRACTIONS = frozenset({"he's", "it's", "she's"})  # NLTK's stop words list these whole


def encodable(text: str) -> str:
    """`text` with U+FFFD for each lone surrogate, which a Python string may hold but no tokenizer takes."""
    return _SURROGATE.sub("\ufffd", text)


def control_tokens(tokenizer: Any) -> list[str]:
    """The texts by which a tokenizer's special and added tokens are written, shortest first.

    Without those of white space alone, which some vocabularies add for runs of it: they control nothing.
    """
    written = {*tokenizer.all_special_tokens, *tokenizer.get_added_vocab()}
    return sorted((one for one in written if one.strip(_BLANKS)), key=lambda one: (len(one), one))


def without_control_tokens(text: str, tokens: Iterable[str]) -> str:
    """`text` from outside, in which none of `tokens` is left: "<|im_end|>" becomes "< |im_end|>"."""
    for token in tokens:
        text = text.replace(token, f"{token[:1]} {token[1:]}")
    return encodable(text)


def is_absent(text: str | None) -> bool:
    """Whether a slot counts as absent: missing, empty, or nothing but white space and control characters."""
    return text is None or not any(character.isprintable() and not character.isspace() for character in text)


def sentences(text: str) -> list[str]:
    """`text` cut at the ends of sentences and at line breaks, white space trimmed, in order, nothing lost.

    A piece of at most two letters or digits ("B.", "1.", "-") is an enumerator and stays with what follows
    it, so that the answer "B. Dog barking" is one sentence.
    """
    pieces: list[str] = []
    held: list[str] = []
    for piece in filter(None, map(str.strip, _SENTENCE_END.split(text))):
        held.append(piece)
        if sum(map(str.isalnum, piece)) > 2:
            pieces.append(" ".join(held))
            held = []
    if held:
        pieces.append(" ".join([*pieces[-1:], *held]))
        del pieces[-2:-1]
    return pieces


def at_most(pieces: list[str], limit: int) -> list[str]:
    """`pieces` joined into at most `limit` runs of neighbours of nearly equal number; nothing is dropped."""
    if limit < 1:
        raise ValueError(f"at least one piece must remain, not {limit}")
    if len(pieces) <= limit:
        return pieces
    bounds = np.linspace(0, len(pieces), limit + 1).astype(int)
    return [" ".join(pieces[start:stop]) for start, stop in pairwise(bounds)]


def words(text: str) -> list[str]:
    """Lower-case words of `text` in order: runs of letters of any script, no [tags], no possessive 's."""
    plain = _TAG.sub(" ", text).lower().replace("\u2019", "'")
    return [word if word in _CONTRACTIONS else word.removesuffix("'s") for word in _WORD.findall(plain)]
