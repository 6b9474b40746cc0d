"""Prompts are text files in `operators/data/prompts/`: versioned with the code, and their text is part of identity.

A Spec holds a `Prompt` by name; the fingerprint holds what the file says, so that a changed word is another model.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, field_validator
from pydantic.dataclasses import dataclass

PROMPTS = Path(__file__).parent / "data" / "prompts"
_FIELD = re.compile(r"\{\{(\w+)\}\}")


class PromptError(ValueError):
    """A prompt that does not exist, or fields that do not fit its text; the message says which there are."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Prompt:
    """The prompt in `<name>.txt`, or in the file at the path `name` when that ends in ".txt".

    The text may hold fields as `{{question}}`. What is filled in is never looked at again: braces, dollar signs,
    percent signs or another field's name inside an untrusted question stay what they are.
    """

    name: str

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if not _path(name).is_file():
            have = ", ".join(sorted(path.stem for path in PROMPTS.glob("*.txt")))
            raise ValueError(f"no prompt {name!r}: give one of {have}, or the path of a .txt file")
        try:
            _text(name)
        except UnicodeDecodeError as error:
            byte = f"byte 0x{error.object[error.start]:02x}"
            raise ValueError(f"prompt {name!r}: {byte} is not UTF-8; save the file as UTF-8") from None
        return name

    @property
    def text(self) -> str:
        """The file's text without white space at its ends, and without the mark that some editors begin a file with."""
        return _text(self.name)

    @property
    def sha256(self) -> str:
        """The digest of `text`, as a run's record shows it."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def fields(self) -> frozenset[str]:
        """The names that `fill` must be given."""
        return frozenset(_FIELD.findall(self.text))

    def identity(self) -> dict[str, Any]:
        """The text itself: the same words under another name are the same prompt."""
        return {"text": self.text}

    def fill(self, **values: str) -> str:
        """The text with each field replaced by its value. Raises PromptError for a missing or an unknown field."""
        if set(values) != self.fields:
            raise PromptError(
                f"prompt {self.name!r} has the fields {sorted(self.fields)}, it was given {sorted(values)}"
            )
        return _FIELD.sub(lambda match: values[match[1]], self.text)


def _text(name: str) -> str:
    return _path(name).read_text(encoding="utf-8-sig").strip()


def _path(name: str) -> Path:
    return Path(name).expanduser() if name.endswith(".txt") else PROMPTS / f"{name}.txt"
