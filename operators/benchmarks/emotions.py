"""Counterfactual audit items (counterfactual audits, section 3.1): the same words in two voices, and a response to each.

The tuple E = (C, A0, A1, R0, R1), one item a line; what `pipelines.build_audit` writes:

    {"id": "s1",
     "branches": [[{"speaker": "user", "text": "I can't find my keys.", "emotion": "angry", "audio": "audio/s1-a-1.wav"}],
                  [{"speaker": "user", "text": "I can't find my keys.", "emotion": "sad", "audio": "audio/s1-b-1.wav"}]],
     "responses": [{"branch": 0, "text": "Let us get this sorted at once.", "audio": "audio/s1-r0.wav"},
                   {"branch": 1, "text": "Take your time, I am with you.", "audio": "audio/s1-r1.wav"}],
     "source": "written for this project", "generator": "espeak-ng 1.52"}

- `branches`: two conversations up to, not including, the final response; both end with a turn of the user. The words of
  C are the `text`s, the realization A_y is the `audio` of branch y. Each turn has all four parts.
- `speaker`: "user" or "assistant"; "human" and "voice assistant" (VA) are read too.
- `emotion`: how the turn is spoken. `emotion_name` says which spellings are one.
- `responses`: the final assistant turn for branch 0, then for branch 1. `branch` is optional and must agree with the place.
- `source`: where the words come from; `generator`: what rendered the audio. Both optional. Further keys are ignored.

Audio paths are relative to the file (operators.benchmarks.locations says where they may lie). JSONL, JSON or Parquet.

The label of an item is its construction, so whatever breaks the construction is refused, item by item: words that differ
between the branches, one emotion on both sides, a turn without audio, a response on the wrong branch, a duplicate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from operators.benchmarks.locations import folder_of, locate, resolved
from operators.columns import RowError, find_columns, missing_columns, number_of, short, text_of
from operators.schema import STRINGS
from operators.tables import Row, read_rows, shown, stem
from operators.text import encodable

TURN = pa.struct(
    [("speaker", pa.string()), ("text", pa.string()), ("emotion", pa.string()), ("audio_uri", pa.string())]
)
REPLY = pa.struct([("text", pa.string()), ("audio_uri", pa.string())])

# One counterfactual tuple. `branches`: two lists of turns; `responses`: R0, R1; `audio_uris`: the clips of branch 0, of
# branch 1, of R0 and of R1, in this order. `item_error` names why an item cannot be used ("reason: detail").
AUDIT_ITEM = pa.schema(
    [
        ("item_id", pa.string()),
        ("benchmark", pa.string()),
        ("kind", pa.string()),
        ("branches", pa.list_(pa.list_(TURN))),
        ("responses", pa.list_(REPLY)),
        ("source", pa.string()),
        ("generator", pa.string()),
        ("audio_uris", STRINGS),
        ("item_error", pa.string()),
    ]
)

Kind = Literal["single_turn_emotions", "positional_emotion", "emotional_conversations"]
Part = Literal["id", "branches", "responses", "source", "generator"]

BUILT_IN = Path(__file__).parents[1] / "data" / "audit_sample"
COLUMNS: dict[str, tuple[str, ...]] = {
    "id": ("item_id", "sample_id", "uid"),
    "branches": ("conversations",),
    "responses": ("final_responses",),
    "source": ("dataset",),
    "generator": (),
}
REQUIRED = ("id", "branches", "responses")
EXAMPLE = """\
Expected: id, branches, responses; optional: source, generator. For example, on one line:
{"id": "s1", "branches": [[{"speaker": "user", "text": "It is late.", "emotion": "angry", "audio": "a.wav"}],
 [{"speaker": "user", "text": "It is late.", "emotion": "sad", "audio": "b.wav"}]],
 "responses": [{"text": "I will hurry.", "audio": "r0.wav"}, {"text": "Rest a little.", "audio": "r1.wav"}]}"""

USER, ASSISTANT = "user", "assistant"
_SPEAKERS = {
    "user": USER, "human": USER, "assistant": ASSISTANT, "va": ASSISTANT, "voice assistant": ASSISTANT,
}  # fmt: skip
# The misspelling and the long name stand in the paper's own prompts; the nouns name the same states in CAVA's taxonomy.
_SAME_EMOTION = {
    "hesistant": "hesitant", "apologetic/empathetic/reassuring": "empathetic", "anger": "angry", "sadness": "sad",
    "joy": "happy", "happiness": "happy", "surprise": "surprised", "disgust": "disgusted", "fear": "fearful",
}  # fmt: skip


def emotion_name(text: str) -> str:
    """One spelling per emotion: lower case, "hesistant" is "hesitant", "anger" is "angry"; other words stay."""
    plain = " ".join(text.casefold().split())
    return _SAME_EMOTION.get(plain, plain)


def speaker_name(text: str, where: str) -> str:
    """USER or ASSISTANT for any spelling that is read. Raises RowError bad_speaker, naming `where`."""
    speaker = _SPEAKERS.get(" ".join(text.casefold().replace("_", " ").split()))
    if speaker is None:
        raise RowError(f"bad_speaker: {where}: user or assistant is expected, not {short(text)}")
    return speaker


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class EmotionAudit:
    """The audit items in the file at `path`, all of one `kind`; None: the small built-in audit of that kind.

    kind: what an item must be (sections 4.1, 4.2, appendix D.2):
      single_turn_emotions     one turn of the user;
      positional_emotion       the user turns from X to Y once in each branch, X and Y the same, not at the same turn;
      emotional_conversations  any conversation in which the user's emotions differ between the branches.
    name: the benchmark's name in results; None: the file's name without its ending.
    audio_root: folder or URI where relative audio paths start; None: the folder of the file.
    allow_outside: accept audio outside `audio_root`, and from the web. limit: keep the first so many items.
    columns: {part: column} where the file calls a part by a name of its own.
    """

    kind: Kind
    path: str | None = None
    name: str | None = None
    audio_root: str | None = None
    allow_outside: bool = False
    limit: int | None = Field(None, ge=1)
    columns: dict[Part, str | None] = Field(default_factory=dict)

    def load(self) -> pa.Table:
        """One row per item (AUDIT_ITEM); a bad one keeps its place and says why in `item_error`.

        Item ids are unique. A line that repeats another counts once; the schema's metadata `notes` is a JSON list of
        sentences for the user. Raises TableError when the file as a whole cannot be used.
        """
        path = self.path or str(BUILT_IN / f"{self.kind}.jsonl")
        rows, file = read_rows(path, keep_broken=True), shown(path)
        parts = find_columns(file, rows, COLUMNS, self.columns, "benchmark.columns")
        if missing := [part for part in REQUIRED if part not in parts]:
            raise missing_columns(file, rows, COLUMNS, missing, "benchmark.columns", EXAMPLE)
        root = resolved(self.audio_root or folder_of(path))
        read = [self._item(row, parts, root, stem(path)) for row in rows]
        items, n_repeats = _settle_ids(_refuse_doubles(read))
        repeats = f"{file}: {n_repeats} lines repeat an earlier one and count once"
        schema = AUDIT_ITEM.with_metadata({"notes": json.dumps([repeats] if n_repeats else [])})
        return pa.Table.from_pylist(items[: self.limit], schema=schema)

    def _item(self, row: Row, parts: Mapping[str, str], root: str, file_stem: str) -> dict[str, Any]:
        item: dict[str, Any] = dict.fromkeys(AUDIT_ITEM.names)
        item |= {"item_id": f"[{row.place}]", "benchmark": self.name or file_stem, "kind": self.kind}
        item |= {"branches": [], "responses": [], "audio_uris": [], "place": row.place}
        cells = {part: row.get(name) for part, name in parts.items()}
        try:
            if row.problem:
                raise RowError(row.problem)
            item["item_id"] = text_of(cells["id"], "id").strip() or item["item_id"]
            if item["item_id"] == f"[{row.place}]":
                raise RowError("missing_id: the row has no id")
            for part in ("source", "generator"):
                item[part] = text_of(cells.get(part), part) or None
            branches = _branches(cells["branches"], root, self.allow_outside)
            responses = _responses(cells["responses"], root, self.allow_outside)
            check_counterfactual(self.kind, branches, responses)
            item |= {"branches": branches, "responses": responses}
            item["audio_uris"] = [part["audio_uri"] for group in (*branches, responses) for part in group]
        except RowError as error:
            item["item_error"] = encodable(str(error))
        return item


def human_emotions(branch: Sequence[Mapping[str, Any]]) -> list[str]:
    """The trajectory of the user: the emotion of each of the user's turns, in order."""
    return [turn["emotion"] for turn in branch if turn["speaker"] == USER]


