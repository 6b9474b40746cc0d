"""The tables of a MUGEN run, from votes and trials: accuracy (Table 2), gains and cost (Table 3), scaling (Figure 3),
and beyond the paper the trials curve and position bias. Shares in [0, 1]; nothing is rounded.

*Our reading* of accuracy: right answers among the items that can be judged. An item without an answer, because no
trial could be read or none was generated, counts as not right and is counted beside it (n_unanswered, n_failed).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from operators.intervals import (
    no_interval,
    wald_interval,
    wilson_interval,
    wilson_interval_of_clusters,
    wilson_interval_of_mean,
)
from operators.mugen.positions import Readable, position_bias, readable
from operators.mugen.presentation import GenerationSet
from operators.mugen.votes import cells, pairwise_agreement, trials_curve
from operators.statistics import paired_bootstrap

BASELINE = "direct"
NO_BASELINE = f"no_baseline: the strategy {BASELINE} was not run"
_WHERE = [("model", pa.string()), ("benchmark", pa.string()), ("n_candidates", pa.int64())]
_COUNTS = ("n_items", "n_valid", "n_failed", "n_unanswered", "n_correct")
_ACCURACY = ("accuracy", "half_width", "wilson_low", "wilson_high")

SUMMARY = pa.schema(
    [
        *_WHERE,
        *((name, pa.string()) for name in ("strategy", "group_kind", "group")),
        *((name, pa.int64()) for name in _COUNTS),
        *((name, pa.float64()) for name in _ACCURACY),
        *((name, pa.float64()) for name in ("gain", "gain_low", "gain_high", "gain_p")),
        ("gain_reason", pa.string()),  # why there is no gain, or no interval and p of it
        *((name, pa.int64()) for name in ("n_paired", "n_ties", "n_unparsed", "n_missing", "generations")),
        *((name, pa.int64()) for name in ("prompt_tokens", "completion_tokens")),
        # Further generations per item, and tokens per item, that one percentage point of gain cost; null without a gain.
        *((name, pa.float64()) for name in ("generations_per_point", "tokens_per_point")),
    ]
)
SCALING = pa.schema(
    [
        *_WHERE,
        *((name, pa.string()) for name in ("strategy", "reference")),
        *((name, pa.int64()) for name in ("n_items", "n_correct")),
        *((name, pa.float64()) for name in _ACCURACY),
        ("relative_to_two", pa.float64()),
    ]
)
_SET = [("prompt", pa.string()), ("permuted", pa.bool_()), ("voting", pa.bool_())]
CURVE = pa.schema(
    [*_WHERE, *_SET, *((name, pa.int64()) for name in ("n_trials", "n_items", "n_correct")),
     *((name, pa.float64()) for name in _ACCURACY)]
)  # fmt: skip
POSITIONS = pa.schema(
    [*_WHERE, *_SET, ("position", pa.int64()), ("n_chosen", pa.int64()), ("n_expected", pa.float64()),
     ("n_gold", pa.int64()), ("n_correct", pa.int64()), ("accuracy", pa.float64()),
     ("wilson_low", pa.float64()), ("wilson_high", pa.float64()),
     ("chi_square", pa.float64()), ("degrees", pa.int64()), ("p", pa.float64()), ("n_items", pa.int64())]
)  # fmt: skip
AGREEMENT = pa.schema(
    [*_WHERE, *_SET, ("n_items", pa.int64()),
     *((f"{name}{end}", pa.float64()) for name in ("agreement", "unanimous") for end in ("", "_low", "_high"))]
)  # fmt: skip

Row = dict[str, Any]


def accuracy(n_correct: int, n: int) -> Row:
    """Accuracy of n_correct / n, half the width of its normal-approximation interval (Table 2), Wilson's; null for 0."""
    if not n:
        return dict.fromkeys(_ACCURACY)
    low, high = wald_interval(n_correct, n)
    wilson = wilson_interval(n_correct, n)
    return dict(zip(_ACCURACY, (n_correct / n, (high - low) / 2, *wilson), strict=True))


