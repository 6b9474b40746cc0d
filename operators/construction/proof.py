"""Whether an item's own evidence proves that its gold option, and no other, satisfies the constraint.

It sees nothing but the item as it is written, so anyone can check a finished benchmark with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from operators.construction.measurements import clearly_above
from operators.construction.spelling import folded

Evidence = Mapping[str, Any]


class ProofError(ValueError):
    """The evidence of an item does not single out its gold option; the message names the item."""


def check(item: Evidence) -> None:
    """Raise ProofError unless `item` (a row of items.jsonl) has distinct clips and one right option."""
    clips = [*item["candidates"], *item["reference"]]
    if len(set(clips)) < len(clips):
        raise ProofError(f"{item['id']}: one clip stands twice in the item")
    right = right_options(item["evidence"])
    if right != [item["answer_index"]]:
        raise ProofError(f"{item['id']}: by the evidence option {right} is right, not {item['answer_index']}")


def right_options(evidence: Evidence) -> list[int]:
    """Indices of the candidates that satisfy the rule.

    Raises ProofError where another candidate does not clearly fail it: a label is missing or half agrees, or a
    measured value is within the margin. Labels that differ in spelling only agree.
    """
    rules = {"labels": _asked, "like_reference": _like_reference, "measured": _measured}
    return rules[evidence["kind"]](evidence)


def _asked(evidence: Evidence) -> list[int]:
    for shown in evidence["candidates"]:
        if missing := [label for label in evidence["asked"] if not shown[label]]:
            raise ProofError(f"a candidate has no value of {missing[0]!r}")
    return [
        index
        for index, shown in enumerate(evidence["candidates"])
        if all(folded(label, value) in _values(shown, label) for label, value in evidence["asked"].items())
    ]


def _like_reference(evidence: Evidence) -> list[int]:
    reference, right = evidence["reference"], []
    for index, shown in enumerate(evidence["candidates"]):
        if shared := [label for label in evidence["other"] if _overlap(shown, reference, label)]:
            raise ProofError(f"candidate {index} has the {shared[0]} of the reference")
        if all(_values(shown, label) == _values(reference, label) for label in evidence["labels"]):
            right.append(index)
        elif all(_overlap(shown, reference, label) for label in evidence["labels"]):
            raise ProofError(f"candidate {index} is neither like the reference nor unlike it")
    return right


def _overlap(shown: Evidence, reference: Evidence, label: str) -> bool:
    return not _values(shown, label).isdisjoint(_values(reference, label))


def _values(shown: Evidence, label: str) -> set[str]:
    return {folded(label, value) for value in shown[label]}


def _measured(evidence: Evidence) -> list[int]:
    values = [shown[evidence["property"]] for shown in evidence["candidates"]]
    entering = list(range(len(values)))
    for label, value in evidence.get("among", {}).items():
        wanted, shown = folded(label, value), evidence["candidates"]
        entering = [i for i in entering if wanted in _values(shown[i], label)]
    ((kind, margin),) = evidence["margin"].items()
    ordered = sorted(entering, key=lambda i: values[i], reverse=evidence["order"] == "highest")
    place = evidence["rank"] - 1
    gold = ordered[place]
    for other in entering:
        clear = _clear(values, gold, other, kind, margin)
        if other != gold and not clear:
            raise ProofError(f"{values[gold]:g} and {values[other]:g} are not clear of each other")
    return [gold]


def _clear(values: Sequence[float], one: int, other: int, kind: str, margin: float) -> bool:
    low, high = sorted((values[one], values[other]))
    return clearly_above(high, low, kind, margin)