def check_counterfactual(
    kind: str, branches: Sequence[Sequence[Mapping[str, Any]]], responses: Sequence[Mapping[str, Any]]
) -> None:
    """Raise RowError ("reason: detail") for the first way in which a tuple is no counterfactual of its kind."""
    if difference := first_difference(*branches):
        raise RowError(f"transcripts_differ: {difference}")
    if branches[0][-1]["speaker"] != USER:
        raise RowError("no_user_turn_last: a response answers the user, but the last turn is the assistant's")
    first, second = (human_emotions(branch) for branch in branches)
    if first == second:
        raise RowError(f"same_emotion: the user is {' -> '.join(first)} in both branches")
    if _words(responses[0]["text"]) == _words(responses[1]["text"]):
        raise RowError("same_response: both responses have the same words, so neither can be the better one")
    if kind == "single_turn_emotions" and len(branches[0]) > 1:
        raise RowError(f"not_single_turn: {len(branches[0])} turns; these are conversations")
    if kind == "positional_emotion":
        _check_positional(first, second)


def first_difference(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]]) -> str | None:
    """Where the words of two branches part, in words; None where they are the same. White space does not count."""
    for number, (a, b) in enumerate(zip(first, second, strict=False), 1):
        if a["speaker"] != b["speaker"]:
            return (
                f"turn {number} is the {a['speaker']}'s in one branch and the {b['speaker']}'s in the other"
            )
        left, right = _words(a["text"]), _words(b["text"])
        for place, (x, y) in enumerate(zip([*left, ""], [*right, ""], strict=False), 1):
            if x != y:
                said = (short(x) if x else "nothing", short(y) if y else "nothing")
                return f"turn {number}, word {place}: {said[0]} against {said[1]}"
    if len(first) != len(second):
        return f"one branch has {len(first)} turns, the other {len(second)}"
    return None


