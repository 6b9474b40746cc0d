"""From scored rows to the numbers of a table: ARIA per row, accuracy and means per model.

ARIA-Rubrics, section 3 (ARIA = mean of M1..M6) and Table 1 (mean, standard deviation, accuracy); Table 6
(no-answer rate). *Our reading*: nothing that failed is left out in silence. A metric that is null makes that
row's ARIA null and is counted beside every mean; an error or a missing answer counts as not right in
`accuracy`, and the rate among the answered rows alone has its own name. The paper does not say which standard
deviation it prints: ours is that of a sample (divided by n - 1), null for fewer than two values. Several
trials of an item are not several items: every rate and mean is first taken over the trials of each item, and
then over items, so that deviations and intervals speak of items, however often each was tried.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.intervals import no_interval, t_interval_of_moments, wilson_interval_of_mean
from operators.moments import Moments
from operators.schema import METRICS, result_schema

MEASURES = (*METRICS, "aria")
UNCATEGORISED = "uncategorised"
_COUNTS = ("n_rows", "n_valid", "n_failed", "n_answered", "n_no_answer", "n_correct")
_COUNTS_PAPER = ("n_answered_paper", "n_no_answer_paper", "n_correct_paper")
_SHARES = ("accuracy", "accuracy_answered", "no_answer_rate")
_RATES = tuple(f"{name}{end}" for name in _SHARES for end in ("", "_low", "_high"))
_AVERAGED = (*MEASURES, *(name + suffix for suffix in ("", "_paper") for name in _SHARES))
# Where an error of a row stands. Unreadable audio alone does not rule out a (recorded) response: it is listed
# among the reasons and does not make the row count as failed.
ERRORS = {"item": "item_error", "audio": "audio_error", "response": "response_error", "row": "row_error"}

_OF_MEASURE = {
    **dict.fromkeys(("mean", "sd", "low", "high"), pa.float64()),
    "interval_reason": pa.string(),
    **dict.fromkeys(("n_items", "n_scored", "n_failed"), pa.int64()),
}

SUMMARY = pa.schema(
    [(name, pa.string()) for name in ("model", "benchmark", "group_kind", "group")]
    + [(name, pa.int64()) for name in ("n_items", *_COUNTS)]
    + [(name, pa.float64()) for name in _RATES]
    + [(name, pa.int64()) for name in _COUNTS_PAPER]
    + [(f"{name}_paper", pa.float64()) for name in _RATES]
    + [(f"{measure}_{part}", kind) for measure in MEASURES for part, kind in _OF_MEASURE.items()]
)


def finish_rows(table: pa.Table) -> pa.Table:
    """Add (or replace) `aria`, `correct` and `correct_paper`; the input is not changed.

    `aria` in [0, 1] is the mean of the six metrics, null where any of them is. A metric value that is not
    finite becomes null. `correct` compares the answer of the robust rule with the gold choice,
    `correct_paper` that of the paper's rule: false for a valid item without an answer or without a response,
    null where the item itself cannot be judged (`item_error`, or no gold choice).

    Raises ValueError naming the columns of the result schema that the table lacks.
    """
    table = typed(table)
    for metric in METRICS:
        table = put(table, metric, finite(table[metric]))
    total = table[METRICS[0]]
    for metric in METRICS[1:]:
        total = pc.add(total, table[metric])
    table = put(table, "aria", pc.divide(total, float(len(METRICS))))
    table = put(table, "correct", _correct(table, "answer_index"))
    return put(table, "correct_paper", _correct(table, "answer_index_paper"))


def summarise(table: pa.Table) -> pa.Table:
    """One row per model, benchmark and group, in the schema SUMMARY, sorted; `table` as for `finish_rows`.

    `group_kind` is "overall" (group "all"), "category", or a name that the items' `groups` give. `n_items` counts distinct item
    ids, every other count is of rows, one per item and trial:

    - `n_rows` = `n_valid` + rows whose item cannot be judged. `n_failed`: rows with an item, response or row
      error.
    - `n_answered`, `n_no_answer`: valid rows whose response has an answer, or has none. Valid rows without
      any response are in neither, but in `n_valid`.
    - `accuracy`: n_correct / n_valid of each item, averaged over the items that have it; likewise
      `accuracy_answered`, n_correct / n_answered, and `no_answer_rate`, n_no_answer / (n_answered +
      n_no_answer), the share of responses (Table 7). Null where there is nothing to divide by. With one trial
      per item these are the quotients of the counts beside them.
    - `accuracy_low`, `accuracy_high`, and so on for the other two shares: Wilson 95% interval, with as many observations
      as items that have the share; with several
      trials per item it errs on the wide side (`wilson_interval_of_mean` says why).
    - The same with `_paper` for the paper's extraction rule.
    - For every metric and ARIA: `_mean` and `_sd` over the `_n_items` items that have it, of the mean over an item's scored
      trials; `_low` and `_high`, Student's 95% interval of that mean over items, cut at 0 and 1, null for fewer than two
      and where all are alike, as `_interval_reason` then says;
      `_n_scored` and `_n_failed` rows (together n_rows).
    """
    return summary_of([moments(table)])


def moments(table: pa.Table) -> pa.Table:
    """What `summary_of` needs of some rows: per model, benchmark and group the counts, and number, mean and variance over items.

    `table` as for `finish_rows`; it holds all rows about its items.
    """
    # In one piece: sums are taken piece by piece, so that the last digit would depend on how the rows came.
    rows = _counted(finish_rows(table)).combine_chunks()
    parts = [_moments_of(rows, "overall", pa.scalar("all", pa.string()))]
    parts.append(_moments_of(rows, "category", pc.fill_null(rows["category"], UNCATEGORISED)))
    parts += [
        _moments_of(rows.filter(pc.is_valid(named)), kind, named.drop_null()) for kind, named in _groups(rows)
    ]
    return pa.concat_tables(parts)


def summary_of(portions: Sequence[pa.Table]) -> pa.Table:
    """The summary of all rows whose `moments` these are."""
    joined = together(portions)
    numbers = {kind: number for number, kind in enumerate(pc.unique(joined["group_kind"]).to_pylist())}
    part = pa.array([numbers[kind] for kind in joined["group_kind"].to_pylist()], pa.int64())
    order = [(name, "ascending") for name in ("model", "benchmark", "part", "group")]
    return _finished(joined).append_column("part", part).sort_by(order).drop_columns("part")


def together(portions: Sequence[pa.Table]) -> pa.Table:
    """Portions of `moments` as one: counts add up, and so do moments (operators.moments says how)."""
    table = pa.concat_tables(portions)
    if len(portions) == 1:
        return table
    frame, keys = table.to_pandas(), ["model", "benchmark", "group_kind", "group"]
    groups = frame.groupby(keys, sort=False)
    for name in _AVERAGED:
        n, mean = frame[f"{name}_count"], frame[f"{name}_mean"].fillna(0.0)
        total = groups[f"{name}_count"].transform("sum").clip(lower=1)
        overall = (n * mean).groupby([frame[key] for key in keys], sort=False).transform("sum") / total
        # Sums of squared distances from the common mean.
        frame[f"{name}_variance"] = n * (frame[f"{name}_variance"].fillna(0.0) + (mean - overall) ** 2)
        frame[f"{name}_mean"] = n * mean
    sums = frame.groupby(keys, sort=False).sum().reset_index()
    for name in _AVERAGED:
        n = sums[f"{name}_count"].where(sums[f"{name}_count"] > 0)
        sums[f"{name}_mean"], sums[f"{name}_variance"] = (
            sums[f"{name}_mean"] / n,
            sums[f"{name}_variance"] / n,
        )
    return pa.Table.from_pandas(sums, schema=table.schema, preserve_index=False)


def _groups(rows: pa.Table) -> list[tuple[str, pa.Array]]:
    """(kind, the group of every row, null where it has none), the kinds in order of appearance."""
    coded = rows["groups"].combine_chunks().dictionary_encode()
    named = [json.loads(text) if text else {} for text in coded.dictionary.to_pylist()]
    kinds = dict.fromkeys(kind for groups in named for kind in groups)
    return [
        (kind, pa.array([groups.get(kind) for groups in named], pa.string()).take(coded.indices))
        for kind in kinds
    ]


def _counted(rows: pa.Table) -> pa.Table:
    """The columns that are summed (0 or 1 per row) beside those that are averaged."""
    valid = pc.is_valid(rows["correct"])
    responded = pc.and_(valid, all_null(rows, "response_error", "row_error"))
    flags = {
        "n_rows": pa.repeat(True, len(rows)),
        "n_valid": valid,
        "n_failed": pc.invert(all_null(rows, "item_error", "response_error", "row_error")),
    }
    for suffix in ("", "_paper"):
        answered = pc.and_(valid, _has_answer(rows, f"answer_index{suffix}"))
        flags[f"n_answered{suffix}"] = answered
        flags[f"n_no_answer{suffix}"] = pc.and_not(responded, answered)
        flags[f"n_correct{suffix}"] = pc.fill_null(rows[f"correct{suffix}"], False)
    kept = {name: rows[name] for name in ("model", "benchmark", "item_id", "category", "groups", *MEASURES)}
    return pa.table({**kept, **{name: pc.cast(flag, pa.int64()) for name, flag in flags.items()}})


def _moments_of(rows: pa.Table, kind: str, group: pa.Scalar | pa.ChunkedArray) -> pa.Table:
    rows = rows.append_column("group", pa.repeat(group, len(rows)) if isinstance(group, pa.Scalar) else group)
    keys = ["model", "benchmark", "group"]
    items = _items(rows, [*keys, "item_id"])
    counts = [*_COUNTS, *_COUNTS_PAPER, *(f"{name}_n_scored" for name in MEASURES)]
    wanted = [([], "count_all"), *((name, "sum") for name in counts)]
    wanted += [(name, how) for name in _AVERAGED for how in ("count", "mean", "variance")]
    # One thread, so that sums are added in row order and two runs agree to the last bit.
    got = items.group_by(keys, use_threads=False).aggregate(wanted)
    columns = {name: got[name] for name in keys} | {"n_items": got["count_all"]}
    columns["group_kind"] = pa.repeat(pa.scalar(kind, pa.string()), len(got))
    columns |= {name: got[f"{name}_sum"] for name in counts}
    columns |= {f"{n}_{how}": got[f"{n}_{how}"] for n in _AVERAGED for how in ("count", "mean", "variance")}
    return pa.table(columns)


def _finished(got: pa.Table) -> pa.Table:
    """SUMMARY rows of moments, in their order."""
    columns = {name: got[name] for name in ("model", "benchmark", "group", "group_kind", "n_items")}
    columns |= {name: got[name] for name in (*_COUNTS, *_COUNTS_PAPER)}
    columns |= {name: got[f"{name}_mean"] for name in _AVERAGED if name not in MEASURES}
    for suffix in ("", "_paper"):
        columns |= _bounds(got, suffix)
    for name in MEASURES:
        columns[f"{name}_mean"] = got[f"{name}_mean"]
        columns[f"{name}_sd"] = _sample_sd(got[f"{name}_variance"], got[f"{name}_count"])
        columns |= _ends(got, name)
        columns[f"{name}_n_items"] = got[f"{name}_count"]
        columns[f"{name}_n_scored"] = got[f"{name}_n_scored"]
        columns[f"{name}_n_failed"] = pc.subtract(got["n_rows"], got[f"{name}_n_scored"])
    return pa.table([columns[name] for name in SUMMARY.names], schema=SUMMARY)


def _sample_sd(variance: pa.ChunkedArray, count: pa.ChunkedArray) -> pa.Array:
    """From the variance that divides by n; null for fewer than two values."""
    n, spread = count.to_numpy(), variance.to_numpy()
    return pa.array(np.sqrt(spread * n / np.maximum(n - 1, 1)), mask=n < 2)


def _ends(got: pa.Table, name: str) -> dict[str, pa.Array]:
    """Student's interval of a mean of scores, and why there is none."""
    moments_ = (got[f"{name}_{part}"].to_pylist() for part in ("count", "mean", "variance"))
    of = [Moments(n, mean or 0.0, n * (variance or 0.0)) for n, mean, variance in zip(*moments_, strict=True)]
    low, high = np.array([t_interval_of_moments(one, bounds=(0, 1)) for one in of]).reshape(-1, 2).T
    ends = {f"{name}_{end}": pa.array(e, from_pandas=True) for end, e in (("low", low), ("high", high))}
    reasons = [no_interval(one.n) if np.isnan(end) else None for one, end in zip(of, low, strict=True)]
    return ends | {f"{name}_interval_reason": pa.array(reasons, pa.string())}


