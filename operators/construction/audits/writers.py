"""A language model writes what a source row lacks: responses, or goals that the assistant fails.

The paper has Gemini 2.5 Flash write whole branches (appendix B.1.2, B.2.2); its prompts ask that their words agree, and
what does not is refused. *Our reading*: the model writes only what differs, a response for either emotion, or each goal
with the failing turn and the response that speaks to it. The branches are made from that by
`operators.construction.audits.scripts`, so that their words cannot differ. The prompts are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.columns import RowError, short
from operators.construction.audits.sources import Writer, filled, turns_of, two_emotions
from operators.judges.option_judge import Chat, ChatEndpoint
from operators.prompts import Prompt


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class LanguageModelWriter:
    """`endpoint` is asked up to `tries` times per row; a reply that says "impossible" discards the row."""

    endpoint: ChatEndpoint
    responses: Prompt = Prompt("audit_responses")
    final_responses: Prompt = Prompt("audit_final_responses")
    goals: Prompt = Prompt("audit_goals")
    tries: int = Field(3, ge=1)

    def load(self) -> Writer:
        """Raises JudgeError without a key or the `openai` package."""
        chat = self.endpoint.load()

        def write(kind: str, row: Mapping[str, Any]) -> Mapping[str, Any]:
            return self._asked(chat, self._prompt(kind, row), "goals" if kind == "positional_emotion" else "responses")

        return write

    def _prompt(self, kind: str, row: Mapping[str, Any]) -> str:
        if kind == "positional_emotion":
            return self.goals.fill(dialogue=numbered(row))
        first, second = two_emotions(row)
        if kind == "single_turn_emotions":
            return self.responses.fill(sentence=filled(row, "sentence"), first=first, second=second)
        return self.final_responses.fill(dialogue=numbered(row), first=first, second=second)

    def _asked(self, chat: Chat, prompt: str, key: str) -> Mapping[str, Any]:
        said: str | None = None
        for _ in range(self.tries):
            said = chat(prompt)
            found = json_object(said or "")
            if found is not None and isinstance(found.get(key), list):
                return {key: found[key]}
            if said and "impossible" in said.casefold():
                raise RowError("writer_gave_up: the language model calls a contrast impossible here")
        raise RowError(f"writer_unreadable: no JSON with {key!r} in {self.tries} replies; the last was {short(said)}")


def numbered(row: Mapping[str, Any]) -> str:
    """The row's dialogue, a turn a line: "2 (assistant): ..."."""
    turns = enumerate(turns_of(row), 1)
    return "\n".join(f"{number} ({speaker}): {text}" for number, (speaker, text) in turns)


def json_object(text: str) -> dict[str, Any] | None:
    """What stands from the first `{` to the last `}`, where that is a JSON object."""
    start, end = text.find("{"), text.rfind("}")
    try:
        value = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