def _words(text: str) -> list[str]:
    return text.split()


def _check_positional(first: Sequence[str], second: Sequence[str]) -> None:
    """Both trajectories are X..XY..Y with the same X and Y; that they differ is known."""
    shifts = [[turn for turn, (a, b) in enumerate(pairwise(path), 2) if a != b] for path in (first, second)]
    for path, found in zip((first, second), shifts, strict=True):
        if len(found) != 1:
            told = f"{len(found)} shifts of emotion in {' -> '.join(path)}; each branch has one"
            raise RowError(f"not_positional: {told}")
    ends = [(path[0], path[-1]) for path in (first, second)]
    if ends[0] != ends[1]:
        told = " and ".join(f"from {a} to {b}" for a, b in ends)
        raise RowError(f"not_positional: the branches shift {told}; they must differ in the turn alone")


def _branches(cell: Any, root: str, allow_outside: bool) -> list[list[dict[str, str]]]:
    if not isinstance(cell, list) or len(cell) != 2 or not all(isinstance(b, list) and b for b in cell):
        raise RowError(f"bad_branches: two lists of turns are expected, not {short(cell)}")
    return [
        [_turn(turn, f"branch {y} turn {t}", root, allow_outside) for t, turn in enumerate(branch, 1)]
        for y, branch in enumerate(cell)
    ]