def summarise(votes: pa.Table, n_resamples: int = 10_000) -> pa.Table:
    """One row per model, number of candidates, strategy and group (overall, dimension, task); schema SUMMARY.

    Gains are over the strategy `direct` of the same model on the same items, in accuracy, with a percentile interval of
    a paired bootstrap over items; null where `gain_reason` says why: the strategy is `direct` itself, which may not have been
    run, a group is a task, pairs are fewer than two or all gain alike.
    """
    cells_ = grouped(votes.to_pylist(), ("model", "benchmark", "n_candidates", "strategy"))
    rows = []
    for (*where, strategy), answers in cells_.items():
        baseline = {row["item_id"]: row for row in cells_.get((*where, BASELINE), [])}
        about = dict(zip(("model", "benchmark", "n_candidates"), where, strict=True)) | {"strategy": strategy}
        for kind, group, members in _groups(answers):
            row = about | {"group_kind": kind, "group": group} | _counted(members)
            if strategy == BASELINE:
                row["gain_reason"] = "baseline: gains are over it"
            elif kind == "task":
                row["gain_reason"] = "task: gains are those of dimensions"
            else:
                row |= _gain(members, baseline, n_resamples)
            rows.append(row)
    return pa.Table.from_pylist(rows, schema=SUMMARY)


def _groups(answers: list[Row]) -> Iterable[tuple[str, str, list[Row]]]:
    yield "overall", "all", answers
    for kind, column in (("dimension", "category"), ("task", "task")):
        for (name,), members in sorted(grouped(answers, (column,)).items(), key=lambda pair: str(pair[0])):
            if name is not None:
                yield kind, name, members


def _counted(members: list[Row]) -> Row:
    judged = [row for row in members if row["item_error"] is None]
    right = sum(row["correct"] for row in judged)
    failed = sum(row["n_missing"] == row["n_trials"] for row in judged)
    unanswered = sum(row["choice_index"] is None for row in judged) - failed
    return {
        **dict(zip(_COUNTS, (len(members), len(judged), failed, unanswered, right), strict=True)),
        **accuracy(right, len(judged)),
        "n_ties": sum(row["tie"] for row in judged),
        "n_unparsed": sum(row["n_unparsed"] for row in judged),
        "n_missing": sum(row["n_missing"] for row in judged),
        "generations": sum(row["n_trials"] for row in judged),
        **{name: _total(row[name] for row in judged) for name in ("prompt_tokens", "completion_tokens")},
    }


def _total(values: Iterable[int | None]) -> int | None:
    listed = list(values)
    return None if None in listed or not listed else sum(listed)


def _gain(members: list[Row], baseline: Mapping[str, Row], n_resamples: int) -> Row:
    pairs = [
        (row, baseline[row["item_id"]])
        for row in members
        if row["item_id"] in baseline
        and row["item_error"] is None
        and baseline[row["item_id"]]["item_error"] is None
    ]
    if len(pairs) < 2:
        return {
            "n_paired": len(pairs),
            "gain_reason": no_interval(len(pairs), "pair") if baseline else NO_BASELINE,
        }
    ours, theirs = (np.array([pair[side]["correct"] for pair in pairs], dtype=float) for side in (0, 1))
    found = paired_bootstrap(ours, theirs, n_resamples=n_resamples)
    ends = {"gain_low": found.low, "gain_high": found.high, "gain_p": found.p}
    gain = {"gain": found.difference, **{name: _number(end) for name, end in ends.items()}}
    gain["gain_reason"] = no_interval(len(pairs), "pair") if gain["gain_low"] is None else None
    points = 100 * found.difference
    after, before = (_counted([pair[side] for pair in pairs]) for side in (0, 1))
    return gain | {
        "n_paired": len(pairs),
        "generations_per_point": _cost(after["generations"], before["generations"], points, len(pairs)),
        "tokens_per_point": _cost(_tokens(after), _tokens(before), points, len(pairs)),
    }


def _tokens(counted: Row) -> int | None:
    both = counted["prompt_tokens"], counted["completion_tokens"]
    return None if None in both else sum(both)


def _cost(spent: int | None, before: int | None, points: float, n: int) -> float | None:
    return None if spent is None or before is None or points <= 0 else (spent - before) / n / points


def scaling(votes: pa.Table) -> pa.Table:
    """Accuracy for each number of candidates, over the items that take part in all of them (section 4.2; SCALING).

    `reference` is all, with or without. `relative_to_two` is Acc(n) / Acc(2), null without n = 2 or where Acc(2) is 0.
    """
    study = [
        row for row in votes.to_pylist() if row["n_candidates"] is not None and row["item_error"] is None
    ]
    rows = []
    for (model, benchmark, strategy), answers in grouped(study, ("model", "benchmark", "strategy")).items():
        by_n = {n: members for (n,), members in sorted(grouped(answers, ("n_candidates",)).items())}
        common = set.intersection(*({row["item_id"] for row in members} for members in by_n.values()))
        about = {"model": model, "benchmark": benchmark, "strategy": strategy}
        for name, wanted in _REFERENCE.items():
            scores = {
                n: [row["correct"] for row in members if row["item_id"] in common and wanted(row)]
                for n, members in by_n.items()
            }
            rows += [about | {"reference": name} | row for row in _scaled(scores)]
    return pa.Table.from_pylist(rows, schema=SCALING)


