"""Text from models and users, made fit for tokenizers; sentences and words as the metrics count them."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")


def encodable(text: str) -> str:
    """`text` with each lone surrogate replaced by U+FFFD: legal in a Python string, but no tokenizer takes it."""
    return _SURROGATE.sub("\ufffd", text)


def is_absent(text: str | None) -> bool:
    """Whether a slot's text counts as absent: missing, empty, or nothing but white space and control characters."""
    return text is None or not any(character.isprintable() and not character.isspace() for character in text)