def _turn(cell: Any, where: str, root: str, allow_outside: bool) -> dict[str, str]:
    said = _filled(cell, ("speaker", "text", "emotion"), where)
    speaker = speaker_name(said["speaker"], where)
    audio = _audio(cell, where, root, allow_outside)
    return {
        "speaker": speaker, "text": said["text"], "emotion": emotion_name(said["emotion"]), "audio_uri": audio,
    }  # fmt: skip


def _responses(cell: Any, root: str, allow_outside: bool) -> list[dict[str, str]]:
    if not isinstance(cell, list) or len(cell) != 2:
        raise RowError(f"bad_responses: a list of two is expected, not {short(cell)}")
    replies = []
    for place, reply in enumerate(cell):
        where = f"response {place}"
        text = _filled(reply, ("text",), where)["text"]
        branch = reply.get("branch")
        if branch is not None and number_of(branch, "branch") != place:
            raise RowError(
                f"responses_swapped: {where} says it answers branch {short(branch)}; list branch 0's first"
            )
        replies.append({"text": text, "audio_uri": _audio(reply, where, root, allow_outside)})
    return replies


def _filled(cell: Any, names: Sequence[str], where: str) -> dict[str, str]:
    if not isinstance(cell, Mapping):
        raise RowError(f"bad_turn: {where}: an object with {', '.join(names)} and audio, not {short(cell)}")
    said = {name: text_of(cell.get(name), name) for name in names}
    if empty := [name for name in names if not said[name].strip()]:
        raise RowError(f"missing_{empty[0]}: {where} has no {empty[0]}")
    return said


def _audio(cell: Mapping[str, Any], where: str, root: str, allow_outside: bool) -> str:
    path = text_of(cell.get("audio"), "audio").strip()
    if not path:
        raise RowError(f"no_audio: {where} has no audio")
    return locate(path, root, allow_outside)


def _refuse_doubles(items: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The items, with an error where two of different ids are one: it would weigh twice, or contradict itself."""
    seen: dict[Any, tuple[tuple[str, ...], str]] = {}
    for item in items:
        if item["item_error"]:
            yield item
            continue
        sides = [
            (*(turn["audio_uri"] for turn in branch), *(turn["emotion"] for turn in branch))
            for branch in item["branches"]
        ]
        answers = {side: reply["text"] for side, reply in zip(sides, item["responses"], strict=True)}
        key = frozenset(sides)
        paired = tuple(answers[side] for side in sorted(answers))
        earlier, name = seen.setdefault(key, (paired, item["item_id"]))
        if name == item["item_id"]:
            yield item
        elif earlier == paired:
            yield item | {"item_error": f"duplicate_item: the same clips and responses as {short(name)}"}
        elif sorted(earlier) == sorted(paired):
            yield item | {
                "item_error": f"responses_swapped: {short(name)} pairs the same responses the other way"
            }
        else:
            yield item


def _settle_ids(items: Iterator[dict[str, Any]]) -> tuple[list[dict[str, Any]], int]:
    """Items with unique ids and final errors, and how many lines were repeats of an earlier one."""
    by_id: dict[str, dict[str, dict[str, Any]]] = {}
    n_read = 0
    for item in items:
        n_read += 1
        content = json.dumps({name: cell for name, cell in item.items() if name != "place"}, sort_keys=True)
        by_id.setdefault(item["item_id"], {}).setdefault(content, item)
    settled = []
    for twins in by_id.values():
        places = ", ".join(item["place"] for item in twins.values())
        for item in twins.values():
            error, place = item["item_error"], item.pop("place")
            if len(twins) > 1:
                item["item_id"], told = f"{item['item_id']} [{place}]", short(item["item_id"])
                error = f"duplicate_id: {told} names different rows: {places}; give each its own id"
            settled.append(item | {"item_error": f"{error} ({place})" if error else None})
    return settled, n_read - len(settled)