def _items(rows: pa.Table, keys: list[str]) -> pa.Table:
    """One row per item: counts summed, and measures averaged, over its trials; and its shares of the counts."""
    wanted = [(name, "sum") for name in (*_COUNTS, *_COUNTS_PAPER)]
    wanted += [(name, how) for name in MEASURES for how in ("mean", "count")]
    got = rows.group_by(keys, use_threads=False).aggregate(wanted)
    columns = {name: got[name] for name in keys}
    columns |= {name: got[f"{name}_sum"] for name in (*_COUNTS, *_COUNTS_PAPER)}
    for name in MEASURES:
        columns[name], columns[f"{name}_n_scored"] = got[f"{name}_mean"], got[f"{name}_count"]
    for suffix in ("", "_paper"):
        right, answered = columns[f"n_correct{suffix}"], columns[f"n_answered{suffix}"]
        silent = columns[f"n_no_answer{suffix}"]
        columns[f"accuracy{suffix}"] = _divide(right, columns["n_valid"])
        columns[f"accuracy_answered{suffix}"] = _divide(right, answered)
        columns[f"no_answer_rate{suffix}"] = _divide(silent, pc.add(answered, silent))
    return pa.table(columns)


def _bounds(got: pa.Table, suffix: str) -> dict[str, pa.Array]:
    found = {}
    for name in _SHARES:
        share, n_items = (got[f"{name}{suffix}_{part}"].to_pylist() for part in ("mean", "count"))
        bounds = [
            wilson_interval_of_mean(min(1.0, mean) if n else 0.0, n)
            for mean, n in zip(share, n_items, strict=True)
        ]
        low, high = np.array(bounds).reshape(-1, 2).T
        found[f"{name}_low{suffix}"] = pa.array(low, from_pandas=True)
        found[f"{name}_high{suffix}"] = pa.array(high, from_pandas=True)
    return found


