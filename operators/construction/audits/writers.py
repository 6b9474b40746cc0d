"""A language model writes what a source row lacks: responses, or goals that the assistant fails.

The paper has Gemini 2.5 Flash write whole branches (appendix B.1.2, B.2.2); its prompts ask that their words agree, and
what does not is refused. *Our reading*: the model writes only what differs, a response for either emotion, or each goal
with the failing turn and the response that speaks to it. The branches are made from that by
`operators.construction.audits.scripts`, so that their words cannot differ. The prompts are ours.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.chat_api import UNAVAILABLE, ChatEndpoint, ChatUnavailable, Reply
from operators.columns import RowError, short
from operators.construction.audits.sources import Writer, filled, needed, turns_of, two_emotions
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
        """Raises ChatUnavailable without a key or the `openai` package."""
        client = self.endpoint.connect()

        def write(kind: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any] | RowError]:
            key = needed(kind)
            prompts: dict[int, str] = {}
            found: list[Mapping[str, Any] | RowError | None] = [None] * len(rows)
            for place, row in enumerate(rows):
                try:
                    prompts[place] = self._prompt(kind, row)
                except RowError as error:
                    found[place] = error
            for _ in range(self.tries):
                open_ = [place for place in prompts if not isinstance(found[place], Mapping)]
                replies = client.ask([{"messages": [{"role": "user", "content": prompts[p]}]} for p in open_])
                for place, reply in zip(open_, replies, strict=True):
                    found[place] = _read(reply, key)
            return found

        return write

    def _prompt(self, kind: str, row: Mapping[str, Any]) -> str:
        if kind == "positional_emotion":
            return self.goals.fill(dialogue=numbered(row))
        first, second = two_emotions(row)
        if kind == "single_turn_emotions":
            return self.responses.fill(sentence=filled(row, "sentence"), first=first, second=second)
        return self.final_responses.fill(dialogue=numbered(row), first=first, second=second)


def _read(reply: Reply, key: str) -> Mapping[str, Any] | RowError:
    """What a reply adds to its row, or why it adds nothing. Raises ChatUnavailable where the server is gone."""
    if reply.reason:
        if reply.reason.startswith(UNAVAILABLE):
            raise ChatUnavailable(reply.reason)
        return RowError(f"writer_failed: {reply.reason}")
    found = json_object(reply.text or "")
    if found is not None and isinstance(found.get(key), list):
        return {key: found[key]}
    if "impossible" in (reply.text or "").casefold():
        return RowError("writer_gave_up: the language model calls a contrast impossible here")
    return RowError(f"writer_unreadable: no JSON with {key!r} in the reply {short(reply.text)}")


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
