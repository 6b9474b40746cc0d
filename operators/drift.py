"""What changed between two scorings of the stored responses, by how much, whether that is more than chance, and why.

Rows are compared by model name, benchmark, item and trial. *Our reading* of "beyond its interval": the mean now lies
outside the 95% interval of the mean then, over items: Student's t for a metric, Wilson's for accuracy. Such a change is
larger than another draw of as many items explains; with fewer than two items there is no interval, and any change counts.
What a change is made of is told apart: rows that came or went, and rows that both scored with other results (`rescored`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from operators.fingerprint import differing
from operators.intervals import t_interval_of_moments, wilson_interval_of_mean
from operators.moments import Moments
from operators.moved import COMPARED, SAME, Comparison, Moved
from operators.nights import Night
from operators.schema import METRICS

_TEXT = 60


class Cause(NamedTuple):
    """kind: one word for a machine. text: a sentence's part for a person."""

    kind: str
    text: str


@dataclass(frozen=True)
class Change:
    """One measure of one model on one benchmark, then and now (means over items; None: nothing was scored).

    low, high: the interval of `last`. n_last, n_now: rows scored. rescored: mean change over the items that both nights
    scored, None where there are none. n_differ: rows of both with another value.
    """

    model: str
    benchmark: str
    measure: str
    last: float | None
    now: float | None
    low: float | None
    high: float | None
    beyond: bool
    n_last: int
    n_now: int
    n_lost: int
    n_differ: int
    rescored: float | None
    causes: tuple[Cause, ...]

    @property
    def change(self) -> float | None:
        return None if self.last is None or self.now is None else self.now - self.last


@dataclass(frozen=True)
class Outage:
    """A metric ("m1".."m6") that failed in the night `since`, and has scored nothing after it.

    n_rows: rows that it failed on again. reasons: what it said of them, by number of rows. acknowledged: known to whoever runs
    the nights, and no alarm.
    """

    metric: str
    since: str
    n_rows: int
    reasons: Mapping[str, int]
    acknowledged: bool = False


@dataclass(frozen=True)
class Drift:
    """All changes between two nights; `n_compared` measures were looked at. `new_models` have no last night.

    outages: what changes do not show, because nothing changed: metrics that do not work, as before.
    """

    last: str
    now: str
    changes: tuple[Change, ...]
    n_compared: int
    new_models: tuple[str, ...]
    gone_models: tuple[str, ...]
    outages: tuple[Outage, ...] = ()


def other_scorers(last: Night, now: Night) -> list[str]:
    """The metrics ("m1".."m6") whose scorers differ: their numbers are not on one scale."""
    return differing(
        [night.record.get("fingerprints", {}) for night in (last, now)], [m[:2] for m in METRICS]
    )


def unrecorded_scorers(last: Night, now: Night) -> list[str]:
    """The metrics that both nights have values of, and neither says by what scorer: nobody knows whether they compare."""
    silent = [name for name in METRICS if not (last.fingerprint(name[:2]) or now.fingerprint(name[:2]))]
    return [
        name[:2]
        for name in silent
        if all(night.rows[name].null_count < len(night.rows) for night in (last, now))
    ]


def drift(
    last: Night, now: Night, compared: Comparison | None = None, outages: tuple[Outage, ...] = ()
) -> Drift:
    """What changed between two nights, measure by measure. `compared` holds their rows, where the nights themselves do not."""
    rows = compared or Comparison().add(last.rows, now.rows)
    both = sorted(rows.before & rows.after)
    changes = [
        change(last, now, pair, measure, found)
        for pair in both
        for measure, found in zip(COMPARED, rows.moved[pair], strict=True)
        if found.anything
    ]
    new, gone = (
        tuple(f"{model} on {name}" for model, name in sorted(systems))
        for systems in (rows.after - rows.before, rows.before - rows.after)
    )
    return Drift(last.name, now.name, tuple(changes), len(both) * len(COMPARED), new, gone, outages)


