"""The trials of a MUGEN run and the verdicts of an audit for the item browser, in the form that `items.index` gives ARIA's.

Rows of one item stand next to each other. A row is told apart within its item and model by its series (what was asked, and
how) and its trial; `share_right` is the share of an item's rows of a model that are right, over all series and without
rows of which nobody knows (a verdict that cannot be read; a trial that names no option is not right), so that sorting by it
brings up what a model never gets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.audit_states import STATE_NAMES
from operators.frames import TEXT_ERROR
from operators.reporting.clips import Clips
from operators.reporting.items import ROWS_PER_BLOCK
from operators.reporting.series_charts import SPOKEN

Row = dict[str, Any]
_TRIAL = ("audio_order", "gold_position", "option_position", "option_stage", "option_reason", "choice_index",
          "response", "finish_reason", "usage", "response_error", TEXT_ERROR)  # fmt: skip
_VOTE = ("model", "n_candidates", "strategy", "choice_index", "correct", "tie", "n_trials", "n_votes")
_VERDICT = ("control", "probe", "cue", "branch", "order", "swapped", "contexts_swapped", "names", "gold", "pred", "reason",
            "chosen", "n_turns", "turns_right", "n_attempts", "response", "finish_reason", "usage",
            "response_error", TEXT_ERROR)  # fmt: skip


def mugen_browser(tables: Mapping[str, pa.Table], clips: Clips, key: str) -> tuple[Row, dict[str, list[Row]]]:
    """The index of a MUGEN run's trials, and its blocks of details under names that begin with `key`.

    tables: trials, votes, items; a run that kept no items shows neither question nor clips.
    """
    rows = _by_item(tables["trials"])
    about = {(item["benchmark"], item["item_id"]): item for item in tables["items"].to_pylist()}
    votes: dict[tuple, list[Row]] = {}
    for vote in tables["votes"].to_pylist():
        votes.setdefault((vote["benchmark"], vote["item_id"]), []).append(vote)

    def item_of(row: Row) -> Row:
        where = row["benchmark"], row["item_id"]
        item = about.get(where, {})
        return {
            "question": item.get("question"), "choices": item.get("choices"), "gold_index": row["gold_index"],
            "category": row["category"], "task": row["task"], "n_reference": row["n_reference"],
            "clips": clips.of_item(item) if item else [],
            "votes": [{name: vote[name] for name in _VOTE} for vote in votes.get(where, [])],
        }  # fmt: skip

    return _browser(
        rows, key, clips, item_of, _series_of_trial, lambda row: row["trial"], _TRIAL, "mugen",
        [row["choice_index"] for row in rows], [row["response_error"] or row["option_reason"] for row in rows],
    )  # fmt: skip


def audit_browser(tables: Mapping[str, pa.Table], clips: Clips, key: str) -> tuple[Row, dict[str, list[Row]]]:
    """The index of an audit's verdicts, and its blocks of details. tables: verdicts, instances, items."""
    rows = _by_item(tables["verdicts"])
    about = {(item["benchmark"], item["item_id"]): item for item in tables["items"].to_pylist()}
    where = ("model", "item_id", "benchmark", "control", "cue", "branch", "order")
    states = {tuple(row[name] for name in where): row for row in tables["instances"].to_pylist()}
    for row in rows:
        row["state"] = _state(states.get(tuple(row[name] for name in where)))

    def item_of(row: Row) -> Row:
        item = about.get((row["benchmark"], row["item_id"]), {})
        places = dict(zip(item.get("audio_uris") or [], clips.of_item(item) if item else [], strict=True))
        voices = [
            [{**_said(turn), "clip": places.get(turn["audio_uri"])} for turn in turns]
            for turns in item.get("branches") or []
        ]
        replies = [
            {"text": one["text"], "clip": places.get(one["audio_uri"])} for one in item.get("responses") or []
        ]
        first = next((turn["text"] for turn in (item.get("branches") or [[]])[0]), None)
        return {"question": first, "choices": [one["text"] for one in replies], "category": row["kind"],
                "clips": list(places.values()), "branches": voices, "responses": replies}  # fmt: skip

    return _browser(
        rows, key, clips, item_of, _series_of_verdict, _presentation, (*_VERDICT, "state"), "audit",
        [row["pred"] for row in rows], [row["reason"] for row in rows],
    )  # fmt: skip


