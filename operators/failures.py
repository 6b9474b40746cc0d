"""What is missing from scored rows, where and why: every row that failed at some stage, counted by its reason.

Nothing that failed is left out in silence (operators.aggregate counts beside every mean what it lacks): here stands why.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregate import ERRORS, all_null, finite, put, typed
from operators.schema import METRICS

FAILURES = pa.schema(
    [
        ("model", pa.string()),
        ("stage", pa.string()),
        ("reason", pa.string()),
        ("n", pa.int64()),
        ("example_item_id", pa.string()),
        ("example_benchmark", pa.string()),
        ("example_trial", pa.int64()),
    ]
)
_EXAMPLE = ("item_id", "benchmark", "trial")
_WITH_NULLS = pc.ScalarAggregateOptions(skip_nulls=False)


def failure_reasons(table: pa.Table) -> pa.Table:
    """How often, per model, what went missing where and why; schema FAILURES, in the order of the stages.

    `stage` is item, audio, response, row, answer (a response from which no answer was read) or the name of a
    metric; `reason` is the part before the first colon; the example is the row with the least item id that shows it, and
    of these the first by benchmark and trial.
    A metric that is null without a reason is `not_scored`, unless the row's own error already says why; an
    answer without one is `no_answer`.
    """
    table = typed(table)
    usable = all_null(table, "item_error", "response_error", "row_error")
    found = [(stage, pc.is_valid(table[column]), table[column]) for stage, column in ERRORS.items()]
    found.append(("answer", pc.and_(usable, pc.is_null(table["answer_index"])), table["answer_reason"]))
    for metric in METRICS:
        missing = pc.is_null(finite(table[metric]))
        unexplained = pc.and_(pc.is_null(table[f"{metric}_reason"]), pc.invert(usable))
        found.append((metric, pc.and_not(missing, unexplained), table[f"{metric}_reason"]))
    return pa.concat_tables([_by_reason(table, *one) for one in found]).sort_by([("model", "ascending")])


def reasons_of(table: pa.Table, stage: str, reason: pa.ChunkedArray, tried: pa.ChunkedArray) -> pa.Table:
    """The same for one `stage` more, whose `reason` (null: none) counts in the rows that it `tried`.

    table: rows with model, item_id, benchmark and trial.
    """
    return _by_reason(table, stage, pc.and_(tried, pc.is_valid(reason)), reason)


def reasons_together(portions: Sequence[pa.Table]) -> pa.Table:
    """`failure_reasons` of several portions of rows as one."""
    examples = [f"example_{name}" for name in _EXAMPLE]
    table = pa.concat_tables([FAILURES.empty_table(), *portions])
    table = table.sort_by([(name, "ascending") for name in examples])
    got = table.group_by(["model", "stage", "reason"], use_threads=False).aggregate(
        [("n", "sum"), *((name, "first", _WITH_NULLS) for name in examples)]
    )
    stages = pa.array([*ERRORS, "answer", *METRICS])
    ranked = got.append_column("place", pc.index_in(got["stage"], stages))
    order = [("model", "ascending"), ("place", "ascending"), ("n_sum", "descending"), ("reason", "ascending")]
    ranked = ranked.sort_by(order)
    return pa.table(
        [
            ranked[name]
            for name in ("model", "stage", "reason", "n_sum", *(f"{one}_first" for one in examples))
        ],
        schema=FAILURES,
    )


def _by_reason(table: pa.Table, stage: str, missing: pa.ChunkedArray, reason: pa.ChunkedArray) -> pa.Table:
    named = {name: table[name] for name in ("model", *_EXAMPLE)}
    rows = pa.table({**named, "reason": reason}).filter(missing)
    short = pc.utf8_trim_whitespace(
        pc.replace_substring_regex(rows["reason"], pattern="(?s):.*", replacement="")
    )
    rows = put(rows, "reason", pc.fill_null(short, "no_answer" if stage == "answer" else "not_scored"))
    rows = rows.sort_by([(name, "ascending") for name in _EXAMPLE])
    counts = rows.group_by(["model", "reason"], use_threads=False).aggregate(
        [([], "count_all"), *((name, "first", _WITH_NULLS) for name in _EXAMPLE)]
    )
    counts = counts.sort_by([("model", "ascending"), ("count_all", "descending"), ("reason", "ascending")])
    return pa.table(
        [
            counts["model"],
            pa.repeat(stage, len(counts)),
            counts["reason"],
            counts["count_all"],
            *(counts[f"{name}_first"] for name in _EXAMPLE),
        ],
        schema=FAILURES,
    )
