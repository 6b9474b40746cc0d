"""The words of a call: its prompt, the cue, and a line per clip or text (sections 3.2, C.1; the prompts are our own)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from operators.prompts import Prompt

REPLIES = ("R1", "R2")


def label(part: Mapping[str, Any]) -> str:
    """How a clip is announced: "C turn 3 (user)", "R1"."""
    return part["place"] if part["place"] in REPLIES else f"{part['place']} ({part['speaker']})"


def question(row: Mapping[str, Any], single: bool, parts: Sequence[Mapping[str, Any]]) -> str:
    """The whole prompt of a call, with a line per clip or text. `single`: the context is one utterance."""
    probe = row["probe"]
    what = (
        "one utterance of a user to a voice assistant"
        if single
        else ("a conversation between a user and a voice assistant, up to the assistant's last reply")
    )
    fields = {"given": what, "parts": _lines(parts), "cue": cue_text(probe, row["cue"])}
    if probe == "perception":
        labels = [f"E{number}" for number in range(1, len(row["names"]) + 1)]
        fields["labels"] = ", ".join(f'"{name}"' for name in labels)
        fields["emotions"] = ", ".join(f"{a} = {b}" for a, b in zip(labels, row["names"], strict=True))
        if not single:
            fields["form"] = json.dumps({f"C{turn}": "E..." for turn in row["turns"]})
    return prompt_of(probe, single).fill(**fields)


def prompt_of(probe: str, single: bool) -> Prompt:
    """The prompt of a probe; perception has one for an utterance and one for a conversation."""
    kind = f"_{'single' if single else 'dialogue'}" if probe == "perception" else ""
    return Prompt(f"audit_{probe}{kind}")


def cue_text(probe: str, cue: str) -> str:
    """What a cue adds to a prompt, "" for none; the transition cue is worded for what the probe presents."""
    if cue == "none":
        return ""
    kind = f"_{probe}" if cue == "transition" and probe in ("pairwise", "perception") else ""
    return Prompt(f"audit_cue_{cue}{kind}").text


def _lines(parts: Sequence[Mapping[str, Any]]) -> str:
    clips = iter(range(1, len(parts) + 1))
    lines = []
    for part in parts:
        if part["text"] is None:
            lines.append(f"Clip {next(clips)}: {label(part)}")
        else:
            tone = f", {part['emotion']}" if part["emotion"] else ""
            who = part["place"] if part["place"] in REPLIES else f"{part['place']} ({part['speaker']}{tone})"
            lines.append(f"{who}: {json.dumps(' '.join(part['text'].split()), ensure_ascii=False)}")
    return "\n".join(lines)
