"""What conditions do to a model's answers: Tables 6 and 7 of ARIA-Rubrics, and the mode that follows from it (Table 4)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from operators.intervals import wilson_interval
from operators.modes import Mode
from operators.perturbations import NOTHING_TO_INJECT
from operators.statistics import paired_bootstrap

N_RESAMPLES = 10_000

EFFECTS = pa.schema(
    [
        ("model", pa.string()),
        ("benchmark", pa.string()),
        ("condition", pa.string()),
        ("title", pa.string()),
        *((name, pa.int64()) for name in ("n_items", "n_failed", "n_answered", "n_no_answer", "n_correct")),
        *((name, pa.float64()) for name in ("accuracy", "accuracy_low", "accuracy_high")),
        *((name, pa.float64()) for name in ("no_answer_rate", "no_answer_low", "no_answer_high")),
        *((name, pa.float64()) for name in ("difference", "difference_low", "difference_high")),
        ("n_compared", pa.int64()),
        ("n_changed", pa.int64()),
        *((name, pa.float64()) for name in ("change_rate", "change_low", "change_high")),
    ]
)


LEAST_ITEMS = 10  # continued chains of each kind, below which no mode is told


class Continued(NamedTuple):
    """What became of a model's own answers when it went on from a chain that was put into its mouth.

    n: items to which it had an answer of its own, and gave a response after the chain; of these it kept its answer (`kept`),
    gave the choice that the chain leads to (`followed`; random words lead nowhere), or gave no answer (`unanswered`).
    """

    n: int
    kept: int
    followed: int
    unanswered: int


class Behaviour(NamedTuple):
    """How a model's answers behave under both injected chains of section 4.

    accuracy_low: lower Wilson bound of the accuracy without any injection, over responses: a server that failed says nothing
    of the model; chance: accuracy of a guess.
    """

    scaffolding: Continued
    decoration: Continued
    accuracy_low: float
    chance: float


class Assigned(NamedTuple):
    """A mode, or the reason why there is none."""

    mode: Mode | None
    reason: str | None = None


def mode_of_behaviour(behaviour: Behaviour) -> Assigned:
    """Table 4's mode from what two fabricated chains do to the answer.

    Section 4: Scaffolding models go along with a chain of right structure and fabricated content; Reasoning models resist
    misleading chains and re-ground their answer in the audio; for Decoration models no chain has an effect. *Our reading*:
    a model does what it does on most items, where the 95% Wilson interval of that share lies above one half. Both of the last
    two keep their answers under both chains, random words too; kept answers are grounded where the model's own answers beat
    a guess. An item that is not answered any more is neither kept nor followed, and counts. Fewer than LEAST_ITEMS items tell
    nothing, and what fits none of the three sentences has no mode.
    """
    given, words = behaviour.scaffolding, behaviour.decoration
    if (n := min(given.n, words.n)) < LEAST_ITEMS:
        return Assigned(
            None, f"too_few: {n} items with an answer of its own, at least {LEAST_ITEMS} tell a mode"
        )
    if _most(given.followed, given.n):
        return Assigned("Scaffolding")
    for chain, name in ((given, "scaffolding"), (words, "decoration")):
        if not _most(chain.kept, chain.n):
            return Assigned(None, _not_kept(chain, name))
    return Assigned("Reasoning" if behaviour.accuracy_low > behaviour.chance else "Decoration")


def _most(part: int, n: int) -> bool:
    return wilson_interval(part, n)[0] > 0.5


def _not_kept(chain: Continued, name: str) -> str:
    """Why a model that does not mostly keep its answers after a chain has no mode."""
    undecided = wilson_interval(max(chain.kept, chain.followed), chain.n)[1] >= 0.5
    said = "undecided" if undecided else "fits_none"
    kinds = f"{chain.kept} kept, {chain.followed} followed, {chain.unanswered} without an answer"
    return f"{said}: after the {name} chain of {chain.n} answers {kinds}"


def behaviour_of(
    originals: Sequence[Mapping[str, Any]],
    scaffolding: Sequence[Mapping[str, Any]],
    decoration: Sequence[Mapping[str, Any]],
    wrong: Sequence[int | None],
) -> Behaviour:
    """From rows of the same items under `cot`, `scaffolding` and `decoration`, and the choices that the scaffolding chains
    lead to.

    Rows have item_id, choices, gold_index, answer_index and row_error.
    """
    judged = [row for row in originals if row["gold_index"] is not None and row["row_error"] is None]
    right = sum(row["answer_index"] == row["gold_index"] for row in judged)
    chance = sum(1 / len(row["choices"]) for row in judged) / len(judged) if judged else 0.0
    return Behaviour(
        _continued(originals, scaffolding, wrong),
        _continued(originals, decoration, [None] * len(wrong)),
        accuracy_low=wilson_interval(right, len(judged))[0] if judged else 0.0,
        chance=chance,
    )


def _continued(
    originals: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], wrong: Sequence[int | None]
) -> Continued:
    """An item without anything to inject, or whose request failed, has a `row_error` and does not count."""
    pairs = [
        (own["answer_index"], new["answer_index"], target)
        for own, new, target in zip(originals, after, wrong, strict=True)
        if own["answer_index"] is not None and new["row_error"] is None
    ]
    return Continued(
        n=len(pairs),
        kept=sum(own == new for own, new, _ in pairs),
        followed=sum(new is not None and new == target for _, new, target in pairs),
        unanswered=sum(new is None for _, new, _ in pairs),
    )


def effects(
    by_condition: Mapping[str, Sequence[Mapping[str, Any]]], titles: Mapping[str, str], baseline: str = "cot"
) -> pa.Table:
    """One row per condition (EFFECTS): accuracy, no-answer rate, difference to `baseline` and share of changed answers.

    by_condition: for every condition rows of the same items in the same order, with item_id, item_error, gold_index,
    answer_index, and `row_error` where there is no response. Accuracy counts sound items whose gold choice is known, failures
    as not right, as `aggregate.summarise` does; an item that has nothing to inject was not asked and does not count. The
    no-answer rate is over responses; a change is counted where both conditions gave an answer. Differences are paired over
    items (bootstrap), shares have Wilson intervals.
    """
    first = by_condition[baseline]
    return pa.Table.from_pylist(
        [
            {"condition": name, "title": titles[name], **_effect(rows, first, name == baseline)}
            for name, rows in by_condition.items()
        ],
        schema=EFFECTS,
    )


def _effect(
    rows: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]], same: bool
) -> dict[str, Any]:
    judged = [row for row in rows if _judged(row)]
    responded = [row for row in judged if row["row_error"] is None]
    answered = [row for row in responded if row["answer_index"] is not None]
    correct = sum(_right(row) for row in judged)
    about = {name: rows[0][name] for name in ("model", "benchmark")} if rows else {}
    low, high = wilson_interval(correct, len(judged)) if judged else (None, None)
    silent = len(responded) - len(answered)
    ends = wilson_interval(silent, len(responded)) if responded else (None, None)
    counts = {
        "n_items": len(judged),
        "n_failed": len(judged) - len(responded),
        "n_answered": len(answered),
        "n_no_answer": silent,
        "n_correct": correct,
        "accuracy": correct / len(judged) if judged else None,
        "accuracy_low": low,
        "accuracy_high": high,
        "no_answer_rate": silent / len(responded) if responded else None,
        "no_answer_low": ends[0],
        "no_answer_high": ends[1],
    }
    return about | counts | ({} if same else _difference(rows, first) | _changes(rows, first))


def _judged(row: Mapping[str, Any]) -> bool:
    sound = row["item_error"] is None and row["gold_index"] is not None
    return sound and row["row_error"] != NOTHING_TO_INJECT


def _right(row: Mapping[str, Any]) -> bool:
    return (
        row["row_error"] is None
        and row["answer_index"] is not None
        and row["answer_index"] == row["gold_index"]
    )


def _difference(rows: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    pairs = [
        (_right(new), _right(old))
        for new, old in zip(rows, first, strict=True)
        if _judged(new) and _judged(old)
    ]
    if len(pairs) < 2:
        return {}
    new, old = zip(*pairs, strict=True)
    paired = paired_bootstrap(new, old, n_resamples=N_RESAMPLES)
    ends = {"difference_low": paired.low, "difference_high": paired.high}
    return {"difference": paired.difference, **{k: end for k, end in ends.items() if not math.isnan(end)}}


def _changes(rows: Sequence[Mapping[str, Any]], first: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    both = [
        (new["answer_index"], old["answer_index"])
        for new, old in zip(rows, first, strict=True)
        if new["answer_index"] is not None and old["answer_index"] is not None
    ]
    changed = sum(new != old for new, old in both)
    if not both:
        return {"n_compared": 0, "n_changed": 0}
    low, high = wilson_interval(changed, len(both))
    rates = {"change_rate": changed / len(both), "change_low": low, "change_high": high}
    return {"n_compared": len(both), "n_changed": changed, **rates}