def change(last: Night, now: Night, pair: tuple[str, str], measure: str, found: Moved) -> Change:
    """One measure of one model on one benchmark, from what happened to its rows."""
    old, new, rescored = found.old, found.new, found.rescored
    low, high = _interval(measure, old)
    then, today = (m.mean if m.n else None for m in (old, new))
    moved = then is not None and today is not None and abs(today - then) > SAME
    outside = moved and not low <= today <= high
    return Change(
        *pair, measure, then, today, *(None if math.isnan(bound) else bound for bound in (low, high)), outside,
        found.n_last, found.n_now, found.lost, found.differ, rescored.mean if rescored.n else None,
        tuple(_causes(last, now, *pair, measure, found)),
    )  # fmt: skip


def _interval(measure: str, means: Moments) -> tuple[float, float]:
    if measure == "accuracy" and means.n:
        return wilson_interval_of_mean(min(1.0, max(0.0, means.mean)), means.n)
    return t_interval_of_moments(means)


def _causes(
    last: Night, now: Night, model: str, benchmark: str, measure: str, found: Moved
) -> Iterator[Cause]:
    """Everything that can have moved a measure; a changed value that nothing explains is said to be so."""
    if found.added:
        yield Cause("new_rows", f"{_rows(found.added)} new")
    if found.gone:
        yield Cause("gone_rows", f"{_rows(found.gone)} no longer there")
    explained = list(_changed_specs(last, now, model, benchmark, measure))
    yield from explained
    before, after = last.model(model, benchmark), now.model(model, benchmark)
    # What another reader read is another row, whether its item changed or not.
    same = all(before.get(name) == after.get(name) for name in ("fingerprint", "reader"))
    if same and found.touched:
        other = ", or that were asked in other trials" if now.votes(model, benchmark) else ""
        yield Cause("changed_items", f"{_rows(found.touched)} about items that the benchmark changed{other}")
    if (n_same := found.differ - found.touched) and not explained:
        why = (
            "nothing recorded says why: another response, another item, or a scorer that is not deterministic"
            if found.untold
            else "the same scorer gave other values: it is not deterministic, or the store was changed"
        )
        yield Cause("unexplained", f"{_rows(n_same)} {'differs' if n_same == 1 else 'differ'} and {why}")
    if found.lost:
        reasons = ", ".join(name for name, _ in found.reasons.most_common(3))
        yield Cause("lost_rows", f"{_rows(found.lost)} no longer scored ({reasons})")
    if found.gained:
        yield Cause("gained_rows", f"{_rows(found.gained)} that could not be scored before")


def _changed_specs(last: Night, now: Night, model: str, benchmark: str, measure: str) -> Iterator[Cause]:
    before, after = last.model(model, benchmark), now.model(model, benchmark)
    if before.get("fingerprint") != after.get("fingerprint"):
        paths = list(differences(before.get("spec"), after.get("spec")))
        prompt = any("prompt" in path for path in paths)
        kind, what = (
            ("new_prompt", "another prompt") if prompt else ("new_model", "another model behind this name")
        )
        yield Cause(kind, f"{what} ({_listed(paths)})")
    if now.votes(model, benchmark):
        if before.get("reader") != after.get("reader"):
            yield Cause("new_extraction", "options are read by another reader: rules, or another judge")
        elif last.fingerprint("read") != now.fingerprint("read") and not after.get("reader"):
            yield Cause("new_extraction", "options are read by another version of the reader")
        return
    if last.fingerprint("extract") != now.fingerprint("extract"):
        yield Cause("new_extraction", "answers and slots are read by another version of the extractor")
    for stage in other_scorers(last, now):
        if measure == "aria" or measure.startswith(f"{stage}_"):
            paths = list(differences(last.spec(stage), now.spec(stage)))
            yield Cause("new_scorer", f"another scorer of {stage.upper()} ({_listed(paths)})")


def differences(last: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two specs differ, as "backbone.dtype: float32 to bfloat16"; long texts are only named."""
    if isinstance(last, Mapping) and isinstance(now, Mapping):
        for name in sorted({*last, *now}):
            yield from differences(last.get(name), now.get(name), f"{path}.{name}" if path else str(name))
    elif last != now:
        texts = [str(value) for value in (last, now)]
        short = all(len(text) <= _TEXT and "\n" not in text for text in texts)
        yield f"{path or 'file'}: {texts[0]} to {texts[1]}" if short else f"{path or 'spec'} changed"


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - 3} more" if len(paths) > 3 else ""
    return "; ".join(paths[:3]) + more if paths else "its code version or description"


def _rows(count: int) -> str:
    return f"{count} row" if count == 1 else f"{count} rows"