def _by_item(table: pa.Table) -> list[Row]:
    rows = table.to_pylist()
    first: dict[tuple, int] = {}
    for row in rows:
        first.setdefault((row["benchmark"], row["item_id"]), len(first))
    return sorted(rows, key=lambda row: (first[row["benchmark"], row["item_id"]], row["model"]))


def _browser(
    rows: Sequence[Row], key: str, clips: Clips, item_of: Callable[[Row], Row], series: Callable[[Row], str],
    trial: Callable[[Row], Any], kept: Sequence[str], kind: str, answers: Sequence[Any], reasons: Sequence[str | None],
) -> tuple[Row, dict[str, list[Row]]]:  # fmt: skip
    """What `mugen_browser` and `audit_browser` give, from rows of which those about one item are neighbours."""
    items: dict[tuple, Row] = {}
    for row in rows:
        where = row["benchmark"], row["item_id"]
        if where not in items:
            items[where] = {"item_id": row["item_id"], "benchmark": row["benchmark"], **item_of(row)}
    place = {where: number for number, where in enumerate(items)}
    models = list(dict.fromkeys(row["model"] for row in rows))
    sets = list(dict.fromkeys(series(row) for row in rows))
    index = {
        "kind": kind, "block_prefix": key, "labels": {"share_right": "share right"}, "headline": "share_right", "bars": [],
        "outcomes": ["all", "right", "wrong", "none"], "noun": "trials" if kind == "mugen" else "verdicts",
        "items": list(items.values()), "models": models, "sets": sets, "clips": clips.entries,
        "rows_per_block": ROWS_PER_BLOCK,
        "columns": {
            "item": [place[row["benchmark"], row["item_id"]] for row in rows],
            "model": [models.index(row["model"]) for row in rows],
            "set": [sets.index(series(row)) for row in rows],
            "trial": [trial(row) for row in rows],
            "correct": [row["correct"] for row in rows],
            "answer": list(answers),
            "reason": [text and text.partition(":")[0].strip() for text in reasons],
            "share_right": _share_right(rows),
        },
    }  # fmt: skip
    details = [{name: row[name] for name in kept if row.get(name) is not None} for row in rows]
    blocks = range(0, len(rows), ROWS_PER_BLOCK)
    return index, {f"{key}-{at // ROWS_PER_BLOCK}": details[at : at + ROWS_PER_BLOCK] for at in blocks}


def _share_right(rows: Sequence[Row]) -> list[float | None]:
    said: dict[tuple, list[bool]] = {}
    for row in rows:
        known = said.setdefault((row["model"], row["benchmark"], row["item_id"]), [])
        if row["correct"] is not None:
            known.append(row["correct"])
    shares = {where: sum(known) / len(known) if known else None for where, known in said.items()}
    return [shares[row["model"], row["benchmark"], row["item_id"]] for row in rows]


def _series_of_trial(row: Row) -> str:
    parts = [row["prompt"], SPOKEN["permuted", row["permuted"]], SPOKEN["voting", row["voting"]]]
    return ", ".join(
        parts + ([f"{row['n_candidates']} candidates"] if row["n_candidates"] is not None else [])
    )


def _series_of_verdict(row: Row) -> str:
    return f"{row['probe']}, cue {row['cue']}" + (
        f", control {row['control']}" if row["control"] != "none" else ""
    )


def _presentation(row: Row) -> str:
    """What tells the calls of one probe under one cue apart."""
    told = [] if row["branch"] is None else [f"voice {row['branch'] + 1}"]
    return ", ".join([*told, *(["exchanged"] if row["order"] else [])])


def _said(turn: Mapping[str, Any]) -> Row:
    return {name: turn[name] for name in ("speaker", "text", "emotion")}


def _state(instance: Row | None) -> str | None:
    """ "101 shortcut-like success ..."; None where an outcome is missing."""
    outcomes = [instance and instance[name] for name in ("p", "o", "j")]
    if None in outcomes:
        return None
    code = "".join(str(int(outcome)) for outcome in outcomes)
    return f"{code} {STATE_NAMES[code]}"
