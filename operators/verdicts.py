"""A judge's JSON verdict, read without guessing (counterfactual audits, appendix C.1).

A reply should be one JSON object with "reasoning" and "pred". What stands between the first `{` and the last `}` is
read, so a code fence, a preamble and trailing prose do no harm. *Our reading*: where prose itself holds braces and that
span is no JSON, the objects in it that have a "pred" count, if they agree. Whatever names no allowed value is null with
a reason: a verdict is never completed, never drawn by lot, never taken from the reasoning.

Reasons: no_response, empty_response, no_json, truncated_json, malformed_json, not_an_object, no_pred, several_verdicts,
not_a_label, not_a_matching, not_a_trajectory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from operators.benchmarks.emotions import emotion_name
from operators.columns import short

_TURN = re.compile(r"(?:c|turn)?\s*\[?\s*(\d{1,4})\s*\]?", re.I)
_LABEL = re.compile(r"(?P<label>[A-Za-z]+\d+)\s*[:=(,-]\s*(?P<name>[^()]+?)\s*\)?")
_MOST_STARTS = 50  # braces in prose that are tried as the start of an object


class Verdict(NamedTuple):
    """What a reply says, or None and "reason: detail"."""

    value: Any
    reason: str | None


def read_label(reply: str | None, labels: Sequence[str], names: Sequence[str] = ()) -> Verdict:
    """The one of `labels` ("R1", "R2") that "pred" is; `names` are what the labels stand for, accepted as well."""
    found = prediction(reply)
    if found.reason:
        return found
    label = _label(found.value, labels, names)
    if label is None:
        return Verdict(None, f"not_a_label: {short(found.value)} is none of {', '.join(labels)}")
    return Verdict(label, None)


def read_matching(reply: str | None, contexts: Sequence[str], labels: Sequence[str]) -> Verdict:
    """A "pred" that gives each of `contexts` ("CA", "CB") a label of its own: {context: label}."""
    found = prediction(reply)
    if found.reason:
        return found
    pairs = _pairs(found.value)
    matched = {key.strip().upper(): _label(value, labels) for key, value in (pairs or {}).items()}
    if set(matched) != set(contexts) or set(matched.values()) != set(labels):
        told = f"each of {', '.join(contexts)} needs one of {', '.join(labels)}"
        return Verdict(None, f"not_a_matching: {short(found.value)}; {told}")
    return Verdict({context: matched[context] for context in contexts}, None)


def read_trajectory(
    reply: str | None, turns: Sequence[int], labels: Sequence[str], names: Sequence[str] = ()
) -> Verdict:
    """A "pred" with a label for every one of `turns`, as the list of labels in their order.

    *Our reading*: entries for other turns (the assistant's) are passed over; a missing turn, or one that is given two
    labels under two spellings ("C1", "1"), makes the whole verdict unreadable, since P is the whole trajectory.
    """
    found = prediction(reply)
    if found.reason:
        return found
    told: dict[int, set[str | None]] = {}
    for key, value in (_pairs(found.value) or {}).items():
        if turn := _TURN.fullmatch(key.strip()):
            told.setdefault(int(turn[1]), set()).add(_label(value, labels, names))
    path = [told.get(turn, {None}) for turn in turns]
    if any(len(said) > 1 or None in said for said in path):
        wanted = ", ".join(f"C{turn}" for turn in turns)
        return Verdict(
            None, f"not_a_trajectory: {short(found.value)}; {wanted} each need one of {', '.join(labels)}"
        )
    return Verdict([said.pop() for said in path], None)


def prediction(reply: str | None) -> Verdict:
    """The value of "pred" in a reply, of whatever type, or why there is none."""
    if reply is None:
        return Verdict(None, "no_response")
    if not reply.strip():
        return Verdict(None, "empty_response")
    start, end = reply.find("{"), reply.rfind("}")
    if start < 0:
        return Verdict(None, f"no_json: {short(reply.strip())}")
    whole = reply[start : end + 1] if end > start else ""
    value = _decoded(whole)
    if isinstance(value, _Bad):
        found = _agreed(whole)
        if found is not None:
            return found
        return Verdict(None, _why_malformed(reply[start:], value))
    return _pred_of(value)


class _Bad(NamedTuple):
    problem: str


def _decoded(text: str) -> Any:
    try:
        return _JSON.decode(text)
    except (ValueError, RecursionError) as error:
        return _Bad(type(error).__name__ if isinstance(error, RecursionError) else str(error))


def _objects(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; a key that is given two values, as JSON allows, keeps both, so that neither wins."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        name = key.strip().casefold()
        found[name] = _Twice() if name in found and found[name] != value else value
    return found


class _Twice:
    """A key with two different values."""


# Line breaks inside a string are not JSON, and common in a model's reasoning.
_JSON = json.JSONDecoder(object_pairs_hook=_objects, strict=False)


def _pred_of(value: Any) -> Verdict:
    if not isinstance(value, dict):
        return Verdict(None, f"not_an_object: {short(value)}")
    if "pred" not in value:
        return Verdict(None, f"no_pred: the keys are {short(list(value))}")
    if isinstance(value["pred"], _Twice):
        return Verdict(None, "several_verdicts: pred is given twice, and differs")
    return Verdict(value["pred"], None)


def _agreed(text: str) -> Verdict | None:
    """The verdict of all objects with a "pred" inside a span that is not one object; None where there are none."""
    found, position = [], text.find("{")
    for _ in range(_MOST_STARTS):
        if position < 0:
            break
        try:
            value, end = _JSON.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if "pred" in value:
                found.append(_pred_of(value))
        position = text.find("{", end)
    if not found:
        return None
    if any(verdict != found[0] for verdict in found):
        return Verdict(None, f"several_verdicts: {short([verdict.value for verdict in found])}")
    return found[0]


def _why_malformed(text: str, bad: _Bad) -> str:
    """Cut off in mid-object, or wrong throughout."""
    open_braces = len(re.findall("{", text)) - len(re.findall("}", text))
    kind = "truncated_json" if open_braces > 0 else "malformed_json"
    return f"{kind}: {short(bad.problem) if '}' in text else 'the object is not closed'}"


def _pairs(value: Any) -> Mapping[str, Any] | None:
    """An object, also one that is spelled as text."""
    if isinstance(value, str) and value.strip().startswith("{"):
        value = _decoded(value.strip())
    return value if isinstance(value, dict) else None


def _label(value: Any, labels: Sequence[str], names: Sequence[str] = ()) -> str | None:
    """The label that `value` is, alone ("r1"), by its name ("angry") or with it ("R1 (angry)"); else None."""
    if not isinstance(value, str):
        return None
    said = value.strip().strip(".\"'`*").strip()
    by_name = {emotion_name(name): label for label, name in zip(labels, names, strict=False)}
    known = {label.casefold(): label for label in labels}
    if both := _LABEL.fullmatch(said):
        label = known.get(both["label"].casefold())
        return label if label and by_name.get(emotion_name(both["name"])) == label else None
    return known.get(said.casefold()) or by_name.get(emotion_name(said))
