"""The leaderboard of a report: every mean with its interval, its rank in its column and what it covers.

ARIA-Rubrics, Table 1 (colours by rank in the column) and section 3.4 (modes). All numbers are those of
summary.parquet: intervals are Wilson's for shares, and for a mean of scores Student's over items, the trials of an item
being averaged first, cut at 0 and 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from operators.aggregate import MEASURES
from operators.leaderboard_cells import LEAST_COVERAGE
from operators.modes import Profile, modes_of_profiles
from operators.schema import METRICS

SHARES = ("accuracy", "accuracy_answered", "no_answer_rate")
LOWER_IS_BETTER = frozenset({"no_answer_rate"})
_COVERS = {
    **{name: (f"{name}_n_scored",) for name in MEASURES},
    "accuracy": ("n_valid",),
    "accuracy_answered": ("n_answered",),
    "no_answer_rate": ("n_answered", "n_no_answer"),
}
Cell = dict[str, Any]


def item_means(rows: pa.Table, keys: Sequence[str]) -> dict[tuple, dict[str, list[float]]]:
    """{values of `keys`: {measure: the mean of every scored item}}, over the trials of the item."""
    wanted = [(name, "mean") for name in MEASURES]
    got = rows.group_by([*keys, "item_id"], use_threads=False).aggregate(wanted).to_pylist()
    found: dict[tuple, dict[str, list[float]]] = {}
    for row in got:
        place = found.setdefault(tuple(row[key] for key in keys), {name: [] for name in MEASURES})
        for name in MEASURES:
            if row[f"{name}_mean"] is not None:
                place[name].append(row[f"{name}_mean"])
    return found


def leaderboards(summary: pa.Table) -> list[dict[str, Any]]:
    """One block per benchmark of `aggregate.summarise`: its models, best ARIA first, each with `cells` by column, mode and
    counts."""
    overall = [row for row in summary.to_pylist() if row["group_kind"] == "overall"]
    blocks = []
    for benchmark in dict.fromkeys(row["benchmark"] for row in overall):
        mine = [row for row in overall if row["benchmark"] == benchmark]
        entries = [_entry(row) for row in mine]
        _ranked(entries)
        for entry, mode in zip(entries, _modes(entries), strict=True):
            entry["mode"] = mode
        entries.sort(key=lambda entry: entry["cells"]["aria"]["rank"] or math.inf)
        blocks.append({"benchmark": benchmark, "models": entries})
    return blocks


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    cells: dict[str, Cell] = {}
    for name in MEASURES:
        parts = {part: row[f"{name}_{part}"] for part in ("low", "high", "sd", "n_items")}
        cells[name] = {"value": row[f"{name}_mean"], **parts}
    for name in SHARES:
        cells[name] = {"value": row[name], "low": row[f"{name}_low"], "high": row[f"{name}_high"]}
    for name, cell in cells.items():
        cell["n"] = sum(row[count] for count in _COVERS[name])
    kept = ("model", "n_items", "n_rows", "n_valid", "n_answered", "n_correct", "n_failed", "n_no_answer")
    return {**{name: row[name] for name in kept}, "paper_accuracy": row["accuracy_paper"], "cells": cells}


def _ranked(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    for column in (*MEASURES, *SHARES):
        _rank([entry["cells"][column] for entry in entries], column in LOWER_IS_BETTER)
    return entries


def _rank(column: list[Cell], lower_is_better: bool) -> None:
    """Adds `rank` (from 1, ties share the better one; None for no value, or one over too few rows to rank), `of`, and
    `level` in [0, 1], the depth of its colour: None where all that are ranked are alike, since then none is better."""
    most = max((cell["n"] for cell in column if cell["value"] is not None), default=0)
    ranked = [
        cell for cell in column if cell["value"] is not None and cell["n"] >= LEAST_COVERAGE * max(most, 1)
    ]
    sign = 1 if lower_is_better else -1
    for cell in column:
        better = (
            sum(sign * other["value"] < sign * cell["value"] for other in ranked) if cell in ranked else None
        )
        cell["rank"], cell["of"] = (None if better is None else better + 1), len(ranked)
    alike = len({cell["value"] for cell in ranked}) < 2
    for cell in column:
        unranked = alike or cell["rank"] is None
        cell["level"] = None if unranked else (cell["of"] - cell["rank"]) / (cell["of"] - 1)


def _modes(entries: list[dict[str, Any]]) -> list[str | None]:
    """Modes among the models whose ARIA and accuracy are ranked; None for the others."""
    values = [
        [entry["cells"][name] for name in ("accuracy", "aria", METRICS[1], METRICS[3], METRICS[4])]
        for entry in entries
    ]
    known = [place for place, cells in enumerate(values) if all(cell["rank"] for cell in cells)]
    found = modes_of_profiles([Profile(*(cell["value"] for cell in values[place])) for place in known])
    modes: list[str | None] = [None] * len(entries)
    for place, mode in zip(known, found, strict=True):
        modes[place] = mode
    return modes


def categories(summary: pa.Table) -> list[dict[str, Any]]:
    """Per benchmark and kind of group (category, and what the items' `groups` name): the groups and, by model, their
    cells, ranked within the group."""
    found = [row for row in summary.to_pylist() if row["group_kind"] != "overall"]
    blocks = []
    for benchmark, kind in dict.fromkeys((row["benchmark"], row["group_kind"]) for row in found):
        mine = [row for row in found if (row["benchmark"], row["group_kind"]) == (benchmark, kind)]
        groups = [
            {"group": group, "models": _ranked([_entry(row) for row in members])}
            for group, members in _by(mine, "group").items()
        ]
        blocks.append({"benchmark": benchmark, "kind": kind, "groups": groups})
    return blocks


def _by(rows: Sequence[dict[str, Any]], name: str) -> dict[Any, list[dict[str, Any]]]:
    found: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        found.setdefault(row[name], []).append(row)
    return found
