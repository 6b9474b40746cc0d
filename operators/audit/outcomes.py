"""From replies to outcomes: what each call's verdict says, and the (P, O, J) of every instance (section 3.3).

*Our reading* of the unit: P, O and J are asked about one branch, so an instance is one branch of one item under one cue (378
for the paper's 189 single-turn items), and in a counterbalanced run one per order; intervals of differences are drawn over
items. Null outcomes stay null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.audit.presentation import CALL, PROBES
from operators.audit.wording import REPLIES
from operators.verdicts import Verdict, read_label, read_matching, read_trajectory

Row = dict[str, Any]

# A call with what the judge said. `response` is the reply that was read, or the last one where none could be; `pred` is
# spelled as `gold`; `chosen`: the response (0, 1) that pred stands for, for pairwise the one given to branch 0; `reason`
# says why pred is null; for perception `turns_right` of `n_turns`, and `contrast_right` of the `n_contrast` turns at
# which the two branches differ.
VERDICT = pa.schema(
    [
        ("model", pa.string()),
        *(CALL.field(name) for name in (
            "item_id", "benchmark", "kind", "control", "probe", "cue", "branch", "order", "swapped", "contexts_swapped",
            "names", "turns", "contrast", "gold",
        )),
        ("pred", pa.string()),
        ("reason", pa.string()),
        ("correct", pa.bool_()),
        ("chosen", pa.int64()),
        ("n_turns", pa.int64()),
        ("turns_right", pa.int64()),
        ("n_contrast", pa.int64()),
        ("contrast_right", pa.int64()),
        ("n_attempts", pa.int64()),
        ("response", pa.string()),
        ("finish_reason", pa.string()),
        ("usage", pa.string()),
        ("response_error", pa.string()),
    ]
)  # fmt: skip

# One instance: the outcomes under one cue, null where the verdict is. `s`: staging; `order`: see CALL.
INSTANCE = pa.schema(
    [
        *(VERDICT.field(name) for name in ("model", "item_id", "benchmark", "kind", "control", "cue", "branch", "order")),
        ("p", pa.bool_()),
        ("o", pa.bool_()),
        ("j", pa.bool_()),
        ("s", pa.bool_()),
    ]
)  # fmt: skip
_OUTCOMES = {"perception": "p", "oracle": "o", "pointwise": "j", "staging": "s"}


def read_reply(call: Mapping[str, Any], reply: str | None) -> Verdict:
    """The verdict in a reply, spelled as the call's `gold`."""
    if call["probe"] == "pairwise":
        found = read_matching(reply, ("CA", "CB"), REPLIES)
        return Verdict(found.value["CA"], None) if found.value else found
    if call["probe"] != "perception":
        return read_label(reply, REPLIES)
    labels = [f"E{number}" for number in range(1, len(call["names"]) + 1)]
    if call["kind"] == "single_turn_emotions":
        return read_label(reply, labels, call["names"])
    found = read_trajectory(reply, call["turns"], labels, call["names"])
    return Verdict(",".join(found.value), None) if found.value else found


def judged(call: Mapping[str, Any], model: str, attempts: Sequence[Mapping[str, Any]]) -> Row:
    """A call with its verdict (VERDICT): the first of `attempts` (RESPONSE rows, in order) that can be read.

    Where none can, the verdict is null, and the reason is that of the last attempt.
    """
    verdict, said = Verdict(None, "no_response"), {}
    for said in attempts:
        verdict = read_reply(call, said["response"])
        if verdict.reason is None:
            break
    error = said.get("response_error")
    row = {name: call.get(name) for name in VERDICT.names} | {"model": model}
    row |= {name: said.get(name) for name in ("response", "finish_reason", "usage", "response_error")}
    row |= {"pred": verdict.value, "reason": (error or verdict.reason) if verdict.value is None else None}
    row["n_attempts"] = sum(one["response"] is not None for one in attempts)
    return row | _compared(call, verdict.value)


def _compared(call: Mapping[str, Any], pred: str | None) -> Row:
    gold, turns = call["gold"].split(","), call["probe"] == "perception"
    row: Row = dict.fromkeys(("correct", "chosen", "n_turns", "turns_right", "n_contrast", "contrast_right"))
    if turns:
        row |= {"n_turns": len(gold), "n_contrast": sum(call["contrast"])}
    if pred is None:
        return row
    row["correct"] = pred == call["gold"]
    if turns:
        right = [a == b for a, b in zip(pred.split(","), gold, strict=True)]
        row["turns_right"] = sum(right)
        row["contrast_right"] = sum(a and b for a, b in zip(right, call["contrast"], strict=True))
    else:
        row["chosen"] = int((pred == REPLIES[1]) != bool(call["swapped"])) ^ int(call["contexts_swapped"])
    return row


def heard_emotions(call: Mapping[str, Any], pred: str | None) -> list[str] | None:
    """The emotions that a perception verdict names, turn by turn; None for a null verdict."""
    return None if pred is None else [call["names"][int(label[1:]) - 1] for label in pred.split(",")]


def instances(verdicts: Iterable[Mapping[str, Any]]) -> list[Row]:
    """One row per instance (INSTANCE), in order of appearance."""
    found: dict[tuple, Row] = {}
    names = INSTANCE.names[:8]
    for row in verdicts:
        if outcome := _OUTCOMES.get(row["probe"]):
            about = {name: row[name] for name in names}
            found.setdefault(tuple(about.values()), about)[outcome] = row["correct"]
    blank = dict.fromkeys(_OUTCOMES.values())
    return [blank | row for row in found.values()]


def probes_in(verdicts: Iterable[Mapping[str, Any]]) -> list[str]:
    """The probes that were asked, in the usual order."""
    asked = {row["probe"] for row in verdicts}
    return [probe for probe in PROBES if probe in asked]
