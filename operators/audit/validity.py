"""Are the findings of an audit artefacts of how it was made (section 5.3)? Comparisons of finished runs.

Real against synthetic speech (Figure 6): for every judge, the proportions of its eight states in one run against those in
the other: Pearson, Spearman, and the slope of second on first. Generator swap (Figure 5): accuracies of the same judges on
items by two generators, and whether they rank the judges alike. *Our reading*: correlations are over the eight states of
one judge under one cue, and over all judges' states together; items of the two runs are not paired. A correlation that
does not exist (a constant side) is null with a reason, and so is an interval. Intervals of profiles come from drawing items
(operators.audit.profile_intervals), those of rankings are of the judges as a sample of judges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from operators.analysis.correlations import FIELLER, ranks_method, spearman, tau_interval
from operators.analysis.estimates import few
from operators.audit.profile_intervals import BOUNDS
from operators.audit.tables import grouped
from operators.audit_states import STATE_NAMES
from operators.intervals import newcombe_interval, wilson_interval_of_mean

Row = Mapping[str, Any]
ALL = "all judges"

PROFILES = pa.schema([
    ("model", pa.string()), ("cue", pa.string()), ("n_first", pa.int64()), ("n_second", pa.int64()),
    ("n_excluded_first", pa.int64()), ("n_excluded_second", pa.int64()),
    ("n_items_first", pa.int64()), ("n_items_second", pa.int64()),
    *((f"{name}{end}", pa.float64()) for name in BOUNDS for end in ("", "_low", "_high")),
    ("state_of_largest", pa.string()), ("reason", pa.string()), ("method", pa.string()), ("interval_reason", pa.string()), ("note", pa.string()),
])  # fmt: skip

SWAPS = pa.schema([
    ("model", pa.string()), ("cue", pa.string()), ("probe", pa.string()),
    *((f"{name}_{side}", pa.float64()) for side in ("first", "second") for name in ("accuracy", "wilson_low", "wilson_high")),
    ("n_first", pa.int64()), ("n_second", pa.int64()),
    # second minus first, of items that are not paired; its interval is Newcombe's, from those of the two sides.
    ("difference", pa.float64()), ("difference_low", pa.float64()), ("difference_high", pa.float64()),
])  # fmt: skip

RANKINGS = pa.schema([
    ("cue", pa.string()), ("probe", pa.string()), ("n_judges", pa.int64()),
    *((f"{name}{end}", pa.float64()) for name in ("spearman", "kendall") for end in ("", "_low", "_high", "_p")),
    ("same_order", pa.bool_()), ("reason", pa.string()), ("method", pa.string()), ("interval_reason", pa.string()), ("note", pa.string()),
])  # fmt: skip


def correlations(first: Sequence[float], second: Sequence[float]) -> dict[str, Any]:
    """Pearson, Spearman and least-squares slope of `second` on `first` [n]; null, with a reason, where a side is constant."""
    from scipy import stats

    blank: dict[str, Any] = {"pearson": None, "spearman": None, "slope": None}
    if len(first) < 3:
        return blank | {"reason": f"too_few: {len(first)} pairs"}
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        side = "first" if np.ptp(first) == 0 else "second"
        return blank | {"reason": f"constant: all values of the {side} run are equal"}
    return {
        "pearson": float(stats.pearsonr(first, second).statistic),
        "spearman": float(stats.spearmanr(first, second).statistic),
        "slope": float(stats.linregress(first, second).slope),
        "reason": None,
    }


def profiles(first: Iterable[Row], second: Iterable[Row]) -> list[dict[str, Any]]:
    """PROFILES of the judges that both runs have; first, second: rows of their `states` tables."""
    sides = [_by(rows, ("cue", "model")) for rows in (first, second)]
    found, pooled = [], {}
    for key in sorted(sides[0].keys() & sides[1].keys()):
        masses, about = zip(*(_profile(side[key]) for side in sides), strict=True)
        known = all(mass is not None for side in masses for mass in side)
        row = {"cue": key[0], "model": key[1]} | _counts(about)
        if not known:
            reason = "no_instance: every instance lacks an outcome"
            found.append(row | {"largest_difference": None, "reason": reason})
            continue
        found.append(row | _compared(*masses))
        for side, mass in zip(pooled.setdefault(key[0], ([], [], [])), (*masses, about), strict=True):
            side.append(mass)
    for cue, (one, other, about) in pooled.items():
        if len(one) > 1:
            joined = [[mass for masses in side for mass in masses] for side in (one, other)]
            counted = [[sum(run[0] for run, _ in about), sum(run[1] for run, _ in about)],
                       [sum(run[0] for _, run in about), sum(run[1] for _, run in about)]]  # fmt: skip
            found.append({"cue": cue, "model": ALL} | _counts(counted) | _compared(*joined))
    return found


def _by(rows: Iterable[Row], names: Sequence[str]) -> dict[tuple, list[Row]]:
    """Rows of the judges themselves, without the controls, by `names`."""
    return grouped([row for row in rows if row["control"] == "none"], names)


def _profile(rows: Sequence[Row]) -> tuple[list[float | None], tuple[int, int]]:
    """The masses of the eight states in order (weighted by instances over benchmarks), instances and those left out."""
    counts = {state: sum(row["n_in_state"] for row in rows if row["state"] == state) for state in STATE_NAMES}
    total = sum(counts.values())
    masses = [count / total if total else None for count in counts.values()]
    # What was left out stands on all eight rows of a cell.
    left_out = sum(row["n_excluded"] for row in rows if row["state"] == next(iter(STATE_NAMES)))
    return masses, (total, left_out)


def _counts(about: Sequence[Sequence[int]]) -> dict[str, int]:
    (n_first, out_first), (n_second, out_second) = about
    return {
        "n_first": n_first, "n_second": n_second, "n_excluded_first": out_first, "n_excluded_second": out_second,
    }  # fmt: skip


def _compared(first: Sequence[float], second: Sequence[float]) -> dict[str, Any]:
    apart = [abs(a - b) for a, b in zip(first, second, strict=True)]
    place = int(np.argmax(apart))
    state = list(STATE_NAMES)[place % len(STATE_NAMES)]
    return {"largest_difference": apart[place], "state_of_largest": state} | correlations(first, second)


def swaps(first: Iterable[Row], second: Iterable[Row]) -> list[dict[str, Any]]:
    """SWAPS: accuracies of the same judge on either generator's items; first, second: rows of `accuracy` tables."""
    names = ("cue", "probe", "model")
    sides = [_by([row for row in rows if row["split"] == "all"], names) for rows in (first, second)]
    found = []
    for key in sorted(sides[0].keys() & sides[1].keys()):
        row: dict[str, Any] = dict(zip(names, key, strict=True))
        for side, rows in zip(("first", "second"), (sides[0][key], sides[1][key]), strict=True):
            row |= {f"{name}_{side}": value for name, value in _joined(rows).items()}
        found.append(row | _difference(row))
    return found


