"""The tables of an audit: accuracies, the eight states, and the rates that compare protocols and cues (section 5, D.1).

Every share stands beside its counts. A verdict that is null is neither right nor wrong: it is left out of `accuracy`,
counted, and `accuracy_least` / `accuracy_most` say what it could have done.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from operators.audit.presentation import CUES, PROBES
from operators.audit_states import (
    STATE_NAMES,
    agreement_rate,
    complete_items,
    mass_bounds,
    state_masses,
    youdens_j,
)
from operators.intervals import no_interval, wilson_interval_of_clusters
from operators.statistics import paired_bootstrap

Row = dict[str, Any]
ABOUT = [("model", pa.string()), ("benchmark", pa.string()), ("kind", pa.string()), ("control", pa.string()), ("cue", pa.string())]  # fmt: skip
GROUP = tuple(name for name, _ in ABOUT)


def _numbers(*names: str) -> list[tuple[str, pa.DataType]]:
    return [(name, pa.int64() if name.startswith("n_") else pa.float64()) for name in names]


# One probe under one cue. `split`: all, right_first, right_second (where the right answer, for perception the first right
# label, stood). `said_first`: share of R1 (E1) among the answers; `chance`: accuracy of a blind guess; `voice_changes`: share of
# pairs of calls that differ in the branch alone and got different answers (a perfect judge: 1); `order_consistency`: share of calls
# answered alike in both orders. `turn_accuracy`: mean share of right turns; `contrast_accuracy`: of those turns
# at which the two branches differ, where an answer that is the same for both is right in one of them: without ears at most 0.5.
# Intervals are Wilson's: of accuracies (turns too) a call asked in both orders counts once, of habits (said_first, voice,
# order) an item; that of youden_j adds the ends of
# those of its two shares, as if these moved together: a judge's outcomes on the two branches of an item may.
ACCURACY = pa.schema([
    *ABOUT, ("probe", pa.string()), ("split", pa.string()),
    *_numbers(
        "n_calls", "n_scored", "n_correct", "n_unparsed", "n_failed", "accuracy", "wilson_low", "wilson_high",
        "accuracy_least", "accuracy_most", "chance", "turn_accuracy", "turn_low", "turn_high",
        "contrast_accuracy", "contrast_low", "contrast_high", "said_first", "said_first_low", "said_first_high",
        "youden_j", "youden_low", "youden_high", "voice_changes", "voice_low", "voice_high", "n_pairs",
        "order_consistency", "order_low", "order_high", "n_both_orders",
    ),
])  # fmt: skip

# The mass of one state under one cue: Wilson interval, and the least and most it could be given the unknown outcomes.
STATES = pa.schema([
    *ABOUT, ("state", pa.string()), ("name", pa.string()),
    *_numbers("n_instances", "n_excluded", "n_in_state", "mass", "wilson_low", "wilson_high", "mass_least", "mass_most"),
])  # fmt: skip

# What a cue's states and accuracies come to. Differences are in accuracy, with bootstrap intervals over items; where there is
# none, `gap_reason` and so on say why.
RATES = pa.schema([
    *ABOUT,
    *_numbers(
        "n_instances", "n_excluded", "reliable_mass", "potemkin_mass", "shortcut_mass", "n_both_probes",
        "conditional_potemkin", "conditional_low", "conditional_high",
        "protocol_gap", "gap_low", "gap_high", "gap_p", "n_gap_items",
        "cue_dependence", "cue_low", "cue_high", "cue_p", "n_cue_items",
        "cue_dependence_pairwise", "cue_pairwise_low", "cue_pairwise_high", "cue_pairwise_p", "n_cue_pairwise_items",
    ),
    *((f"{name}_reason", pa.string()) for name in ("gap", "cue", "cue_pairwise")),
])  # fmt: skip


def grouped(rows: Iterable[Mapping[str, Any]], names: Sequence[str]) -> dict[tuple, list[Mapping[str, Any]]]:
    """The rows under each combination of values in the columns `names`, in order of appearance."""
    found: dict[tuple, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def accuracies(verdicts: Sequence[Mapping[str, Any]]) -> list[Row]:
    """ACCURACY: every probe under every cue, whole and by the place of the right answer."""
    rows = []
    for key, calls in _in_order(grouped(verdicts, (*GROUP, "probe"))):
        about = dict(zip((*GROUP, "probe"), key, strict=True))
        first = [_label_number(call["gold"]) == 1 for call in calls]
        splits = {
            "all": calls,
            "right_first": [call for call, is_first in zip(calls, first, strict=True) if is_first],
            "right_second": [call for call, is_first in zip(calls, first, strict=True) if not is_first],
        }
        rows += [about | {"split": name} | _accuracy(part) for name, part in splits.items()]
    return rows


def _in_order(groups: dict[tuple, list]) -> list[tuple[tuple, list]]:
    """Groups of one judge together, cues and probes in the usual order."""
    first = {key[:4]: place for place, key in reversed(list(enumerate(groups)))}

    def place(entry: tuple[tuple, list]) -> tuple:
        key = entry[0]
        return (first[key[:4]], CUES.index(key[4]), *(PROBES.index(probe) for probe in key[5:]))

    return sorted(groups.items(), key=place)


def _accuracy(calls: Sequence[Mapping[str, Any]]) -> Row:
    known = [call for call in calls if call["correct"] is not None]
    n, scored, right = len(calls), len(known), sum(call["correct"] for call in known)
    low, high = wilson_interval_of_clusters([call["correct"] for call in known], _asked(known))
    failed = sum(call["response"] is None for call in calls)
    row = {"n_calls": n, "n_scored": scored, "n_correct": right}
    row |= {"n_failed": failed, "n_unparsed": n - scored - failed}
    row |= {"accuracy": _share(right, scored), "wilson_low": low, "wilson_high": high}
    row |= {"accuracy_least": _share(right, n), "accuracy_most": _share(right + n - scored, n)}
    row["chance"] = _share(sum(_chance(call) for call in calls), n)
    row |= _turns(known) | _habits(known) | _pairs(calls)
    return {name: _number(value) for name, value in row.items()}


def _asked(calls: Iterable[Mapping[str, Any]]) -> list[tuple]:
    """What a call or an instance is about. The paper's intervals count calls; a call asked in both orders is one."""
    return [(call["item_id"], call["branch"]) for call in calls]


