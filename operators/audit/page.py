"""The verdict page of an audit: what the judge fails at in plain words, the tables, and the cases behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.audit.findings import findings, leaks
from operators.audit.presentation import PROBES
from operators.audit.report import HEADS, judge_name
from operators.audit.tables import GROUP, grouped
from operators.audit_states import STATE_NAMES
from operators.pages.embed import page

MOST_CASES = 200
Row = Mapping[str, Any]

TERMS = [
    ("Pointwise", "The judge hears one voice and both replies, and chooses the reply that suits that voice."),
    ("Pairwise", "It hears both voices and both replies, and matches them."),
    ("P, O, J", "Perception: it names the user's emotion in every turn. Oracle: told the emotions in writing, it chooses the "
     "reply. Judgment: pointwise."),
    ("Staging", "Like the oracle, with the emotions that the judge itself named."),
    ("Potemkin failure", "P and O are right and J is wrong. The conditional rate is their share where P and O are right."),
    ("Shortcut", "J is right although P or O is wrong."),
    ("Protocol gap", "Pairwise minus pointwise accuracy."),
    ("Cue dependence", "Pointwise accuracy under the cue minus accuracy without one."),
    ("Youden's J", "How much oftener it says R1 where R1 is right than where it is wrong: 0 for a guess, 1 for a perfect judge."),
    ("Voice changes answer", "Share of pairs of calls, alike but for the voice, with different answers. A perfect judge: all."),
    ("Order kept", "Share of calls answered alike with the replies exchanged; measured with counterbalance=true."),
]  # fmt: skip


def audit_page(
    title: str, items: pa.Table, verdicts: Sequence[Row], cells: Sequence[Row], tables: Mapping[str, pa.Table]
) -> str:
    """One self-contained HTML text. items: AUDIT_ITEM; verdicts, cells, tables: of the same run."""
    accuracy, states, rates = (tables[name].to_pylist() for name in ("accuracy", "states", "rates"))
    by_id = {item["item_id"]: item for item in items.to_pylist()}
    refused = [f"{name}: {item['item_error']}" for name, item in by_id.items() if item["item_error"]]
    found = findings(accuracy, states, rates)
    data = {
        "title": title,
        "subtitle": f"{len(by_id) - len(refused)} items, {len(verdicts)} calls",
        "findings": [
            {
                "judge": judge_name({"model": one.model, "control": one.control}),
                "cue": one.cue,
                "diagnosis": one.diagnosis,
                "headline": one.headline,
                "details": one.details,
                "first": place == 0,
                "control": one.control != "none",
            }
            for place, one in enumerate(found)
        ],
        "leaks": leaks(accuracy),
        "names": list(STATE_NAMES.items()),
        "states": [_states(rows) for rows in grouped(states, GROUP).values()],
        "heads": [HEADS[probe] for probe in PROBES],
        "accuracy": [_accuracy(rows) for rows in grouped(accuracy, GROUP).values()],
        "rates": [_rates(row, accuracy) for row in rates],
        "refused": refused,
        "terms": TERMS,
    }
    return page("audit", title, {"audit": data}, {"cases": list(_cases(by_id, verdicts, cells))})


def _states(rows: Sequence[Row]) -> dict[str, Any]:
    about = {"judge": judge_name(rows[0]), "cue": rows[0]["cue"], "n": rows[0]["n_instances"]}
    masses = [
        {"state": r["state"], "name": r["name"], "mass": r["mass"], "low": r["wilson_low"], "high": r["wilson_high"]}
        for r in rows
    ]  # fmt: skip
    return about | {"excluded": rows[0]["n_excluded"], "states": masses}


def _accuracy(rows: Sequence[Row]) -> dict[str, Any]:
    split = {(row["probe"], row["split"]): row for row in rows}

    def probe(name: str) -> dict[str, Any] | None:
        row = split.get((name, "all"))
        if row is None:
            return None
        kept = {column: row[column] for column in ("accuracy", "n_calls", "n_scored", "n_correct")}
        kept |= {"low": row["wilson_low"], "high": row["wilson_high"], "turns": row["turn_accuracy"]}
        kept |= {name: row[name] for name in ("turn_low", "turn_high")}
        return kept | {place: split[name, place]["accuracy"] for place in ("right_first", "right_second")}

    return {"judge": judge_name(rows[0]), "cue": rows[0]["cue"], "probes": [probe(name) for name in PROBES]}


def _rates(row: Row, accuracy: Sequence[Row]) -> dict[str, Any]:
    habits = next(
        (one for one in accuracy if one["probe"] == "pointwise" and one["split"] == "all" and all(one[n] == row[n] for n in GROUP)),
        {},
    )  # fmt: skip
    same = ("gap_low", "gap_high", "cue_low", "cue_high", "conditional_low", "conditional_high")
    ends = ("youden_low", "youden_high", "voice_low", "voice_high", "order_low", "order_high")
    return {
        "judge": judge_name(row),
        "cue": row["cue"],
        "reliable": row["reliable_mass"],
        "potemkin": row["potemkin_mass"],
        "shortcut": row["shortcut_mass"],
        "conditional": row["conditional_potemkin"],
        "both": row["n_both_probes"],
        "gap": row["protocol_gap"],
        "dependence": row["cue_dependence"],
        "youden": habits.get("youden_j"),
        "changes": habits.get("voice_changes"),
        "kept": habits.get("order_consistency"),
        **{name: row[name] for name in same},
        **{name: habits.get(name) for name in ends},
    }


def _cases(
    by_id: Mapping[str, Row], verdicts: Sequence[Row], cells: Sequence[Row]
) -> Iterable[dict[str, Any]]:
    """The first cases of each judge and cue that are not reliable, with what the judge said natively."""
    key = ("model", "control", "cue", "item_id", "branch", "order")
    said = {tuple(row[n] for n in key): row for row in verdicts if row["probe"] == "pointwise"}
    groups = grouped([cell for cell in cells if cell["control"] == "none"], GROUP)
    each = max(1, MOST_CASES // max(1, len(groups)))
    for members in groups.values():
        failed = [cell for cell in members if not (cell["p"] and cell["o"] and cell["j"])]
        for cell in failed[:each]:
            row = said.get(tuple(cell[n] for n in key))
            if row is not None:
                yield _case(by_id[cell["item_id"]], cell, row)


def _case(item: Row, cell: Row, row: Row) -> dict[str, Any]:
    branch = cell["branch"]
    known = [cell[name] for name in "poj"]
    state = "".join("?" if value is None else str(int(value)) for value in known)
    return {
        "judge": f"{judge_name(cell)}, {cell['cue']}",
        "cue": cell["cue"],
        "item": item["item_id"],
        "branch": branch,
        "state": state,
        "name": STATE_NAMES.get(state, "an outcome is missing"),
        "turns": [{n: turn[n] for n in ("speaker", "emotion", "text")} for turn in item["branches"][branch]],
        "right": item["responses"][branch]["text"],
        "other": item["responses"][1 - branch]["text"],
        "r1": "right" if int(row["swapped"]) == branch else "other",
        "said": row["response"],
        "reason": row["reason"],
    }
