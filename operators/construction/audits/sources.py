"""From a table of sentences or task dialogues to scripts; what cannot be used is discarded with its reason.

single_turn_emotions, one sentence a row:

    {"id": "s1", "sentence": "I can't find my keys.", "emotions": ["angry", "sad"],
     "responses": ["Let us get this sorted at once.", "Take your time, I am with you."]}

emotional_conversations, one dialogue a row; `emotions` is how the user's last turn is spoken in either branch, and a
turn's own `emotion` holds in both:

    {"id": "c1", "turns": [{"speaker": "user", "text": "..."}, ...], "emotions": ["happy", "sad"], "responses": ["...", "..."]}

positional_emotion, one dialogue a row, with two or more `goals` that the assistant fails (`turn` counts all turns from 1;
without `failure` the turn keeps its words); `emotions`, from X to Y, is drawn where it is missing:

    {"id": "p1", "turns": [...], "goals": [{"turn": 2, "goal": "a table at six", "failure": "I found nothing at six.",
     "response": "I am sorry that I found no table at six."}, ...], "emotions": ["neutral", "angry"]}

`responses` and `goals` may be left out where a writer (`operators.construction.audits.writers`) makes them. `source` is
optional. A file in a format of operators.tables; lists may be JSON texts in CSV.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from operators.benchmarks.emotions import ASSISTANT, USER, emotion_name, speaker_name
from operators.columns import RowError, number_of, short, text_of
from operators.construction.audits.scripts import (
    Goal,
    Said,
    Script,
    annotated,
    checked,
    inject,
    upto_last_user,
)
from operators.tables import Row

Turns = list[tuple[str, str]]
# What a writer adds to each of some rows of a kind, or why it adds nothing.
Writer = Callable[[str, Sequence[Mapping[str, Any]]], list[Mapping[str, Any] | RowError]]


def needed(kind: str) -> str:
    """The key that a row has itself or gets from a writer."""
    return "goals" if kind == "positional_emotion" else "responses"


def cells_of(row: Row) -> dict[str, Any]:
    """The row's cells, lists that a CSV cell spells as JSON read. Raises RowError for an unreadable row."""
    if row.problem:
        raise RowError(row.problem)
    if not text_of(row.get("id"), "id").strip():
        raise RowError("missing_id: the row has no id")
    return {key: _unspelled(value) for key, value in row.items()}


def script_of(kind: str, cells: Mapping[str, Any], source: str, seed: int, response_emotion: str) -> Script:
    """The script of one row's cells; `source` where the row names none. Raises RowError ("reason: detail")."""
    key = needed(kind)
    if not cells.get(key):
        raise RowError(f"no_{key}: the row has no {key}; add them, or name a writer (+writer=llm)")
    make = {
        "single_turn_emotions": _single_turn,
        "emotional_conversations": _conversation,
        "positional_emotion": _positional,
    }[kind]
    name = text_of(cells["id"], "id").strip()
    return make(name, cells, text_of(cells.get("source"), "source") or source, seed, response_emotion)


def _single_turn(name: str, row: Mapping[str, Any], source: str, seed: int, response_emotion: str) -> Script:
    sentence = filled(row, "sentence")
    branches = tuple(annotated([(USER, sentence)], [emotion]) for emotion in two_emotions(row))
    return checked(
        Script(name, "single_turn_emotions", branches, _responses(row, response_emotion), source, {})
    )


def _conversation(name: str, row: Mapping[str, Any], source: str, seed: int, response_emotion: str) -> Script:
    turns = upto_last_user(turns_of(row))
    given = [emotion_name(turn.get("emotion") or "neutral") for turn in row["turns"]]
    user = [given[place] for place, (speaker, _) in enumerate(turns) if speaker == USER]
    branches = tuple(annotated(turns, [*user[:-1], emotion]) for emotion in two_emotions(row))
    return checked(
        Script(name, "emotional_conversations", branches, _responses(row, response_emotion), source, {})
    )


def _positional(name: str, row: Mapping[str, Any], source: str, seed: int, response_emotion: str) -> Script:
    goals = row.get("goals")
    if not isinstance(goals, list) or not all(isinstance(goal, Mapping) for goal in goals):
        raise RowError(f"bad_goals: a list of objects is expected, not {short(goals)}")
    listed = [
        Goal(
            turn=number_of(goal.get("turn"), "turn of a goal") - 1,
            goal=filled(goal, "goal"),
            failure=text_of(goal.get("failure"), "failure").strip() or None,
            response=filled(goal, "response"),
        )
        for goal in goals
    ]
    emotions = two_emotions(row) if row.get("emotions") else None
    return inject(name, turns_of(row), listed, emotions, response_emotion, source, seed)


def turns_of(row: Mapping[str, Any]) -> Turns:
    """[(speaker, text)] of the row's `turns`. Raises RowError."""
    turns = row.get("turns")
    if not isinstance(turns, list) or not turns or not all(isinstance(turn, Mapping) for turn in turns):
        raise RowError(f"bad_turns: a list of objects with speaker and text is expected, not {short(turns)}")
    return [
        (speaker_name(filled(turn, "speaker"), f"turn {number}"), filled(turn, "text"))
        for number, turn in enumerate(turns, 1)
    ]


def two_emotions(row: Mapping[str, Any]) -> tuple[str, str]:
    """The row's two different emotions. Raises RowError."""
    given = row.get("emotions")
    if not isinstance(given, list) or len(given) != 2:
        raise RowError(f"bad_emotions: a list of two is expected, not {short(given)}")
    first, second = (emotion_name(text_of(name, "emotions")) for name in given)
    if first == second:
        raise RowError(f"same_emotion: {first} on both sides")
    return first, second


def filled(row: Mapping[str, Any], key: str) -> str:
    """The text under `key` on one line. Raises RowError where it is empty."""
    text = " ".join(text_of(row.get(key), key).split())
    if not text:
        raise RowError(f"missing_{key}: there is no {key}")
    return text


def _responses(row: Mapping[str, Any], emotion: str) -> tuple[Said, Said]:
    given: Sequence[Any] = row.get("responses")
    if not isinstance(given, list) or len(given) != 2:
        raise RowError(f"bad_responses: a list of two is expected, not {short(given)}")
    first, second = (
        Said(ASSISTANT, filled({"response": text}, "response"), emotion_name(emotion)) for text in given
    )
    return first, second


def _unspelled(cell: Any) -> Any:
    """A list or object that a CSV cell spells as JSON; anything else as it is."""
    if isinstance(cell, str) and cell.strip()[:1] in ("[", "{"):
        try:
            return json.loads(cell)
        except ValueError:
            return cell
    return cell