def _chance(call: Mapping[str, Any]) -> float:
    """How often a blind guess is right: one of two, or for perception one of k emotions at every turn."""
    return 0.5 if call["probe"] != "perception" else len(call["names"]) ** -float(call["n_turns"])


def _turns(known: Sequence[Mapping[str, Any]]) -> Row:
    """*Our reading* of "the average percentage of human turns": the mean over calls of each call's share; its interval
    counts a call asked in both orders once, as that of the accuracy beside it does."""
    row: Row = {}
    for name, right, count in (
        ("turn", "turns_right", "n_turns"),
        ("contrast", "contrast_right", "n_contrast"),
    ):
        counted = [call for call in known if call[count]]
        shares = [call[right] / call[count] for call in counted]
        low, high = wilson_interval_of_clusters(shares, _asked(counted))
        row |= {
            f"{name}_accuracy": _share(sum(shares), len(shares)),
            f"{name}_low": low,
            f"{name}_high": high,
        }
    return row


def _habits(known: Sequence[Mapping[str, Any]]) -> Row:
    said = [_label_number(call["pred"]) == 1 for call in known]
    gold = [_label_number(call["gold"]) == 1 for call in known]
    items = [call["item_id"] for call in known]
    low, high = wilson_interval_of_clusters(said, items)
    row = {"said_first": _share(sum(said), len(said)), "said_first_low": low, "said_first_high": high}
    shares = []
    for is_first in (True, False):
        at = [place for place, one in enumerate(gold) if one == is_first]
        right = [said[place] == is_first for place in at]
        shares.append(wilson_interval_of_clusters(right, [items[place] for place in at]))
    ends = (sum(pair) - 1 for pair in zip(*shares, strict=True))
    return (
        row
        | {"youden_j": youdens_j(said, gold)}
        | dict(zip(("youden_low", "youden_high"), ends, strict=True))
    )