def _divide(part: pa.ChunkedArray, whole: pa.ChunkedArray) -> pa.Array:
    """part / whole, null where whole is 0."""
    part, whole = part.to_numpy(), whole.to_numpy()
    return pa.array(part / np.maximum(whole, 1), mask=whole == 0)


def _correct(table: pa.Table, answer: str) -> pa.ChunkedArray:
    judged = pc.and_(pc.is_null(table["item_error"]), pc.is_valid(table["gold_index"]))
    right = pc.and_(
        _has_answer(table, answer), pc.fill_null(pc.equal(table[answer], table["gold_index"]), False)
    )
    return pc.if_else(judged, right, pa.scalar(None, pa.bool_()))


def _has_answer(table: pa.Table, answer: str) -> pa.ChunkedArray:
    return pc.and_(pc.is_valid(table[answer]), pc.is_null(table["response_error"]))


def all_null(table: pa.Table, *names: str) -> pa.ChunkedArray:
    mask = pc.is_null(table[names[0]])
    for name in names[1:]:
        mask = pc.and_(mask, pc.is_null(table[name]))
    return mask


def finite(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(pc.is_finite(values), values, pa.scalar(None, pa.float64()))


def put(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    if name in table.column_names:
        return table.set_column(table.column_names.index(name), name, column)
    return table.append_column(name, column)


def typed(table: pa.Table) -> pa.Table:
    """`table` with the declared type for each column read here, so that a column of nulls computes."""
    needed = ["item_id", "model", "benchmark", "category", "groups", "gold_index", *ERRORS.values()]
    needed += [
        "answer_index",
        "answer_reason",
        "answer_index_paper",
        *METRICS,
        *(f"{name}_reason" for name in METRICS),
    ]
    missing = [name for name in needed if name not in table.column_names]
    if missing:
        raise ValueError(f"a result table needs the columns {missing}; it has {table.column_names}")
    for name in needed:
        table = put(table, name, pc.cast(table[name], result_schema().field(name).type))
    return table
