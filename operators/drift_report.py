"""A drift report in plain sentences: Markdown for people, JSON for machines, and what deserves an alarm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from operators.drift import Change, Drift, Outage
from operators.printing import ABSENT, markdown_cell, printable

ALARMING = {"unexplained", "lost_rows"}
LISTED = 40  # changes in full; a report over thousands of them is not read
SHORT = {"accuracy": "accuracy", "aria": "ARIA"}


def alarms(drift: Drift) -> list[str]:
    """One sentence per change that someone should look at.

    A mean beyond its interval or gone altogether, rows that lost their score, values that differ for no known reason,
    a model that is no longer there, a metric that does not work since an earlier night and nobody acknowledged.
    """
    told = [outage_sentence(outage) for outage in drift.outages if not outage.acknowledged]
    told += [sentence(change) for change in drift.changes if _alarming(change)]
    return told + [
        f"{printable(model)} is no longer among the stored responses" for model in drift.gone_models
    ]


def _alarming(change: Change) -> bool:
    vanished = change.now is None and change.last is not None
    return change.beyond or vanished or any(cause.kind in ALARMING for cause in change.causes)


def outage_sentence(outage: Outage) -> str:
    """What does not work, since when and why, on one line."""
    worst = sorted(outage.reasons.items(), key=lambda pair: (-pair[1], pair[0]))[:3]
    why = printable_cause(", ".join(reason for reason, _ in worst))
    return (
        f"{outage.metric.upper()} has scored nothing since night {outage.since}: it failed again on all {outage.n_rows} "
        f"rows that it was tried on ({why})"
    )


def sentence(change: Change) -> str:
    """What happened to one measure and why, on one line."""
    measure = SHORT.get(change.measure, change.measure[:2].upper())
    whose = f"{measure} of {printable(change.model)} on {printable(change.benchmark)}"
    why = "; ".join(printable_cause(cause.text) for cause in change.causes)
    return f"{whose} {_movement(change)}: {why}." if why else f"{whose} {_movement(change)}."


def _movement(change: Change) -> str:
    if change.last is None:
        return "is null as before" if change.now is None else f"appeared as {change.now:.3f}"
    if change.now is None:
        return f"vanished (it was {change.last:.3f})"
    if change.now == change.last:
        return f"stays at {change.now:.3f}"
    verb = "rose" if change.now > change.last else "fell"
    moved = f"{verb} from {change.last:.3f} to {change.now:.3f} ({change.change:+.3g})"
    if change.low is None:
        return f"{moved}, and two items at least are needed to say whether that is much"
    return f"{moved}, {'beyond' if change.beyond else 'within'} its interval of {change.low:.3f} to {change.high:.3f}"


def printable_cause(text: str) -> str:
    """A cause on one line; long paths of a spec are not cut as names are."""
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def to_json(drift: Drift, metrics_rescored: list[str]) -> dict[str, Any]:
    """For alerting: `alert`, the sentences, and every change as plain data."""
    sentences = alarms(drift)
    return {
        "last": drift.last,
        "now": drift.now,
        "alert": bool(sentences),
        "alarms": sentences,
        "other_scorers": metrics_rescored,
        "new_models": list(drift.new_models),
        "gone_models": list(drift.gone_models),
        "outages": [vars(outage) | {"reasons": dict(outage.reasons)} for outage in drift.outages],
        "n_compared": drift.n_compared,
        "n_changed": len(drift.changes),
        "n_beyond": sum(change.beyond for change in drift.changes),
        "changes": [
            {**vars(change), "change": change.change, "causes": [cause._asdict() for cause in change.causes]}
            for change in drift.changes
        ],
    }


def headline(drift: Drift) -> str:
    """The report in one sentence."""
    if not drift.changes and not drift.new_models and not drift.gone_models:
        return f"Nothing changed since {drift.last}: all {drift.n_compared} means are the same."
    beyond = sum(change.beyond for change in drift.changes)
    parts = [
        f"{len(drift.changes)} of {drift.n_compared} means changed since {drift.last}, {beyond} beyond their interval"
    ]
    parts += [f"{len(drift.new_models)} new"] * bool(drift.new_models)
    parts += [f"{len(drift.gone_models)} gone"] * bool(drift.gone_models)
    return "; ".join(parts) + "."


def to_markdown(drift: Drift, metrics_rescored: list[str]) -> str:
    """The report for a person: what needs a look first, then every change."""
    lines = [f"# Drift: {drift.now}", "", markdown_words(headline(drift)), ""]
    if metrics_rescored:
        names = ", ".join(metric.upper() for metric in metrics_rescored)
        lines += [f"**{names}: another scorer.** Old and new numbers are not on one scale.", ""]
    if told := alarms(drift):
        lines += ["## To look at", "", *(f"- {markdown_words(one)}" for one in told[:LISTED])]
        lines += [*([f"- and {len(told) - LISTED} more, in drift.json"] if len(told) > LISTED else []), ""]
    if known := [outage for outage in drift.outages if outage.acknowledged]:
        lines += ["## Acknowledged", "", *(f"- {markdown_words(outage_sentence(one))}" for one in known), ""]
    for title, models in (("New", drift.new_models), ("Gone", drift.gone_models)):
        if models:
            lines += [f"{title}: {', '.join(markdown_cell(model) for model in models)}", ""]
    if drift.changes:
        lines += ["## All changes", "", *_table(drift.changes)]
    return "\n".join(lines).rstrip() + "\n"


def _table(changes: tuple[Change, ...]) -> Iterator[str]:
    yield "| Model | Benchmark | Measure | Then | Now | Change | Rescored | Interval then | Beyond | Rows | Why |"
    yield "|---|---|---|---:|---:|---:|---:|---|---|---|---|"
    for change in changes:
        cells = [markdown_cell(change.model), markdown_cell(change.benchmark)]
        cells.append(SHORT.get(change.measure, change.measure[:2].upper()))
        cells += [
            _number(change.last),
            _number(change.now),
            _number(change.change, "+.3g"),
            _number(change.rescored, "+.3g"),
        ]
        cells.append(ABSENT if change.low is None else f"{change.low:.3f} to {change.high:.3f}")
        cells += ["yes" if change.beyond else "no", f"{change.n_last} to {change.n_now}"]
        cells.append(markdown_words("; ".join(cause.text for cause in change.causes)))
        yield f"| {' | '.join(cells)} |"


def _number(value: float | None, form: str = ".3f") -> str:
    return ABSENT if value is None else f"{value:{form}}"


def markdown_words(text: str) -> str:
    """Untrusted text escaped word by word, since `markdown_cell` shortens what is long.

    Parentheses stay as they are: without brackets before them they make no link.
    """
    words = (markdown_cell(word) for word in printable_cause(text).split(" "))
    return " ".join(words).replace("\\(", "(").replace("\\)", ")")