def _label_number(labels: str) -> int:
    return int(labels.split(",", 1)[0][1:])


def _pairs(calls: Sequence[Mapping[str, Any]]) -> Row:
    """Answers compared between the branches of an item, and between the orders of a call."""
    answers = {(call["item_id"], call["branch"], call["order"]): _answer(call) for call in calls}
    branches = [
        (item, answer, answers.get((item, 1, order)))
        for (item, branch, order), answer in answers.items()
        if branch == 0
    ]
    orders = [
        (item, answer, answers.get((item, branch, 1)))
        for (item, branch, order), answer in answers.items()
        if order == 0
    ]
    same, n_pairs, low, high = _alike(branches)
    row = {"voice_changes": 1 - same, "voice_low": 1 - high, "voice_high": 1 - low, "n_pairs": n_pairs}
    names = ("order_consistency", "n_both_orders", "order_low", "order_high")
    return row | dict(zip(names, _alike(orders), strict=True))


def _alike(pairs: Sequence[tuple[str, Any, Any]]) -> tuple[float, int, float, float]:
    """Of (item, answer, answer): the share of equal ones, their number, and the interval of that share."""
    rate, n = agreement_rate((a, b) for _, a, b in pairs)
    known = [(a == b, item) for item, a, b in pairs if a is not None and b is not None]
    return rate, n, *wilson_interval_of_clusters([same for same, _ in known], [item for _, item in known])


def _answer(call: Mapping[str, Any]) -> Any:
    """What a verdict means, free of labels; None for a null one."""
    if call["pred"] is None or call["probe"] != "perception":
        return call["chosen"]
    return tuple(call["names"][int(label[1:]) - 1] for label in call["pred"].split(","))


def states(instances: Sequence[Mapping[str, Any]]) -> list[Row]:
    """STATES: the eight-state table of every cue. Where no instance has all three outcomes the masses are null."""
    rows = []
    for key, cells in _in_order(grouped(instances, GROUP)):
        about = dict(zip(GROUP, key, strict=True))
        p, o, j = ([cell[name] for cell in cells] for name in "poj")
        kept = complete_items(p, o, j)
        found = ["".join(map(str, state)) for state in zip(kept.p, kept.o, kept.j, strict=True)]
        asked = _asked(cell for cell in cells if None not in (cell["p"], cell["o"], cell["j"]))
        counts = Counter(found)
        n, bounds = len(kept.p), mass_bounds(p, o, j)
        masses = state_masses(*kept[:3]) if n else dict.fromkeys(STATE_NAMES)
        for state, name in STATE_NAMES.items():
            low, high = wilson_interval_of_clusters([one == state for one in found], asked)
            row = {"n_instances": n, "n_excluded": kept.n_excluded, "n_in_state": counts[state]}
            row |= {"mass": masses[state], "wilson_low": _number(low), "wilson_high": _number(high)}
            row |= dict(zip(("mass_least", "mass_most"), bounds[state], strict=True))
            rows.append(about | {"state": state, "name": name} | row)
    return rows


def rates(
    verdicts: Sequence[Mapping[str, Any]], instances: Sequence[Mapping[str, Any]], n_resamples: int = 10_000
) -> list[Row]:
    """RATES: one row per cue.

    The protocol gap is Pairwise minus Pointwise accuracy, the cue dependence accuracy under the cue minus accuracy without
    one (appendix D.1, Figure 4). *Our reading* of an item with null verdicts: it is left out of a difference, and counted
    by the number of items that remain.
    """
    by_cue = grouped(instances, GROUP)
    means = {key: _item_means(calls) for key, calls in grouped(verdicts, (*GROUP, "probe")).items()}
    keys = [key for key, _ in _in_order(grouped(verdicts, GROUP))]
    return [
        dict(zip(GROUP, key, strict=True)) | _rate(key, by_cue.get(key, []), means, n_resamples)
        for key in keys
    ]


