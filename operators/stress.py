"""Does a manipulation pay? Rewritten rows of a run, and the change of every metric with its paired interval.

The original rows are scored again beside the manipulated ones, by the same scorers, so that a difference never comes
from anything but the manipulation. Intervals are percentile bootstraps of paired differences that draw items, with all
chains about an item together; accuracy before and after has Wilson's, with items as clusters, which has a width where all
are right or wrong, too. A change that is the same in every item has no interval (the rule of `analysis.estimates`). They are
not widened for the number of comparisons in the table.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from operators.aggregate import MEASURES
from operators.analysis.correlations import item_labels
from operators.analysis.estimates import FEW
from operators.analysis.estimates import few as few_items
from operators.audio import ProbeAudio
from operators.cot import SLOTS, Slots
from operators.frames import with_columns
from operators.intervals import ROUNDING, wilson_interval_of_clusters
from operators.manipulations import MANIPULATIONS, Case, Manipulation, render
from operators.schema import CLIPS, ITEM, RESPONSE
from operators.statistics import paired_bootstrap

ORIGINAL = "original"
SILENCE, OTHER_CLIP = "silence", "other_clip"
NAMES = (*(rewrite.__name__ for rewrite in MANIPULATIONS), SILENCE, OTHER_CLIP)
ABOUT = {
    **{rewrite.__name__: rewrite.__doc__.split("\n")[0] for rewrite in MANIPULATIONS},
    SILENCE: "The audio is ten seconds of silence.",
    OTHER_CLIP: "The audio is that of another item.",
}
ACCURACY = "accuracy"
LEAST_ITEMS = 10  # to say that a manipulation pays, or does not: of fewer a bootstrap is no evidence
OUTCOMES = (*MEASURES, ACCURACY)
ALL = "all"

# One line per manipulation, model ("all" or one) and outcome: the means before and after and their difference, each with
# its interval. `n`: pairs that have both values, of `n_clusters` items;
# `n_lost`: pairs that lack one; `n_changed`: rows that the manipulation changed at all; `note` says where items are few, and
# why there is no interval.
CHANGES = pa.schema(
    [(name, pa.string()) for name in ("manipulation", "model", "outcome")]
    + [(f"{name}{part}", pa.float64()) for name in ("before", "after") for part in ("", "_low", "_high")]
    + [(name, pa.float64()) for name in ("difference", "low", "high", "p")]
    + [(name, pa.int64()) for name in ("n", "n_clusters", "n_lost", "n_changed")]
    + [("method", pa.string()), ("note", pa.string())]
)
_METHOD = "percentile bootstrap of paired differences, items drawn"
_METHOD_OF_ACCURACY = f"{_METHOD}; before and after: Wilson, items as clusters"
ALIKE = "no interval of the change: it does not vary between items"
_SILENCE = Path(__file__).parent / "data" / "silence.flac"  # ten seconds, 16 kHz
_MARKS = [("manipulation", pa.string()), ("changed", pa.bool_())]


def manipulated(results: pa.Table, names: Sequence[str], silence: pa.Table, seed: int = 0) -> pa.Table:
    """The rows of a run (`results`: operators.schema.result_schema) as they are, and once per manipulation of `names`.

    Gives the ITEM, CLIPS and RESPONSE columns, `manipulation` and `changed`; the rows of a manipulation stand in the
    order of `results`. `silence`: one row of `audio_uris` and CLIPS columns. Each row has random numbers of its own,
    from `seed`, the manipulation and the row's model, item and trial.
    """
    partners = partner_rows(results, seed)
    source = results.select(list(dict.fromkeys([*ITEM.names, *CLIPS.names, *RESPONSE.names])))
    parts = [_marked(source, ORIGINAL, [False] * len(source))]
    cases = list(_cases(results, partners))
    for rewrite in (rewrite for rewrite in MANIPULATIONS if rewrite.__name__ in names):
        parts.append(_rewritten(source, rewrite, cases, seed))
    if SILENCE in names:
        heard = pc.is_valid(source["audio_uris"]).to_pylist()
        parts.append(_marked(_with_clips(source, silence.take([0] * len(source))), SILENCE, heard))
    if OTHER_CLIP in names:
        swapped = source.take([own if other is None else other for own, other in enumerate(partners)])
        known = [other is not None for other in partners]
        parts.append(_marked(_with_clips(source, swapped), OTHER_CLIP, known))
    return pa.concat_tables(parts)


def silent_clip() -> pa.Table:
    """One row of `audio_uris` and CLIPS columns: the silence that ships with the project."""
    uris = np.empty(1, dtype=object)
    uris[0] = [str(_SILENCE)]
    probed = ProbeAudio().build()({"audio_uris": uris})
    schema = pa.schema([ITEM.field("audio_uris"), *CLIPS])
    return pa.table(
        {"audio_uris": [[str(_SILENCE)]]} | {n: list(probed[n]) for n in CLIPS.names}, schema=schema
    )


def partner_rows(results: pa.Table, seed: int) -> list[int | None]:
    """For each row another one of the same model, about another item and other clips; None where there is none.

    The rows of a model stand in a circle in random order, and the partner is the next one that differs.
    """
    rows = results.select(["model", "item_id", "audio_hashes"]).to_pylist()
    members: dict[str, list[int]] = {}
    for row in np.random.default_rng(seed).permutation(len(rows)):
        members.setdefault(rows[row]["model"], []).append(int(row))
    partners: list[int | None] = [None] * len(rows)
    for circle in members.values():
        for place, row in enumerate(circle):
            others = (*circle[place + 1 :], *circle[:place])
            differs = (
                o for o in others if all(rows[o][k] != rows[row][k] for k in ("item_id", "audio_hashes"))
            )
            partners[row] = next(differs, None)
    return partners


def compare(scored: pa.Table, n_resamples: int = 10_000, seed: int = 0) -> pa.Table:
    """The table CHANGES from scored rows (`manipulated` rows with MEASURES and `correct`), by manipulation and model."""
    original = scored.filter(pc.equal(scored["manipulation"], ORIGINAL))
    groups = [ALL, *sorted(set(original["model"].to_pylist()))]
    groups = groups if len(groups) > 2 else [ALL]
    lines = []
    for name in [name for name in NAMES if name in set(scored["manipulation"].to_pylist())]:
        after = scored.filter(pc.equal(scored["manipulation"], name))
        for group in groups:
            whose = np.array([group in (ALL, model) for model in original["model"].to_pylist()])
            for outcome in OUTCOMES:
                line = _change(original.filter(whose), after.filter(whose), outcome, n_resamples, seed)
                lines.append({"manipulation": name, "model": group, "outcome": outcome, **line})
    return pa.Table.from_pylist(lines, schema=CHANGES)


def sentences(changes: pa.Table) -> Iterator[str]:
    """What the table says of each manipulation, in plain words: whether it pays, and which metrics it raises.

    It pays where the whole interval of ARIA's change lies above zero, does not where the change is none or a fall, and a
    rise whose interval holds zero, or that has no interval, tells neither. Fewer than LEAST_ITEMS items never tell.
    """
    by_name: dict[str, list[dict]] = {}
    for row in changes.to_pylist():
        by_name.setdefault(row["manipulation"], []).append(row)
    for name, rows in by_name.items():
        overall = {row["outcome"]: row for row in rows if row["model"] == ALL}
        models = [row for row in rows if row["model"] != ALL and row["outcome"] == "aria" and pays(row)]
        aria, raised = overall["aria"], [overall[m] for m in MEASURES[:-1] if rises(overall[m])]
        up = ", ".join(f"{row['outcome'][:2].upper()} {row['difference']:+.3f}" for row in raised)
        if not aria["n"]:
            yield f"{name}: no chain has an ARIA score both before and after."
        elif aria["n_clusters"] < LEAST_ITEMS:
            yield f"{name}: ARIA changes by {_interval(aria)}, too few items to tell whether it pays."
        elif pays(aria):
            yield f"{name} PAYS: ARIA {_interval(aria)}; it raises {up or 'no metric by itself'}.{_of(models)}"
        elif aria["difference"] > ROUNDING:
            why = "is alike in every item" if aria["low"] is None else "may as well be none"
            yield (
                f"{name}: whether it pays cannot be told from {aria['n']} chains: ARIA changes by {_interval(aria)}, which {why}."
                + _of(models)
            )
        else:
            told = f"raises {up}, and yet" if up else "raises no metric, and"
            yield f"{name} does not pay: it {told} ARIA changes by {_interval(aria)}.{_of(models)}"


def few(rows: Sequence[dict]) -> str:
    """One sentence where the changes rest on few items at the most; else ""."""
    items = max((row["n_clusters"] for row in rows), default=0)
    if items == 1:
        return "Only 1 item: there are no intervals."
    return f"Only {items} items: the intervals are rough." if items < FEW else ""


def rises(row: dict) -> bool:
    """Whether the whole interval of a change lies above zero."""
    return row["low"] is not None and row["low"] > 0


def pays(row: dict) -> bool:
    """Whether a change of ARIA rises over enough items to say so."""
    return row["n_clusters"] >= LEAST_ITEMS and rises(row)


def _of(models: list[dict]) -> str:
    named = ", ".join(f"{row['model']} ({row['difference']:+.3f})" for row in models)
    return f" It pays for {named}." if named else ""


def _interval(row: dict) -> str:
    bounds = "" if row["low"] is None else f" [{row['low']:+.3f}, {row['high']:+.3f}]"
    counts = ((row["n"], "chain"), (row["n_clusters"], "item"))
    told = " of ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
    return f"{row['difference']:+.3f}{bounds} over {told}"


def _change(before: pa.Table, after: pa.Table, outcome: str, n_resamples: int, seed: int) -> dict:
    values = [_values(table, outcome) for table in (before, after)]
    both = np.isfinite(values[0]) & np.isfinite(values[1])
    items = [label for label, kept in zip(item_labels(before), both, strict=True) if kept]
    line = {
        "n": int(both.sum()),
        "n_clusters": len(set(items)),
        "n_lost": int((~both).sum()),
        "n_changed": pc.sum(after["changed"]).as_py() or 0,
        "method": _METHOD_OF_ACCURACY if outcome == ACCURACY else _METHOD,
    }
    if not both.any():
        return line
    if line["n_clusters"] == 1:
        line["note"] = "no interval: there is one item"
    elif line["n_clusters"] < FEW:
        line["note"] = few_items(line["n_clusters"])
    old, new = (one[both] for one in values)
    line |= {"before": old.mean(), "after": new.mean(), "difference": (new - old).mean()}
    if line["n_clusters"] > 1:
        found = paired_bootstrap(new, old, items, n_resamples=n_resamples, seed=seed)
        line |= _known({"low": found.low, "high": found.high, "p": found.p})
        if math.isnan(found.low):
            line["note"] = "; ".join(filter(None, [line.get("note"), ALIKE]))
        for name, scores in (("before", old), ("after", new)):
            low, high = _interval_of_mean(scores, items, outcome, n_resamples, seed)
            line |= _known({f"{name}_low": low, f"{name}_high": high})
    return line


def _known(numbers: dict[str, float]) -> dict[str, float]:
    return {name: number for name, number in numbers.items() if not math.isnan(number)}


def _interval_of_mean(
    scores: np.ndarray, items: Sequence[Any], outcome: str, n_resamples: int, seed: int
) -> tuple[float, float]:
    if outcome == ACCURACY:
        return wilson_interval_of_clusters(scores.tolist(), items)
    found = paired_bootstrap(scores, np.zeros(len(scores)), items, n_resamples=n_resamples, seed=seed)
    return found.low, found.high


def _values(table: pa.Table, outcome: str) -> np.ndarray:
    column = table["correct" if outcome == ACCURACY else outcome]
    return pc.cast(column, pa.float64()).to_numpy(zero_copy_only=False)


def _cases(results: pa.Table, partners: list[int | None]) -> Iterator[Case]:
    columns = [*SLOTS, "entities", "choices", "answer_index"]
    rows = results.select(columns).to_pylist()
    chains = [Slots(*(row[slot] or "" for slot in SLOTS), tuple(row["entities"] or ())) for row in rows]
    for row, slots, partner in zip(rows, chains, partners, strict=True):
        choices, chosen = tuple(row["choices"] or ()), row["answer_index"]
        answer = slots.answer or ("" if chosen is None else choices[chosen])
        yield Case(slots, answer, choices, None if partner is None else chains[partner])


def _rewritten(source: pa.Table, rewrite: Manipulation, cases: list[Case], seed: int) -> pa.Table:
    said, changed = [], []
    for row, case in zip(
        source.select(["model", "item_id", "trial", "response"]).to_pylist(), cases, strict=True
    ):
        key = f"{seed}/{rewrite.__name__}/{row['model']!r}/{row['item_id']!r}/{row['trial']}"
        random = np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big"))
        new = rewrite(case, random) if row["response"] is not None else case.slots
        changed.append(new != case.slots)
        said.append(render(new) if changed[-1] else row["response"])
    return _marked(with_columns(source, {"response": pa.array(said, pa.string())}), rewrite.__name__, changed)


def _with_clips(source: pa.Table, clips: pa.Table) -> pa.Table:
    return with_columns(source, {name: clips[name] for name in ("audio_uris", *CLIPS.names)})


def _marked(table: pa.Table, name: str, changed: list[bool]) -> pa.Table:
    marks = (pa.array([name] * len(table)), pa.array(changed, pa.bool_()))
    return with_columns(table, {field: column for (field, _), column in zip(_MARKS, marks, strict=True)})