def _scaled(scores: Mapping[int, list[bool]]) -> Iterable[Row]:
    two = scores.get(2) or [False]
    base = sum(two) / len(two)
    for n, right in scores.items():
        if right:
            yield {
                "n_candidates": n,
                "n_items": len(right),
                "n_correct": sum(right),
                **accuracy(sum(right), len(right)),
                "relative_to_two": sum(right) / len(right) / base if base else None,
            }


_REFERENCE: dict[str, Callable[[Row], bool]] = {
    "all": lambda row: True,
    "without": lambda row: row["n_reference"] == 0,
    "with": lambda row: row["n_reference"] > 0,
}


def curve(trials: pa.Table) -> pa.Table:
    """Accuracy of the vote of the first 1, 2, ... trials of each set of generations (CURVE)."""
    return _of_cells(trials, CURVE, lambda items: [
        {"n_trials": t, "n_items": n, "n_correct": k, **accuracy(k, n)} for t, k, n in trials_curve(items)
    ])  # fmt: skip


def positions(trials: pa.Table) -> pa.Table:
    """Histogram of chosen positions and accuracy by gold position of each set of generations (POSITIONS). Wilson's
    interval takes the trials of an item as one cluster, and so does chi-square, over `n_items` items."""

    def rows(items: Mapping[str, list[Row]]) -> list[Row]:
        read = readable(items)
        bias = position_bias(*read)
        test = {"chi_square": _number(bias.chi_square), "degrees": bias.degrees, "p": _number(bias.p)}
        test["n_items"] = bias.n_items
        columns = zip(bias.chosen, bias.expected, bias.gold, bias.correct, bias.accuracy_by_gold, strict=True)
        names = ("n_chosen", "n_expected", "n_gold", "n_correct", "accuracy")
        return [
            {
                "position": place,
                **dict(zip(names, (*counts, _number(share)), strict=True)),
                **_right_at(place, read),
                **test,
            }
            for place, (*counts, share) in enumerate(columns)
        ]

    return _of_cells(trials, POSITIONS, rows)


def _right_at(place: int, read: Readable) -> Row:
    """The interval of the share of readable trials with the right clip at `place` that chose it; nulls without any."""
    held = [
        (chosen == place, item)
        for chosen, gold, item in zip(read.chosen, read.gold, read.items, strict=True)
        if gold == place
    ]
    ends = wilson_interval_of_clusters([right for right, _ in held], [item for _, item in held])
    return dict(zip(("wilson_low", "wilson_high"), map(_number, ends), strict=True))


def agreement(trials: pa.Table) -> pa.Table:
    """How far the trials of an item agree on the original option: mean over items of `pairwise_agreement`, and the
    share of items whose trials all agree; over items with two readable trials or more, with Wilson's intervals over
    items (AGREEMENT)."""

    def rows(items: Mapping[str, list[Row]]) -> list[Row]:
        shares = [pairwise_agreement([row["choice_index"] for row in trials_]) for trials_ in items.values()]
        known = [share for share in shares if not math.isnan(share)]
        if not known:
            return []
        row: Row = {"n_items": len(known)}
        for name, mean in (
            ("agreement", float(np.mean(known))),
            ("unanimous", known.count(1.0) / len(known)),
        ):
            low, high = wilson_interval_of_mean(mean, len(known))
            row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
        return [row]

    return _of_cells(trials, AGREEMENT, rows)


def _of_cells(trials: pa.Table, schema: pa.Schema, rows_of: Callable[[Mapping], list[Row]]) -> pa.Table:
    names = ("model", "benchmark", "n_candidates", *GenerationSet._fields)
    found = []
    for key, items in cells(trials):
        about = dict(zip(names, key, strict=True))
        about["permuted"] = about.pop("permute")
        found += [about | row for row in rows_of(items)]
    return pa.Table.from_pylist(found, schema=schema)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value


def grouped(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple, list[Row]]:
    """The rows under each combination of values in the columns `names`, in order of appearance."""
    found: dict[tuple, list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found