def _rate(
    key: tuple, cells: Sequence[Mapping[str, Any]], means: Mapping[tuple, Mapping], n_resamples: int
) -> Row:
    row: Row = dict.fromkeys(field.name for field in RATES if field.name not in GROUP)
    if cells:
        row |= _masses(cells)
    plain = (*key[:4], "none")

    def difference(a: tuple, b: tuple) -> list:
        return _difference(means.get(a, {}), means.get(b, {}), n_resamples)

    gap = difference((*key, "pairwise"), (*key, "pointwise"))
    row |= dict(
        zip(("protocol_gap", "gap_low", "gap_high", "gap_p", "n_gap_items", "gap_reason"), gap, strict=True)
    )
    if key == plain:
        row |= dict.fromkeys(("cue_reason", "cue_pairwise_reason"), "baseline: differences are from no cue")
    else:
        for probe, name in (("pointwise", "cue"), ("pairwise", "cue_pairwise")):
            found = difference((*key, probe), (*plain, probe))
            ends = (f"{name}_low", f"{name}_high", f"{name}_p", f"n_{name}_items", f"{name}_reason")
            columns = (name.replace("cue", "cue_dependence"), *ends)
            row |= dict(zip(columns, found, strict=True))
    return row


def _masses(cells: Sequence[Mapping[str, Any]]) -> Row:
    """The masses that STATES has, in sums; of instances right in P and O, the share that is wrong in J."""
    known = [cell for cell in cells if None not in (cell["p"], cell["o"], cell["j"])]
    both = [cell for cell in known if cell["p"] and cell["o"]]
    reliable = sum(cell["j"] for cell in both)
    low, high = wilson_interval_of_clusters([not cell["j"] for cell in both], _asked(both))
    row = {
        "n_instances": len(known),
        "n_excluded": len(cells) - len(known),
        "reliable_mass": _share(reliable, len(known)),
        "potemkin_mass": _share(len(both) - reliable, len(known)),
        "shortcut_mass": _share(sum(cell["j"] for cell in known) - reliable, len(known)),
        "n_both_probes": len(both),
        "conditional_potemkin": _share(len(both) - reliable, len(both)),
        "conditional_low": low,
        "conditional_high": high,
    }
    return {name: _number(value) for name, value in row.items()}


def _item_means(calls: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Each item's mean outcome; items with a null verdict are left out."""
    found = {
        item: [call["correct"] for call in cells] for (item,), cells in grouped(calls, ("item_id",)).items()
    }
    return {item: sum(right) / len(right) for item, right in found.items() if None not in right}


def _difference(a: Mapping[str, float], b: Mapping[str, float], n_resamples: int) -> list:
    """Mean of a - b over the items of both, its interval, p-value and the number of items; nulls where there is none, and why."""
    common = [item for item in a if item in b]
    if not common:
        return [None] * 4 + [0, no_interval(0)]
    left, right = [a[item] for item in common], [b[item] for item in common]
    if len(common) < 2:
        return [left[0] - right[0], None, None, None, 1, no_interval(1)]
    found = paired_bootstrap(left, right, n_resamples=n_resamples)
    ends = [*map(_number, (found.low, found.high, found.p))]
    return [found.difference, *ends, found.n, no_interval(found.n) if ends[0] is None else None]


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _number(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def tables(
    verdicts: Sequence[Mapping[str, Any]], cells: Sequence[Mapping[str, Any]], n_resamples: int
) -> dict[str, pa.Table]:
    """All tables of an audit by name."""
    made: dict[str, tuple[list[Row], pa.Schema]] = {
        "accuracy": (accuracies(verdicts), ACCURACY),
        "states": (states(cells), STATES),
        "rates": (rates(verdicts, cells, n_resamples), RATES),
    }
    return {name: pa.Table.from_pylist(rows, schema=schema) for name, (rows, schema) in made.items()}