def _difference(row: Row) -> dict[str, float | None]:
    names = ("difference", "difference_low", "difference_high")
    first, second = (
        tuple(row[f"{name}_{side}"] for name in ("accuracy", "wilson_low", "wilson_high"))
        for side in ("first", "second")
    )
    if None in (*first, *second):
        return dict.fromkeys(names)
    return dict(zip(names, (second[0] - first[0], *newcombe_interval(first, second)), strict=True))


def _joined(rows: Sequence[Row]) -> dict[str, Any]:
    """Accuracy over all benchmarks of a run, with its Wilson interval: as in ACCURACY, of which these are rows, a call
    asked in both orders counts once there."""
    right, n = sum(row["n_correct"] for row in rows), sum(row["n_scored"] for row in rows)
    twice = sum(row["n_both_orders"] for row in rows)
    low, high = wilson_interval_of_mean(right / n if n else math.nan, n * n / (n + 2 * twice) if n else 0)
    return {
        "accuracy": right / n if n else None,
        "wilson_low": None if math.isnan(low) else low,
        "wilson_high": None if math.isnan(high) else high,
        "n": n,
    }


def rankings(swapped: Iterable[Row]) -> list[dict[str, Any]]:
    """RANKINGS of the judges by either side's accuracy, per cue and probe, from SWAPS."""
    from scipy.stats import rankdata

    found = []
    for (cue, probe), rows in grouped(swapped, ("cue", "probe")).items():
        pairs = [
            (row["accuracy_first"], row["accuracy_second"]) for row in rows if row["difference"] is not None
        ]
        row = {"cue": cue, "probe": probe, "n_judges": len(pairs)}
        if len(pairs) < 2:
            found.append(row | _no_ranking("too_few: a ranking needs two judges that both runs have"))
            continue
        first, second = (np.array(side) for side in zip(*pairs, strict=True))
        row["same_order"] = bool(np.array_equal(rankdata(first), rankdata(second)))
        if np.ptp(first) == 0 or np.ptp(second) == 0:
            found.append(row | _no_ranking("constant: all judges are equal in one of the runs"))
            continue
        found.append(row | _agreement(first, second))
    return found


def _no_ranking(reason: str) -> dict[str, str]:
    return {"reason": reason, "interval_reason": reason}


def _agreement(first: np.ndarray, second: np.ndarray) -> dict[str, Any]:
    """Spearman's rho and Kendall's tau of two scores of the same judges, with intervals, p, and why they have none."""
    from scipy import stats

    n, tau = len(first), stats.kendalltau(first, second)
    # Of two judges there is an order, and nothing that could be tested.
    rho, interval, p = spearman(first, second) if n > 2 else (tau.statistic, (math.nan, math.nan), math.nan)
    ends = {
        "spearman": (rho, *interval, p),
        "kendall": (tau.statistic, *tau_interval(tau.statistic, n), tau.pvalue),
    }
    found = {
        f"{name}{part}": None if math.isnan(value) else float(value)
        for name, values in ends.items()
        for part, value in zip(("", "_low", "_high", "_p"), values, strict=True)
    }
    lost = [name for name in ends if found[f"{name}_low"] is None]
    why = "perfect: ranks agree or disagree wholly" if n > 4 else f"too_few: {n} judges; rho needs 4, tau 5"
    told = f"{why}; no interval of {' and '.join(lost)}" if lost else None
    method = f"rho: {ranks_method(n, rho)}; tau: {FIELLER}"
    return found | {"method": method, "interval_reason": told, "note": few(n, "judges")}
