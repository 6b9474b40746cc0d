"""From trials to answers: one vote per item and strategy, and what the trials of an item say about each other.

MUGEN sections 3.2 and 5.1. A trial without a readable option does not vote; an item none of whose trials can be read
has no answer and is not right (section 3.2: selecting none is incorrect), and is counted by name. *Our reading*: where an
LLM judge failed to say what such trials chose, the fault is the judge's, and the item cannot be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.mugen.options import verdict_lost
from operators.mugen.presentation import Strategy, generation_set
from operators.usage import number
from operators.voting import Vote, majority

_ABOUT = [
    ("model", pa.string()),
    ("benchmark", pa.string()),
    ("item_id", pa.string()),
    ("category", pa.string()),
    ("task", pa.string()),
    ("ranking", pa.bool_()),
    ("n_reference", pa.int64()),
    ("n_candidates", pa.int64()),  # of a scaling study; null: all candidates of the item
]

# One generation: what was presented, what was said, what it means.
TRIALS = pa.schema(
    [
        *_ABOUT,
        ("prompt", pa.string()),
        ("permuted", pa.bool_()),
        ("voting", pa.bool_()),
        ("trial", pa.int64()),
        ("audio_order", pa.list_(pa.int64())),
        ("gold_index", pa.int64()),
        ("gold_position", pa.int64()),
        ("response", pa.string()),
        ("finish_reason", pa.string()),
        ("usage", pa.string()),
        ("response_error", pa.string()),
        ("option_position", pa.int64()),
        ("option_stage", pa.string()),
        ("option_reason", pa.string()),
        ("choice_index", pa.int64()),
        ("correct", pa.bool_()),
    ]
)

# One answer: an item under one strategy. `correct` is null only where the item cannot be judged (`item_error`).
VOTES = pa.schema(
    [
        *_ABOUT,
        ("strategy", pa.string()),
        ("gold_index", pa.int64()),
        ("choice_index", pa.int64()),
        ("correct", pa.bool_()),
        ("tie", pa.bool_()),
        ("n_trials", pa.int64()),
        ("n_votes", pa.int64()),
        ("n_unparsed", pa.int64()),  # there is a response, no option could be read
        ("n_missing", pa.int64()),  # there is no response
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("item_error", pa.string()),
    ]
)

Trials = Sequence[Mapping[str, Any]]


_CELL = ("model", "benchmark", "n_candidates", "prompt", "permuted", "voting")
_KIND = itemgetter(*(name for name in _CELL if name != "n_candidates"))


class Ballots(Mapping):
    """{item_id: its trials in order, a dict each}, made when asked for: in memory a trial is a row of columns, not a dict."""

    def __init__(self, trials: pa.Table) -> None:
        names = pc.dictionary_encode(trials["item_id"].combine_chunks())
        items = np.asarray(names.indices)
        order = np.lexsort((trials["trial"].to_numpy(), items))
        # A run writes them in this order: no copy then.
        self._table = trials if (np.diff(order) == 1).all() else trials.take(order)
        ends = np.cumsum(np.bincount(items, minlength=len(names.dictionary)))
        self._spans = dict(zip(names.dictionary.to_pylist(), pairwise([0, *ends.tolist()]), strict=True))

    def __getitem__(self, item_id: str) -> list[dict[str, Any]]:
        start, end = self._spans[item_id]
        return self._table.slice(start, end - start).to_pylist()

    def __iter__(self) -> Iterator[str]:
        return iter(self._spans)

    def __len__(self) -> int:
        return len(self._spans)


def cells(trials: pa.Table) -> Iterator[tuple[tuple, Ballots]]:
    """((model, benchmark, n_candidates, GenerationSet fields), trials by item) of each cell: in order of appearance, those that
    differ in n_candidates alone together and by that, as not every item has as many."""
    kept = trials.select(
        [name for name in TRIALS.names if name != "response" and name in trials.column_names]
    )
    keys = kept.select(_CELL).group_by(list(_CELL), use_threads=False).aggregate([]).to_pylist()
    kinds = list(dict.fromkeys(map(_KIND, keys)))
    for key in sorted(keys, key=lambda key: (kinds.index(_KIND(key)), key["n_candidates"] or 0)):
        mask = reduce(pc.and_, (_equal(kept[name], value) for name, value in key.items()))
        yield tuple(key.values()), Ballots(kept.filter(mask) if len(keys) > 1 else kept)


def _equal(column: pa.ChunkedArray, value: Any) -> pa.ChunkedArray:
    return pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)


def vote(
    trials: pa.Table, refused: Trials, strategies: Mapping[str, Strategy], separate_voting: bool
) -> pa.Table:
    """One row per model, item and strategy (VOTES). `refused`: items that cannot be judged, with `item_error`."""
    found = dict(cells(trials))
    rows: list[dict[str, Any]] = []
    for model, benchmark, n in dict.fromkeys(key[:3] for key in found):
        for name, strategy in strategies.items():
            drawn = generation_set(strategy, separate_voting)
            items = found.get((model, benchmark, n, *drawn), {})
            for ballots in items.values():
                rows.append(_answer(ballots if strategy.vote else ballots[:1], name))
            rows += [_unjudged(item, model, n, name) for item in refused if items]
    return pa.Table.from_pylist(rows, schema=VOTES)


def _answer(trials: Trials, strategy: str) -> dict[str, Any]:
    first = trials[0]
    won, lost = _outcome(trials)
    missing = sum(row["response_error"] is not None for row in trials)
    return {
        **{name: first[name] for name, _ in _ABOUT},
        "strategy": strategy,
        "gold_index": first["gold_index"],
        "choice_index": won.index,
        "correct": None if lost else won.index == first["gold_index"],
        "tie": won.tie,
        "n_trials": len(trials),
        "n_votes": won.n_votes,
        "n_unparsed": won.n_unparsed - missing,
        "n_missing": missing,
        **{name: tokens(trials, name) for name in ("prompt_tokens", "completion_tokens")},
        "item_error": f"{_kind(lost[0])}: {len(lost)} of {len(trials)} verdicts" if lost else None,
    }


def _outcome(trials: Trials) -> tuple[Vote, list[str]]:
    """The vote; and where nobody won though a judge lost verdicts, why it lost them: the item cannot be judged."""
    won = majority([row["choice_index"] for row in trials], [row["trial"] for row in trials])
    lost = [row["option_reason"] for row in trials if verdict_lost(row["option_reason"])]
    return won, lost if won.index is None else []


def _kind(reason: str) -> str:
    return reason.partition(":")[0]


def _unjudged(item: Mapping[str, Any], model: str, n: int | None, strategy: str) -> dict[str, Any]:
    about = {name: item.get(name) for name, _ in _ABOUT}
    counts = dict.fromkeys(("n_trials", "n_votes", "n_unparsed", "n_missing"), 0)
    return about | counts | {
        "model": model, "n_candidates": n, "strategy": strategy, "tie": False, "item_error": item["item_error"]
    }  # fmt: skip


def tokens(trials: Iterable[Mapping[str, Any]], name: str) -> int | None:
    """The sum of one count over the `usage` of trials; None where any trial does not tell."""
    counts = [number(row["usage"], name) for row in trials]
    return None if None in counts else int(sum(counts))


def trials_curve(items: Mapping[str, Trials]) -> list[tuple[int, int, int]]:
    """(t, n right, n items) for votes of the first t trials, t = 1, 2, ...: from the same generations.

    As for the vote of all trials, an item whose first t have no winner because the judge failed is not among the n.
    """
    right = [[_right(rows[:t]) for t in range(1, len(rows) + 1)] for rows in items.values()]
    found = []
    for t in range(1, max(map(len, right)) + 1):
        judged = [one[min(t, len(one)) - 1] for one in right]
        found.append((t, judged.count(True), len(judged) - judged.count(None)))
    return found


def _right(trials: Trials) -> bool | None:
    won, lost = _outcome(trials)
    return None if lost else won.index == trials[0]["gold_index"]


def pairwise_agreement(choices: Sequence[int | None]) -> float:
    """Share of pairs of readable trials of one item that choose the same option; NaN for fewer than two.

    Counts c of the options among n trials: sum c (c - 1) / (n (n - 1)).
    """
    counts = np.unique([choice for choice in choices if choice is not None], return_counts=True)[1]
    n = int(counts.sum())
    return float((counts * (counts - 1)).sum() / (n * (n - 1))) if n > 1 else float("nan")
